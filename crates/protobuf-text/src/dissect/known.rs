//! The meaning of records according to a schema.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};

use thalweg_protobuf as protobuf;
use thalweg_protobuf::wire::{WireType, unzigzag};
use thalweg_protobuf::{EnumValue, Field, Kind, MessageType, Oneof};

use super::problem::{Problem, ProblemKind};
use super::record::{Message, Record, Value, is_packed};
use super::span::Span;
use super::varint::{read_varint, wire_type_name};

/// The meaning of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<'a> {
    /// One value.
    Scalar(Scalar<'a>),
    /// Packed values, each with its position.
    Packed(Vec<(Span, Scalar<'a>)>),
    /// A message; [`Value::message`] returns it.
    Message(MessageType<'a>),
}

/// One value that is not a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// A value of a signed type.
    Int(i64),
    /// A value of `sint32` or `sint64`: the number and its zigzag varint.
    Zigzag(i64, u64),
    /// A value of an unsigned type.
    Uint(u64),
    /// `bool`
    Bool(bool),
    /// `float`
    Float(f32),
    /// `double`
    Double(f64),
    /// `string`
    String(&'a str),
    /// `bytes`, or a string that is not UTF-8.
    Bytes(&'a [u8]),
    /// An enum value: its number, and its name if it has one.
    Enum(i32, Option<&'a str>),
}

impl Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(number) | Scalar::Zigzag(number, _) => write!(f, "{number}"),
            Scalar::Uint(number) => write!(f, "{number}"),
            Scalar::Bool(truth) => write!(f, "{truth}"),
            Scalar::Float(number) => write!(f, "{number:?}"),
            Scalar::Double(number) => write!(f, "{number:?}"),
            Scalar::String(text) => write!(f, "{text:?}"),
            Scalar::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Scalar::Enum(_, Some(name)) => f.write_str(name),
            Scalar::Enum(number, None) => write!(f, "{number}"),
        }
    }
}

/// A remark about a record, in addition to its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark<'s> {
    /// The message's type has no field of this number.
    Unknown,
    /// The wire type does not match the field, so decoders treat it as unknown.
    WireType {
        /// Wire type of the record.
        found: WireType,
        /// Wire type of the field.
        expected: WireType,
    },
    /// The number is not in the closed enum, so decoders treat the field as unknown.
    ClosedEnum,
    /// The number has more bits than the type; decoders drop them.
    DroppedBits,
    /// The field is declared packed but encoded unpacked; decoders accept both.
    Unpacked,
    /// The field is encoded packed but not declared so; decoders accept both.
    Packed,
    /// The value is the default, which need not be encoded.
    Default,
    /// The field occurred before; the last value wins.
    Duplicate,
    /// The message occurred before; the two are merged.
    Merged,
    /// Another field of the same oneof occurred before; this one clears it.
    Clears(Oneof<'s>, Field<'s>),
}

impl Display for Remark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Unknown => f.write_str("not in the schema"),
            Remark::WireType { found, expected } => {
                let [found, expected] = [found, expected].map(|wire_type| wire_type_name(*wire_type));
                write!(f, "wire type {found}, expected {expected}: decoders treat it as an unknown field")
            }
            Remark::ClosedEnum => {
                f.write_str("not a value of the closed enum: decoders treat it as an unknown field")
            }
            Remark::DroppedBits => f.write_str("exceeds the type: the excess bits are dropped"),
            Remark::Unpacked => f.write_str("not packed, but declared packed: decoders accept both"),
            Remark::Packed => f.write_str("packed, but not declared packed: decoders accept both"),
            Remark::Default => f.write_str("default value, could be omitted"),
            Remark::Duplicate => f.write_str("duplicate: the last value counts"),
            Remark::Merged => f.write_str("duplicate: the two are merged"),
            Remark::Clears(oneof, field) => {
                write!(f, "clears {}, which is also in oneof {}", field.name(), oneof.name())
            }
        }
    }
}

/// Returns a field's name; for an extension, its full name in brackets.
pub fn name(field: Field<'_>) -> String {
    if field.is_extension() { format!("[{}]", field.full_name()) } else { field.name().to_owned() }
}

/// Returns a field's declaration as in a `.proto` file, such as `repeated int32 ids = 4`, without options.
pub fn declaration(field: Field<'_>) -> String {
    let kind = match field.map_entry() {
        Some((key, value)) => format!("map<{}, {}>", type_name(key), type_name(value)),
        None if field.is_repeated() => format!("repeated {}", type_name(field)),
        None => type_name(field),
    };
    format!("{kind} {} = {}", name(field), field.number())
}

/// Returns the type of a field's values, without the package if the field's message is in the same one.
pub fn type_name(field: Field<'_>) -> String {
    let full = match (field.message_type(), field.enum_type()) {
        (Some(message), _) => message.full_name(),
        (_, Some(enumeration)) => enumeration.full_name(),
        _ => return field.kind().name().to_owned(),
    };
    let package = field.message().file().package();
    let short = full.strip_prefix(package).and_then(|rest| rest.strip_prefix('.'));
    short.filter(|_| !package.is_empty()).unwrap_or(full).to_owned()
}

/// Returns a field's declared default as text, or `None` if it is zero or empty.
pub fn declared_default(field: Field<'_>) -> Option<String> {
    let unset = protobuf::Message::new(field.message());
    let default = match unset.as_ref().get(field)? {
        protobuf::Value::Bool(truth) => truth.then_some(Scalar::Bool(truth)),
        protobuf::Value::F32(number) => (number.to_bits() != 0).then_some(Scalar::Float(number)),
        protobuf::Value::F64(number) => (number.to_bits() != 0).then_some(Scalar::Double(number)),
        protobuf::Value::Enum(number) => (number != 0).then(|| of_bits(field, number as u64)),
        protobuf::Value::U64(number) => (number != 0).then_some(Scalar::Uint(number)),
        protobuf::Value::String(text) => (!text.is_empty()).then_some(Scalar::String(text)),
        protobuf::Value::Bytes(bytes) => (!bytes.is_empty()).then_some(Scalar::Bytes(bytes)),
        value => value.as_i64().filter(|number| *number != 0).map(Scalar::Int),
    }?;
    Some(default.to_string())
}

impl<'s> Record<'s> {
    /// Returns the meaning of the value, if it is one of a known field.
    pub fn meaning<'a>(&self, input: &'a [u8]) -> Option<Meaning<'a>>
    where
        's: 'a,
    {
        let field: Field<'a> = self.known()?;
        Some(match &self.value {
            Value::Len { payload, .. } if is_packed(field, WireType::Len) => {
                Meaning::Packed(elements(field, *payload, input).0)
            }
            Value::Len { payload, .. } => match field.message_type() {
                Some(message) => Meaning::Message(message),
                None => Meaning::Scalar(of_bytes(field.kind(), payload.of(input))),
            },
            Value::Group { .. } => Meaning::Message(field.message_type()?),
            Value::Varint(varint) => Meaning::Scalar(of_bits(field, varint.value)),
            Value::I64 { bits, .. } => Meaning::Scalar(of_bits(field, *bits)),
            Value::I32 { bits, .. } => Meaning::Scalar(of_bits(field, (*bits).into())),
        })
    }
}

impl<'s> Message<'s> {
    /// Returns the remarks about each record, in order. Without a schema there are none.
    pub fn remarks(&self) -> Vec<Vec<Remark<'s>>> {
        let mut seen = SeenFields::default();
        let remarks = |record| if self.message_type.is_some() { seen.remarks(record) } else { Vec::new() };
        self.records.iter().map(remarks).collect()
    }

    /// Returns the fields of its type that are absent.
    pub fn absent(&self) -> Vec<Field<'s>> {
        let present: HashSet<u32> = self
            .records
            .iter()
            .filter(|record| record.known().is_some())
            .map(|record| record.tag.number())
            .collect();
        let fields = self.message_type.into_iter().flat_map(MessageType::fields);
        fields.filter(|field| !present.contains(&field.number())).collect()
    }
}

/// The fields of a message seen so far.
#[derive(Default)]
struct SeenFields<'s> {
    numbers: HashSet<u32>,
    oneofs: HashMap<&'s str, Field<'s>>,
}

impl<'s> SeenFields<'s> {
    fn remarks(&mut self, record: &Record<'s>) -> Vec<Remark<'s>> {
        let Some(field) = record.field else { return vec![Remark::Unknown] };
        let (Some(found), expected) = (record.tag.wire_type(), expected(field)) else { return Vec::new() };
        if record.known().is_none() {
            return vec![Remark::WireType { found, expected }];
        }
        let mut remarks = Vec::new();
        if let Some(bits) = varint(record) {
            remarks.extend(of_number(field, bits));
        }
        if field.kind().is_packable() && field.is_repeated() && found != expected {
            remarks.push(if field.is_packed() { Remark::Unpacked } else { Remark::Packed });
        }
        let is_default = !field.has_presence() && !field.is_repeated() && is_zero(&record.value);
        let is_entry = field.message().is_map_entry();
        remarks.extend((is_default && !is_entry && field.oneof().is_none()).then_some(Remark::Default));
        let is_duplicate = !self.numbers.insert(field.number());
        if is_duplicate && !field.is_repeated() {
            remarks.push(if field.kind().is_message() { Remark::Merged } else { Remark::Duplicate });
        }
        if let Some(oneof) = field.oneof()
            && let Some(other) = self.oneofs.insert(oneof.name(), field)
            && other != field
        {
            remarks.push(Remark::Clears(oneof, other));
        }
        remarks
    }
}

fn expected(field: Field<'_>) -> WireType {
    if field.is_packed() { WireType::Len } else { field.kind().wire_type() }
}

fn varint(record: &Record) -> Option<u64> {
    match &record.value {
        Value::Varint(varint) => Some(varint.value),
        _ => None,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Varint(varint) => varint.value == 0,
        Value::I64 { bits, .. } => *bits == 0,
        Value::I32 { bits, .. } => *bits == 0,
        Value::Len { payload, .. } => payload.is_empty(),
        Value::Group { .. } => false,
    }
}

/// Returns a remark about the number of a varint.
fn of_number(field: Field<'_>, bits: u64) -> Option<Remark<'_>> {
    let signed = bits.cast_signed();
    let is_32 = |number: i64| i32::try_from(number).is_ok();
    match field.kind() {
        Kind::Uint32 if u32::try_from(bits).is_err() => Some(Remark::DroppedBits),
        Kind::Sint32 if !is_32(unzigzag(bits)) => Some(Remark::DroppedBits),
        Kind::Int32 | Kind::Enum if !is_32(signed) => Some(Remark::DroppedBits),
        Kind::Enum => {
            let enumeration = field.enum_type()?;
            let is_named = enumeration.value_by_number(bits as u32 as i32).is_some();
            (enumeration.is_closed() && !is_named).then_some(Remark::ClosedEnum)
        }
        _ => None,
    }
}

/// Returns the reason why decoders reject the value of a known field.
pub(super) fn problem(field: Field<'_>, record: &Record, input: &[u8]) -> Option<Problem> {
    let Value::Len { payload, .. } = &record.value else { return None };
    let problem = |offset, kind| Some(Problem { offset, kind, tag: None, length: None });
    if field.kind() == Kind::String
        && field.requires_utf8()
        && std::str::from_utf8(payload.of(input)).is_err()
    {
        return problem(payload.start, ProblemKind::NotUtf8(name(field)));
    }
    if is_packed(field, WireType::Len) {
        let (_, rest) = elements(field, *payload, input);
        if !rest.is_empty() {
            return problem(rest.start, ProblemKind::IncompletePacked(name(field), field.kind().name()));
        }
    }
    None
}

/// Returns the packed values, and the incomplete rest at the end.
fn elements<'a>(field: Field<'a>, payload: Span, input: &'a [u8]) -> (Vec<(Span, Scalar<'a>)>, Span) {
    let mut elements = Vec::new();
    let mut rest = payload;
    while let Some((bits, len)) = element(field.kind(), rest.of(input)) {
        elements.push((Span { start: rest.start, end: rest.start + len }, of_bits(field, bits)));
        rest.start += len;
    }
    (elements, rest)
}

/// Returns the first packed value and its length in bytes.
fn element(kind: Kind, bytes: &[u8]) -> Option<(u64, usize)> {
    match kind.wire_type() {
        WireType::Fixed64 => Some((u64::from_le_bytes(*bytes.first_chunk()?), 8)),
        WireType::Fixed32 => Some((u32::from_le_bytes(*bytes.first_chunk()?).into(), 4)),
        _ => read_varint(bytes, 0).ok().map(|varint| (varint.value, varint.span.len())),
    }
}

/// Interprets the bits of a varint or fixed-size value; 32-bit values use the low bits.
fn of_bits(field: Field<'_>, bits: u64) -> Scalar<'_> {
    let low = bits as u32;
    match field.kind() {
        Kind::Int32 | Kind::Sfixed32 => Scalar::Int(low.cast_signed().into()),
        Kind::Int64 | Kind::Sfixed64 => Scalar::Int(bits.cast_signed()),
        Kind::Uint32 | Kind::Fixed32 => Scalar::Uint(low.into()),
        Kind::Sint32 => Scalar::Zigzag(unzigzag(low.into()), bits),
        Kind::Sint64 => Scalar::Zigzag(unzigzag(bits), bits),
        Kind::Bool => Scalar::Bool(bits != 0),
        Kind::Float => Scalar::Float(f32::from_bits(low)),
        Kind::Double => Scalar::Double(f64::from_bits(bits)),
        Kind::Enum => {
            let number = low.cast_signed();
            let value = field.enum_type().and_then(|enumeration| enumeration.value_by_number(number));
            Scalar::Enum(number, value.map(EnumValue::name))
        }
        Kind::Uint64 | Kind::Fixed64 | Kind::String | Kind::Bytes | Kind::Message | Kind::Group => {
            Scalar::Uint(bits)
        }
    }
}

fn of_bytes(kind: Kind, bytes: &[u8]) -> Scalar<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) if kind == Kind::String => Scalar::String(text),
        _ => Scalar::Bytes(bytes),
    }
}

#[cfg(test)]
mod tests;
