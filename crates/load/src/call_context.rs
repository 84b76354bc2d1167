//! Context of a call.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use thalweg::CallOptions;

use crate::variables::Variables;
use crate::worker_counters::WorkerCounters;

#[derive(Debug)]
pub(crate) struct CallContext<'w> {
    pub(crate) worker: usize,
    /// Number of its start.
    pub(crate) number: u64,
    /// Values kept by earlier steps; `None` if there are none.
    pub(crate) variables: Option<Arc<Variables>>,
    /// Options in place of the call's.
    pub(crate) options: Option<&'w CallOptions>,
    /// Time at which calls in flight are cancelled and fail.
    pub(crate) cut_at: Option<Instant>,
    /// End of the run, in ns of its clock.
    pub(crate) until_ns: u64,
    /// Time in which finished calls and stream messages count, in ns of the run's clock.
    pub(crate) counted: Range<u64>,
    pub(crate) counters: &'w Arc<WorkerCounters>,
    /// Whether each call has its own connection.
    pub(crate) connects_per_call: bool,
}

static NO_VARIABLES: Variables = Variables::new();

impl<'w> CallContext<'w> {
    /// Returns the options to use in place of the call's own.
    pub(crate) fn options<'c>(&self, own: &'c CallOptions) -> &'c CallOptions
    where
        'w: 'c,
    {
        self.options.unwrap_or(own)
    }

    pub(crate) fn variables(&self) -> &Variables {
        self.variables.as_deref().unwrap_or(&NO_VARIABLES)
    }

    pub(crate) fn variables_mut(&mut self) -> &mut Variables {
        Arc::make_mut(self.variables.get_or_insert_default())
    }
}
