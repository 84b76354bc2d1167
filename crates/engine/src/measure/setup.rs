//! Measurement settings of an application: [`Setup`].

use super::metrics::Metrics;
use super::traces::Traces;

/// Metrics and traces to record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    pub(crate) metrics: Option<Metrics>,
    /// On a server only for calls whose handler never starts: its methods have traces of their own.
    pub(crate) traces: Option<Traces>,
}
