//! Problems in wire bytes.

use super::varint::{Tag, Varint};

/// The reason why records could not be read to the end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{kind}")]
pub struct Problem {
    /// Offset of the first wrong byte; for truncation, the start of the truncated part.
    pub offset: usize,
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The preceding tag, if one could be read.
    pub tag: Option<Tag>,
    /// The preceding length, if one could be read.
    pub length: Option<Varint>,
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A field number and wire type.
    Tag,
    /// The value of a varint field.
    Varint,
    /// The length of a payload.
    Length,
    /// An 8-byte value.
    I64,
    /// A 4-byte value.
    I32,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Tag => "the tag",
            Part::Varint => "the varint",
            Part::Length => "the length",
            Part::I64 => "the 8-byte value",
            Part::I32 => "the 4-byte value",
        }
    }
}

/// A kind of problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    /// The bytes end within a part of a record.
    #[error("{} is truncated: {}", .part.name(), only(*.left))]
    Truncated {
        /// The truncated part.
        part: Part,
        /// Number of bytes available.
        left: usize,
    },
    /// A length extends beyond the end.
    #[error("the length is {length} bytes, but {}", only(*.left))]
    LengthTooLong {
        /// The declared length.
        length: u64,
        /// Number of bytes available.
        left: usize,
    },
    /// A varint has more than ten bytes.
    #[error("{} is longer than 10 bytes", .0.name())]
    VarintTooLong(Part),
    /// A field number is 0 or more than 2²⁹ - 1.
    #[error("invalid field number {0}; expected 1 to 536870911")]
    FieldNumber(u64),
    /// A wire type is 6 or 7.
    #[error("invalid wire type {wire_type} of field {number}; expected 0 to 5")]
    WireType {
        /// The field number.
        number: u64,
        /// The wire type.
        wire_type: u8,
    },
    /// An end tag without an open group.
    #[error("end of group {0}, which is not open")]
    UnexpectedEndGroup(u32),
    /// An end tag of a group that is not the innermost.
    #[error("end of group {end}, but group {open} is open")]
    MismatchedEndGroup {
        /// The innermost open group.
        open: u32,
        /// The group of the end tag.
        end: u32,
    },
    /// The bytes end within a group.
    #[error("group {0} is not closed")]
    UnterminatedGroup(u32),
    /// A string that must be UTF-8 is not.
    #[error("{0} is a string, but its value is not UTF-8")]
    NotUtf8(String),
    /// Packed values end with an incomplete one.
    #[error("{0} has {1} values, but the last one is incomplete")]
    IncompletePacked(String, &'static str),
    /// Groups exceed [`super::Limits::depth_max`].
    #[error("groups are nested {0} levels deep, the limit of decoders")]
    TooDeep(usize),
    /// Records exceed [`super::Limits::records_max`].
    #[error("more than {0} records; the rest is not decoded")]
    TooManyRecords(usize),
}

fn only(bytes: usize) -> String {
    match bytes {
        0 => "no bytes are left".to_owned(),
        1 => "only 1 byte is left".to_owned(),
        _ => format!("only {bytes} bytes are left"),
    }
}
