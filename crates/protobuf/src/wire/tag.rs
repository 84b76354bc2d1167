//! Tags: field number and wire type.

use std::fmt;

use super::error::WireErrorKind;

/// Largest field number; the smallest is 1.
pub const NUMBER_MAX: u32 = (1 << 29) - 1;

/// Maximum length of a tag, which has 32 bits, in bytes.
pub(super) const TAG_LEN_MAX: usize = 5;

/// The encoding of a value: the low three bits of its tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum WireType {
    /// A varint: integers, booleans, enums.
    Varint = 0,
    /// Eight bytes, little-endian: `fixed64`, `sfixed64`, `double`.
    Fixed64 = 1,
    /// A length in bytes as a varint, and that many bytes: strings, bytes, messages, packed numbers.
    Len = 2,
    /// The start of a group; its records follow, up to the end tag with the same number.
    StartGroup = 3,
    /// The end of a group.
    EndGroup = 4,
    /// Four bytes, little-endian: `fixed32`, `sfixed32`, `float`.
    Fixed32 = 5,
}

impl WireType {
    /// Returns the wire type in the low three bits of a tag, or `None` for 6 and 7.
    pub fn from_bits(bits: u32) -> Option<WireType> {
        match bits & 7 {
            0 => Some(WireType::Varint),
            1 => Some(WireType::Fixed64),
            2 => Some(WireType::Len),
            3 => Some(WireType::StartGroup),
            4 => Some(WireType::EndGroup),
            5 => Some(WireType::Fixed32),
            _ => None,
        }
    }
}

impl fmt::Display for WireType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            WireType::Varint => "varint",
            WireType::Fixed64 => "64-bit",
            WireType::Len => "length-delimited",
            WireType::StartGroup => "start of group",
            WireType::EndGroup => "end of group",
            WireType::Fixed32 => "32-bit",
        })
    }
}

/// A field number and the wire type of its value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag {
    /// Field number, from 1 to 2^29 - 1.
    pub number: u32,
    /// Encoding of the value.
    pub wire_type: WireType,
}

impl Tag {
    /// Creates a tag; `number` must be from 1 to 2^29 - 1.
    pub const fn new(number: u32, wire_type: WireType) -> Tag {
        Tag { number, wire_type }
    }

    /// Returns the value of its varint: `(number << 3) | wire type`.
    pub const fn bits(self) -> u32 {
        (self.number << 3) | self.wire_type as u32
    }

    /// Parses the value of a tag's varint.
    pub(crate) fn from_bits(bits: u32) -> Result<Tag, WireErrorKind> {
        let number = bits >> 3;
        if number == 0 {
            return Err(WireErrorKind::FieldNumber);
        }
        match WireType::from_bits(bits) {
            Some(wire_type) => Ok(Tag { number, wire_type }),
            None => Err(WireErrorKind::WireType),
        }
    }
}
