//! Input that is not in the order of a message that was written in one go, and how the printer says so.

use crate::transcode::error::PrintError;
use crate::wire::WireError;

/// Why the printer did not come to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The records are not in the order of a message that was written in one go.
    Merge,
    /// Something is missing, unless it comes behind: then merging brings it.
    Incomplete(Box<PrintError>),
    Error(Box<PrintError>),
}

impl Stop {
    /// What there is to say when everything is in order.
    pub(in crate::transcode) fn into_error(self) -> PrintError {
        match self {
            Stop::Incomplete(error) | Stop::Error(error) => *error,
            // What was encoded in one go is in order.
            Stop::Merge => PrintError::Unordered,
        }
    }
}

impl From<PrintError> for Stop {
    #[cold]
    fn from(error: PrintError) -> Stop {
        Stop::Error(Box::new(error))
    }
}

impl From<WireError> for Stop {
    #[cold]
    fn from(error: WireError) -> Stop {
        Stop::Error(Box::new(PrintError::Decode(error.into())))
    }
}

/// Brings a message into order: decodes and encodes it.
pub(crate) type Merge<'s> = &'s dyn Fn(u32, &[u8]) -> Result<Vec<u8>, PrintError>;
