//! What an application has asked for: [`Setup`].

use super::metrics::Metrics;
use super::traces::Traces;

/// What is to be measured and traced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    pub(crate) metrics: Option<Metrics>,
    /// A server's go with its methods: here they are of calls that no handler begins.
    pub(crate) traces: Option<Traces>,
}
