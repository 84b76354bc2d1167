//! For whom a call is made.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::counting::Counting;
use crate::variables::Variables;

/// For whom a call is made.
#[derive(Debug)]
pub(crate) struct Turn<'w> {
    pub(crate) worker: usize,
    /// The start that it belongs to.
    pub(crate) number: u64,
    /// What steps before have kept; `None` is nothing.
    pub(crate) variables: Option<Arc<Variables>>,
    /// What is under way then is cancelled, and has failed.
    pub(crate) cut_at: Option<Instant>,
    /// When the run ends, ns of its clock.
    pub(crate) until_ns: u64,
    /// What ends then is counted, and what comes then of a stream; ns of the run's clock.
    pub(crate) counted: Range<u64>,
    pub(crate) counting: &'w Arc<Counting>,
    /// Each call has a connection of its own.
    pub(crate) is_afresh: bool,
}

static NO_VARIABLES: Variables = Variables::new();

impl Turn<'_> {
    pub(crate) fn variables(&self) -> &Variables {
        self.variables.as_deref().unwrap_or(&NO_VARIABLES)
    }

    pub(crate) fn variables_mut(&mut self) -> &mut Variables {
        Arc::make_mut(self.variables.get_or_insert_default())
    }
}
