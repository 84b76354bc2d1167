//! Errors of load specifications.

use thalweg_dynamic::LookUpError;

use crate::connect::StartError;

/// Reason why a load cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The load cannot be made as specified.
    #[error("{0}")]
    Invalid(String),
    /// A file cannot be read.
    #[error("{0}")]
    Failed(String),
    /// A method cannot be called.
    #[error(transparent)]
    Method(#[from] LookUpError),
    /// A server does not accept calls.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An error in a step of a scenario.
    #[error("{step}: {error}")]
    Step {
        /// Flow and step.
        step: String,
        /// The error.
        error: Box<Self>,
    },
}

#[expect(clippy::needless_pass_by_value, reason = "used with `map_err`")]
impl SpecError {
    pub(super) fn invalid(message: impl ToString) -> Self {
        Self::Invalid(message.to_string())
    }

    pub(super) fn failed(message: impl ToString) -> Self {
        Self::Failed(message.to_string())
    }

    /// Returns whether the arguments are wrong.
    pub fn is_misuse(&self) -> bool {
        match self {
            Self::Invalid(_) | Self::Method(LookUpError::Unknown(_)) => true,
            Self::Start(error) => error.is_misuse(),
            Self::Step { error, .. } => error.is_misuse(),
            Self::Failed(_) | Self::Method(_) => false,
        }
    }
}
