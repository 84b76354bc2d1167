//! Errors in wire bytes.

use thiserror::Error;

/// Error for invalid wire bytes, with its offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("at byte {offset}: {kind}")]
pub struct WireError {
    /// Start of the tag, varint or value that could not be read, as an offset in the input.
    pub offset: usize,
    /// The kind of error.
    pub kind: WireErrorKind,
}

/// Kinds of errors in wire bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// The input or the enclosing message ends inside a tag, a varint or a value.
    #[error("the input ends inside a value")]
    Truncated,
    /// A varint has more than ten bytes or 64 bits.
    #[error("a varint is longer than 64 bits")]
    VarintTooLong,
    /// A tag has more than five bytes or 32 bits.
    #[error("a tag is longer than 32 bits")]
    TagTooLong,
    /// The field number is 0.
    #[error("field number 0 is not allowed")]
    FieldNumber,
    /// The wire type is 6 or 7.
    #[error("invalid wire type 6 or 7")]
    WireType,
    /// A length extends beyond the end of the input or the enclosing message.
    #[error("a length exceeds the rest of its message")]
    Length,
    /// An end tag without an open group, or not of the innermost group.
    #[error("the end of a group does not match the open group")]
    EndGroup,
    /// The input ends inside a group.
    #[error("a group is not closed")]
    GroupOpen,
    /// Groups or messages are nested deeper than allowed.
    #[error("messages are nested deeper than allowed")]
    TooDeep,
}
