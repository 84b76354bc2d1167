//! What steps of a flow keep for those behind them.

use std::collections::BTreeMap;

/// Values by their names, as templates have them: `{{.NAME}}`.
pub type Variables = BTreeMap<String, String>;
