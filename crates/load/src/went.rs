//! What came of a call.

use thalweg::Status;

use crate::echo::Stages;
use crate::traffic::Traffic;

/// How a call went, but for how long it took.
#[derive(Debug, Default)]
pub(crate) struct Went {
    /// What is to be counted with the call. Messages of a stream are counted when they come.
    pub(crate) traffic: Traffic,
    pub(crate) failure: Option<Failure>,
    /// What its stages took, if it was divided.
    pub(crate) stages: Option<Box<Stages>>,
    /// A message of a stream has gone, or of a stream one way has come.
    pub(crate) has_moved: bool,
}

impl Went {
    pub(crate) fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}

/// Why a call has not gone well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It ended so.
    Status(Status),
    /// It brought something else than what was expected.
    Check(String),
}
