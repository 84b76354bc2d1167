//! Input that is not in encoding order, and how the printer reports it.

use crate::transcode::error::PrintError;
use crate::wire::WireError;

/// The reason why the printer stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The wire records are not in the order in which a message is encoded.
    Merge,
    /// A field is missing so far; merging may find it later in the input.
    Incomplete(Box<PrintError>),
    Error(Box<PrintError>),
}

impl Stop {
    /// Returns the error to report for input in order.
    pub(in crate::transcode) fn into_error(self) -> PrintError {
        match self {
            Stop::Incomplete(error) | Stop::Error(error) => *error,
            // Encoder output is always in order.
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

/// Normalises a message by decoding and encoding it.
pub(crate) type Merge<'s> = &'s dyn Fn(u32, &[u8]) -> Result<Vec<u8>, PrintError>;
