//! Failure of a command: a line on stderr and an exit code.

use std::error::Error;
use std::io;

use thalweg_dynamic::files::FilesError;
use thalweg_dynamic::{LookUpError, RequestError};
use thalweg_lab::stacks::StacksError;
use thalweg_load::spec::SpecError;

/// The run failed.
const FAILED: u8 = 1;
/// The arguments are invalid.
const BAD_ARGUMENTS: u8 = 2;
/// Interrupted by the user: 128 plus SIGINT, as in shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// A nonzero end of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The failure, its subject, and what to do.
    pub(crate) message: String,
    pub(crate) code: u8,
}

impl From<LookUpError> for Failure {
    fn from(error: LookUpError) -> Self {
        match error {
            LookUpError::Unknown(_) => Self::bad_arguments(error),
            _ => Self::failed(error),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Invalid(_) => Self::bad_arguments(error),
            _ => Self::failed(error),
        }
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::DescriptorSet(_) => Self::bad_arguments(error),
            _ => Self::failed(error),
        }
    }
}

impl From<StacksError> for Failure {
    fn from(error: StacksError) -> Self {
        match error {
            StacksError::Misuse(_) => Self::bad_arguments(error),
            StacksError::Failed(_) => Self::failed(error),
        }
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        if error.is_misuse() { Self::bad_arguments(error) } else { Self::failed(error) }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used with `map_err`")]
impl Failure {
    pub(crate) fn failed(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: FAILED }
    }

    /// Returns the failure of a setting, such as certificates. A file that cannot be read is not a bad argument.
    pub(crate) fn setting(error: impl Error) -> Self {
        let is_io = error.source().is_some_and(<dyn Error>::is::<io::Error>);
        if is_io { Self::failed(error) } else { Self::bad_arguments(error) }
    }

    pub(crate) fn bad_arguments(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: BAD_ARGUMENTS }
    }

    /// Returns a failure without message and with exit code 0, for when the reader of stdout has closed it.
    pub(crate) fn quiet() -> Self {
        Self { message: String::new(), code: 0 }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.message.is_empty() && self.code == 0
    }

    pub(crate) fn interrupted(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: INTERRUPTED }
    }
}
