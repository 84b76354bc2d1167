//! Outcome of a call.

use thalweg::Status;

use crate::echo::Stages;
use crate::traffic::Traffic;

/// Outcome of a call, without its duration.
#[derive(Debug, Default)]
pub(crate) struct CallOutcome {
    /// Traffic to count with the call. Messages of a stream are counted as they are received.
    pub(crate) traffic: Traffic,
    pub(crate) failure: Option<Failure>,
    /// Durations of its stages, if it was divided.
    pub(crate) stages: Option<Box<Stages>>,
    /// Whether a stream has sent a message, or a one-way stream has received one.
    pub(crate) has_traffic: bool,
}

impl CallOutcome {
    pub(crate) fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// An unexpected status.
    Status(Status),
    /// An unexpected response.
    Check(String),
}
