//! What can be wrong with bytes that should be Protobuf.

use thiserror::Error;

/// Bytes that are no Protobuf, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("at byte {offset}: {kind}")]
pub struct WireError {
    /// Where the tag, varint or value begins that could not be read; counted from the start of the input.
    pub offset: usize,
    /// What is wrong with it.
    pub kind: WireErrorKind,
}

/// What was wrong with the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// The input, or the message around, ends inside a tag, a varint or a value.
    #[error("the input ends inside a value")]
    Truncated,
    /// More than ten bytes, or more than 64 bits.
    #[error("a varint is longer than 64 bits")]
    VarintTooLong,
    /// A tag of more than five bytes or 32 bits.
    #[error("a tag is longer than 32 bits")]
    TagTooLong,
    /// Field number 0.
    #[error("field number 0 is not allowed")]
    FieldNumber,
    /// Wire types 6 and 7.
    #[error("wire types 6 and 7 do not exist")]
    WireType,
    /// A length that goes beyond the end of the input, or of the message around.
    #[error("a length goes beyond the end of its message")]
    Length,
    /// The end of a group that was not open, or of another one than the innermost.
    #[error("a group ends that is not the one that is open")]
    EndGroup,
    /// The input ended inside a group.
    #[error("a group does not end")]
    GroupOpen,
    /// Groups or messages in each other, deeper than allowed.
    #[error("messages lie in each other deeper than allowed")]
    TooDeep,
}
