//! Values that steps of a flow keep for later steps.

use std::collections::BTreeMap;

/// Values by name, used in templates as `{{.NAME}}`.
pub type Variables = BTreeMap<String, String>;
