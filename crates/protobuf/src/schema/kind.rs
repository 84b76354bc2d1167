//! The types of fields.

use std::fmt;

use crate::wire::WireType;

/// The type of a field, or of a repeated field's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of the language")]
pub enum Kind {
    Double = 1,
    Float = 2,
    Int64 = 3,
    Uint64 = 4,
    Int32 = 5,
    Fixed64 = 6,
    Fixed32 = 7,
    Bool = 8,
    String = 9,
    /// A message between a start and an end tag: proto2's groups, and `message_encoding = DELIMITED`.
    Group = 10,
    /// A message with a length prefix.
    Message = 11,
    Bytes = 12,
    Uint32 = 13,
    Enum = 14,
    Sfixed32 = 15,
    Sfixed64 = 16,
    Sint32 = 17,
    Sint64 = 18,
}

impl Kind {
    /// All kinds, in the order of their numbers in `descriptor.proto`, which start at 1.
    pub const ALL: [Kind; 18] = [
        Kind::Double,
        Kind::Float,
        Kind::Int64,
        Kind::Uint64,
        Kind::Int32,
        Kind::Fixed64,
        Kind::Fixed32,
        Kind::Bool,
        Kind::String,
        Kind::Group,
        Kind::Message,
        Kind::Bytes,
        Kind::Uint32,
        Kind::Enum,
        Kind::Sfixed32,
        Kind::Sfixed64,
        Kind::Sint32,
        Kind::Sint64,
    ];

    /// Returns the kind with this number in `descriptor.proto`.
    pub(crate) fn from_number(number: i32) -> Option<Kind> {
        Kind::ALL.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }

    /// Returns the wire type of one value.
    pub const fn wire_type(self) -> WireType {
        match self {
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => WireType::Fixed64,
            Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => WireType::Fixed32,
            Kind::String | Kind::Message | Kind::Bytes => WireType::Len,
            Kind::Group => WireType::StartGroup,
            _ => WireType::Varint,
        }
    }

    /// Whether repeated values may be packed: numbers, booleans and enums.
    pub const fn is_packable(self) -> bool {
        !matches!(self, Kind::String | Kind::Bytes | Kind::Message | Kind::Group)
    }

    /// Whether the values are messages.
    pub const fn is_message(self) -> bool {
        matches!(self, Kind::Message | Kind::Group)
    }

    /// Whether it may be the type of a map key: integers, booleans and strings.
    pub const fn is_map_key(self) -> bool {
        !matches!(self, Kind::Double | Kind::Float | Kind::Bytes | Kind::Message | Kind::Group | Kind::Enum)
    }

    /// Returns the keyword of the language; `message`, `group` or `enum` for named types.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Double => "double",
            Kind::Float => "float",
            Kind::Int64 => "int64",
            Kind::Uint64 => "uint64",
            Kind::Int32 => "int32",
            Kind::Fixed64 => "fixed64",
            Kind::Fixed32 => "fixed32",
            Kind::Bool => "bool",
            Kind::String => "string",
            Kind::Group => "group",
            Kind::Message => "message",
            Kind::Bytes => "bytes",
            Kind::Uint32 => "uint32",
            Kind::Enum => "enum",
            Kind::Sfixed32 => "sfixed32",
            Kind::Sfixed64 => "sfixed64",
            Kind::Sint32 => "sint32",
            Kind::Sint64 => "sint64",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The number of values of a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cardinality {
    /// Zero or one.
    Optional,
    /// Exactly one; otherwise the message is incomplete: proto2's `required`, and `field_presence = LEGACY_REQUIRED`.
    Required,
    /// Any number, in order.
    Repeated,
}

/// Messages of `google/protobuf/*.proto` with their own JSON form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names are those of the messages")]
pub enum WellKnown {
    Any,
    Timestamp,
    Duration,
    FieldMask,
    Struct,
    Value,
    ListValue,
    Empty,
    /// `DoubleValue`, `StringValue`, …: one field `value` with number 1.
    Wrapper,
}

impl WellKnown {
    pub(super) fn of(full_name: &str) -> Option<WellKnown> {
        Some(match full_name.strip_prefix("google.protobuf.")? {
            "Any" => WellKnown::Any,
            "Timestamp" => WellKnown::Timestamp,
            "Duration" => WellKnown::Duration,
            "FieldMask" => WellKnown::FieldMask,
            "Struct" => WellKnown::Struct,
            "Value" => WellKnown::Value,
            "ListValue" => WellKnown::ListValue,
            "Empty" => WellKnown::Empty,
            "DoubleValue" | "FloatValue" | "Int64Value" | "UInt64Value" | "Int32Value" | "UInt32Value"
            | "BoolValue" | "StringValue" | "BytesValue" => WellKnown::Wrapper,
            _ => return None,
        })
    }
}
