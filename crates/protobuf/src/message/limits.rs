//! Decoding limits and decoding errors.

use thiserror::Error;

use crate::wire::{WireError, WireErrorKind};

/// Limits for decoding one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum nesting depth of messages and groups, not counting the root. Default: 100, as in other implementations.
    pub depth_max: usize,
    /// Bytes of memory that a message may use regardless of its input's length. Default: 4 MiB.
    ///
    /// A record takes eight bytes for each field of its type, set or not. So an empty message in a list, two bytes on
    /// the wire, takes as much memory as a full one. This allowance lets small inputs do that.
    pub memory_free_bytes: usize,
    /// Additional bytes of memory allowed per input byte. Default: 32. Packed numbers use up to eight, messages with
    /// ordinary fields two to six.
    pub memory_per_input_byte: usize,
    /// Maximum memory of a message, in bytes. Default: 2 GiB.
    pub memory_max_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            depth_max: 100,
            memory_free_bytes: 4 << 20,
            memory_per_input_byte: 32,
            memory_max_bytes: 2 << 30,
        }
    }
}

impl Limits {
    /// Returns the maximum number of words for an input of `len` bytes.
    pub(super) fn words_max(&self, len: usize) -> usize {
        let bytes = len.saturating_mul(self.memory_per_input_byte).saturating_add(self.memory_free_bytes);
        // Addresses in the arena have 32 bits.
        (bytes.min(self.memory_max_bytes) / 8).min(u32::MAX as usize)
    }
}

/// Maximum length of an input: 2 GiB less one byte, which is Protobuf's own limit.
pub(super) const INPUT_LEN_MAX: usize = (1 << 31) - 1;

/// A decoding error: the bytes are not a valid message of the type, or they exceed the [`Limits`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not valid Protobuf, or messages are nested too deeply.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A string field that requires UTF-8 holds other bytes.
    #[error("at byte {offset}: the string of {field} is not UTF-8")]
    Utf8 {
        /// Offset of the string in the input.
        offset: usize,
        /// The full name of the field.
        field: String,
    },
    /// The message would use more memory than the limits allow for its length.
    #[error("at byte {offset}: the message would take more than {max} bytes of memory")]
    Memory {
        /// Offset in the input where decoding stopped.
        offset: usize,
        /// Limit for this input, in bytes.
        max: usize,
    },
    /// The input exceeds the maximum length of a message.
    #[error("message of {len} bytes exceeds the maximum of 2147483647")]
    TooLong {
        /// Length of the input, in bytes.
        len: usize,
    },
}

impl DecodeError {
    /// Returns the offset of the problem, in bytes from the start of the input.
    pub fn offset(&self) -> usize {
        match self {
            DecodeError::Wire(error) => error.offset,
            DecodeError::Utf8 { offset, .. } | DecodeError::Memory { offset, .. } => *offset,
            DecodeError::TooLong { .. } => 0,
        }
    }
}

/// Decoder errors are boxed, so that a result without a value fits in a register.
pub(super) type BoxedDecodeError = Box<DecodeError>;

impl From<WireError> for BoxedDecodeError {
    #[cold]
    fn from(error: WireError) -> BoxedDecodeError {
        Box::new(DecodeError::Wire(error))
    }
}

#[cold]
#[expect(clippy::unnecessary_box_returns, reason = "the error is boxed from the start")]
pub(super) fn wire(offset: usize, kind: WireErrorKind) -> BoxedDecodeError {
    Box::new(DecodeError::Wire(WireError { offset, kind }))
}
