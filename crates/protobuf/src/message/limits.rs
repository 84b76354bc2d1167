//! Bounds for what a peer sends, and what is said when one is reached.

use thiserror::Error;

use crate::wire::{WireError, WireErrorKind};

/// Bounds for decoding one message. Each has a default that fits what services exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Messages and groups that may lie in each other, the root not counted; 100 by default, as everywhere.
    pub depth_max: usize,
    /// Bytes of memory that a message may take whatever the length of its input; 4 MiB by default.
    ///
    /// A record takes eight bytes for each field of its type, set or not, so an empty message in a list, two bytes
    /// on the wire, takes as much as a full one. Small inputs may do that freely.
    pub memory_free_bytes: usize,
    /// Bytes of memory that each byte of the input allows besides; 32 by default. Numbers that are packed take up to
    /// eight, messages of ordinary fields from two to six.
    pub memory_per_input_byte: usize,
    /// Bytes of memory that a message may take at all; 2 GiB by default.
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
    /// The most words that an input of `len` bytes may lead to.
    pub(super) fn words_max(&self, len: usize) -> usize {
        let bytes = len.saturating_mul(self.memory_per_input_byte).saturating_add(self.memory_free_bytes);
        // Addresses in the arena have 32 bits.
        (bytes.min(self.memory_max_bytes) / 8).min(u32::MAX as usize)
    }
}

/// Inputs are as long as this at most: 2 GiB less one byte, which is Protobuf's own bound.
pub(super) const INPUT_LEN_MAX: usize = (1 << 31) - 1;

/// Bytes that are not a message of the type, or more than [`Limits`] allow.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are no Protobuf, or messages lie in each other too deep.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A string that must be UTF-8, and is not.
    #[error("at byte {offset}: the string of {field} is not UTF-8")]
    Utf8 {
        /// Where the string begins, from the start of the input.
        offset: usize,
        /// The full name of the field.
        field: String,
    },
    /// The message would take more memory than its length allows.
    #[error("at byte {offset}: the message would take more than {max} bytes of memory")]
    Memory {
        /// How far decoding had come.
        offset: usize,
        /// The bound for this input, by [`Limits`].
        max: usize,
    },
    /// The input is longer than any message can be.
    #[error("{len} bytes are more than a message can have: 2147483647")]
    TooLong {
        /// Of the input.
        len: usize,
    },
}

impl DecodeError {
    /// Where in the input the problem is, in bytes from its start.
    pub fn offset(&self) -> usize {
        match self {
            DecodeError::Wire(error) => error.offset,
            DecodeError::Utf8 { offset, .. } | DecodeError::Memory { offset, .. } => *offset,
            DecodeError::TooLong { .. } => 0,
        }
    }
}

/// Errors travel boxed through the decoder: what returns nothing when all is well returns in a register.
pub(super) type Fault = Box<DecodeError>;

impl From<WireError> for Fault {
    #[cold]
    fn from(error: WireError) -> Fault {
        Box::new(DecodeError::Wire(error))
    }
}

#[cold]
#[expect(clippy::unnecessary_box_returns, reason = "a fault is boxed from the start")]
pub(super) fn wire(offset: usize, kind: WireErrorKind) -> Fault {
    Box::new(DecodeError::Wire(WireError { offset, kind }))
}
