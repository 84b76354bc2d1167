//! Input that is not in encoding order, and how the printer reports it.

use crate::transcode::error::PrintError;
use crate::wire::WireError;

/// The reason why the printer stopped.
#[derive(Debug)]
pub(crate) enum PrintInterrupt {
    /// The wire records are not in the order in which a message is encoded.
    Unordered,
    /// A field is missing so far; merging may find it later in the input.
    Incomplete(Box<PrintError>),
    Error(Box<PrintError>),
}

impl PrintInterrupt {
    /// Returns the error to report for input in order.
    pub(in crate::transcode) fn into_error(self) -> PrintError {
        match self {
            PrintInterrupt::Incomplete(error) | PrintInterrupt::Error(error) => *error,
            // Encoder output is always in order.
            PrintInterrupt::Unordered => PrintError::Unordered,
        }
    }
}

impl From<PrintError> for PrintInterrupt {
    #[cold]
    fn from(error: PrintError) -> PrintInterrupt {
        PrintInterrupt::Error(Box::new(error))
    }
}

impl From<WireError> for PrintInterrupt {
    #[cold]
    fn from(error: WireError) -> PrintInterrupt {
        PrintInterrupt::Error(Box::new(PrintError::Decode(error.into())))
    }
}

/// Normalises a message by decoding and encoding it.
pub(crate) type Normalize<'s> = &'s dyn Fn(u32, &[u8]) -> Result<Vec<u8>, PrintError>;
