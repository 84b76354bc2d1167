//! What can be wrong with bytes that should be records.

use super::varint::{Tag, Varint};

/// Why records could not be read to the end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{kind}")]
pub struct Problem {
    /// Of the first byte that is wrong; of something truncated, of its first byte.
    pub offset: usize,
    /// What is wrong.
    pub kind: ProblemKind,
    /// The tag before it, if there is one that could be read.
    pub tag: Option<Tag>,
    /// The length before it, if there is one that could be read.
    pub length: Option<Varint>,
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Field number and wire type.
    Tag,
    /// The value of a varint field.
    Varint,
    /// How long a payload is.
    Length,
    /// 8 bytes.
    I64,
    /// 4 bytes.
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

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    /// The bytes end within something.
    #[error("{} is cut off: {}", .part.name(), only(*.left))]
    Truncated {
        /// Within what.
        part: Part,
        /// How many bytes of it are there.
        left: usize,
    },
    /// A length reaches behind the end.
    #[error("the length says {length} bytes, but {}", only(*.left))]
    Short {
        /// What it says.
        length: u64,
        /// How many bytes there are.
        left: usize,
    },
    /// More than ten bytes of varint.
    #[error("{} goes on after 10 bytes, which no 64-bit number needs", .0.name())]
    Endless(Part),
    /// 0, or more than 2²⁹ - 1.
    #[error("{0} is no field number: those are 1 to 536870911")]
    FieldNumber(u64),
    /// 6 or 7.
    #[error("wire type {wire_type} (of field {number}) means nothing: there are 0 to 5")]
    WireType {
        /// The field.
        number: u64,
        /// Its wire type.
        wire_type: u8,
    },
    /// The end of a group that has not begun.
    #[error("group {0} ends here, but has not begun")]
    NotBegun(u32),
    /// The end of another group.
    #[error("group {ends} ends here, but it is group {begun} that has begun")]
    OtherGroup {
        /// The innermost one.
        begun: u32,
        /// The one whose end is here.
        ends: u32,
    },
    /// The bytes end within a group.
    #[error("group {0} does not end")]
    NotEnded(u32),
    /// A string of a field whose strings decoders check.
    #[error("{0} is a string, and this is no UTF-8")]
    NotUtf8(String),
    /// A row of values, the last of which is not whole.
    #[error("{0} has {1} values, and this does not end with a whole one")]
    Packed(String, &'static str),
    /// [`super::Limits::depth_max`]
    #[error("a group lies {0} levels deep, and decoders go no deeper")]
    TooDeep(usize),
    /// [`super::Limits::records_max`]
    #[error("there are more than {0} records; what follows is not taken apart")]
    TooMany(usize),
}

fn only(bytes: usize) -> String {
    match bytes {
        0 => "there are no more bytes".to_owned(),
        1 => "there is only 1 byte more".to_owned(),
        _ => format!("there are only {bytes} bytes more"),
    }
}
