//! Reads the parts of wire descriptors (`descriptor.proto`) that a schema needs.
//!
//! It is hand-written, because the types of other crates drop custom options, which are extensions, or do not know
//! editions. Options stay encoded. If they come in several parts, the parts are concatenated, which is how Protobuf
//! merges messages.

use super::error::Problem;
use crate::wire::{Reader, Tag, WireType};

/// Maximum nesting depth of declared messages.
const NESTING_MAX: usize = 64;
/// Maximum nesting depth of groups in unknown fields.
const SKIP_DEPTH_MAX: usize = 32;

#[derive(Debug, Default)]
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) package: &'a str,
    pub(super) dependencies: Vec<&'a str>,
    pub(super) messages: Vec<Message<'a>>,
    pub(super) enums: Vec<Enum<'a>>,
    pub(super) services: Vec<Service<'a>>,
    pub(super) extensions: Vec<Field<'a>>,
    pub(super) options: Vec<u8>,
    pub(super) syntax: &'a str,
    pub(super) edition: Option<i32>,
}

#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) name: &'a str,
    pub(super) fields: Vec<Field<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    pub(super) enums: Vec<Enum<'a>>,
    /// Start (inclusive) and end (exclusive).
    pub(super) extension_ranges: Vec<(i32, i32)>,
    pub(super) extensions: Vec<Field<'a>>,
    pub(super) oneofs: Vec<Oneof<'a>>,
    pub(super) options: Vec<u8>,
    pub(super) reserved_names: Vec<&'a str>,
}

#[derive(Debug, Default)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) extendee: Option<&'a str>,
    pub(super) number: i32,
    pub(super) label: i32,
    pub(super) kind: Option<i32>,
    pub(super) type_name: Option<&'a str>,
    pub(super) default: Option<&'a str>,
    pub(super) options: Vec<u8>,
    pub(super) oneof: Option<i32>,
    pub(super) json_name: Option<&'a str>,
    pub(super) proto3_optional: bool,
}

#[derive(Debug, Default)]
pub(super) struct Oneof<'a> {
    pub(super) name: &'a str,
    pub(super) options: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Enum<'a> {
    pub(super) name: &'a str,
    pub(super) values: Vec<EnumValue<'a>>,
    pub(super) options: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct EnumValue<'a> {
    pub(super) name: &'a str,
    pub(super) number: i32,
    pub(super) options: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Service<'a> {
    pub(super) name: &'a str,
    pub(super) methods: Vec<Method<'a>>,
    pub(super) options: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Method<'a> {
    pub(super) name: &'a str,
    pub(super) input: &'a str,
    pub(super) output: &'a str,
    pub(super) options: Vec<u8>,
    pub(super) client_streaming: bool,
    pub(super) server_streaming: bool,
}

/// The value of one wire record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Varint(u64),
    /// A length-delimited value: a string or a message.
    Len(Reader<'a>),
    /// A wire type that descriptors do not use.
    Other,
}

impl<'a> Value<'a> {
    fn text(self) -> Result<&'a str, Problem> {
        match self {
            Value::Len(reader) => std::str::from_utf8(reader.rest()).map_err(|_| Problem::Utf8),
            _ => Err(Problem::WireType),
        }
    }

    fn int(self) -> Result<i32, Problem> {
        match self {
            Value::Varint(value) => Ok(value as i32),
            _ => Err(Problem::WireType),
        }
    }

    fn flag(self) -> Result<bool, Problem> {
        self.int().map(|value| value != 0)
    }

    fn message(self) -> Result<Reader<'a>, Problem> {
        match self {
            Value::Len(reader) => Ok(reader),
            _ => Err(Problem::WireType),
        }
    }

    fn bytes(self) -> Result<&'a [u8], Problem> {
        self.message().map(|reader| reader.rest())
    }
}

/// Calls `found` with the number and value of each wire record.
pub(super) fn records<'a>(
    mut reader: Reader<'a>,
    mut found: impl FnMut(u32, Value<'a>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    while !reader.is_empty() {
        let tag = reader.tag()?;
        let value = match tag.wire_type {
            WireType::Varint => Value::Varint(reader.varint()?),
            WireType::Len => Value::Len(reader.nested()?),
            _ => {
                reader.skip(tag, SKIP_DEPTH_MAX)?;
                Value::Other
            }
        };
        found(tag.number, value)?;
    }
    Ok(())
}

/// Returns the bytes of each file in a `FileDescriptorSet`.
pub(super) fn files_of_set(set: &[u8]) -> Result<Vec<&[u8]>, Problem> {
    let mut files = Vec::new();
    records(Reader::new(set), |number, value| {
        if number == 1 {
            files.push(value.bytes()?);
        }
        Ok(())
    })?;
    Ok(files)
}

/// Returns the name in a `FileDescriptorProto` that may be invalid, for error messages.
pub(super) fn name_of_file(bytes: &[u8]) -> &str {
    let mut reader = Reader::new(bytes);
    while let Ok(tag) = reader.tag() {
        if tag == Tag::new(1, WireType::Len) {
            return reader.len_prefixed().ok().and_then(|name| std::str::from_utf8(name).ok()).unwrap_or("");
        }
        if reader.skip(tag, 1).is_err() {
            break;
        }
    }
    ""
}

impl<'a> File<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<File<'a>, Problem> {
        let mut file = File::default();
        records(Reader::new(bytes), |number, value| {
            match number {
                1 => file.name = value.text()?,
                2 => file.package = value.text()?,
                3 => file.dependencies.push(value.text()?),
                4 => file.messages.push(Message::read(value.message()?, NESTING_MAX)?),
                5 => file.enums.push(Enum::read(value.message()?)?),
                6 => file.services.push(Service::read(value.message()?)?),
                7 => file.extensions.push(Field::read(value.message()?)?),
                8 => file.options.extend_from_slice(value.bytes()?),
                12 => file.syntax = value.text()?,
                14 => file.edition = Some(value.int()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(file)
    }
}

impl<'a> Message<'a> {
    fn read(reader: Reader<'a>, depth: usize) -> Result<Message<'a>, Problem> {
        let Some(depth) = depth.checked_sub(1) else { return Err(Problem::Nesting { max: NESTING_MAX }) };
        let mut message = Message::default();
        records(reader, |number, value| {
            match number {
                1 => message.name = value.text()?,
                2 => message.fields.push(Field::read(value.message()?)?),
                3 => message.messages.push(Message::read(value.message()?, depth)?),
                4 => message.enums.push(Enum::read(value.message()?)?),
                5 => message.extension_ranges.push(range(value.message()?)?),
                6 => message.extensions.push(Field::read(value.message()?)?),
                7 => message.options.extend_from_slice(value.bytes()?),
                8 => message.oneofs.push(Oneof::read(value.message()?)?),
                10 => message.reserved_names.push(value.text()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(message)
    }
}

fn range(reader: Reader<'_>) -> Result<(i32, i32), Problem> {
    let (mut start, mut end) = (0, 0);
    records(reader, |number, value| {
        match number {
            1 => start = value.int()?,
            2 => end = value.int()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((start, end))
}

impl<'a> Field<'a> {
    fn read(reader: Reader<'a>) -> Result<Field<'a>, Problem> {
        let mut field = Field::default();
        records(reader, |number, value| {
            match number {
                1 => field.name = value.text()?,
                2 => field.extendee = Some(value.text()?),
                3 => field.number = value.int()?,
                4 => field.label = value.int()?,
                5 => field.kind = Some(value.int()?),
                6 => field.type_name = Some(value.text()?),
                7 => field.default = Some(value.text()?),
                8 => field.options.extend_from_slice(value.bytes()?),
                9 => field.oneof = Some(value.int()?),
                10 => field.json_name = Some(value.text()?),
                17 => field.proto3_optional = value.flag()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(field)
    }
}

impl<'a> Oneof<'a> {
    fn read(reader: Reader<'a>) -> Result<Oneof<'a>, Problem> {
        let mut oneof = Oneof::default();
        records(reader, |number, value| {
            match number {
                1 => oneof.name = value.text()?,
                2 => oneof.options.extend_from_slice(value.bytes()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(oneof)
    }
}

impl<'a> Enum<'a> {
    fn read(reader: Reader<'a>) -> Result<Enum<'a>, Problem> {
        let mut read = Enum::default();
        records(reader, |number, value| {
            match number {
                1 => read.name = value.text()?,
                2 => read.values.push(EnumValue::read(value.message()?)?),
                3 => read.options.extend_from_slice(value.bytes()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(read)
    }
}

impl<'a> EnumValue<'a> {
    fn read(reader: Reader<'a>) -> Result<EnumValue<'a>, Problem> {
        let mut read = EnumValue::default();
        records(reader, |number, value| {
            match number {
                1 => read.name = value.text()?,
                2 => read.number = value.int()?,
                3 => read.options.extend_from_slice(value.bytes()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(read)
    }
}

impl<'a> Service<'a> {
    fn read(reader: Reader<'a>) -> Result<Service<'a>, Problem> {
        let mut service = Service::default();
        records(reader, |number, value| {
            match number {
                1 => service.name = value.text()?,
                2 => service.methods.push(Method::read(value.message()?)?),
                3 => service.options.extend_from_slice(value.bytes()?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(service)
    }
}

impl<'a> Method<'a> {
    fn read(reader: Reader<'a>) -> Result<Method<'a>, Problem> {
        let mut method = Method::default();
        records(reader, |number, value| {
            match number {
                1 => method.name = value.text()?,
                2 => method.input = value.text()?,
                3 => method.output = value.text()?,
                4 => method.options.extend_from_slice(value.bytes()?),
                5 => method.client_streaming = value.flag()?,
                6 => method.server_streaming = value.flag()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(method)
    }
}

/// Returns the last value of varint field `number` in options.
pub(super) fn option(options: &[u8], number: u32) -> Result<Option<u64>, Problem> {
    let mut last = None;
    records(Reader::new(options), |found, value| {
        if let (true, Value::Varint(value)) = (found == number, value) {
            last = Some(value);
        }
        Ok(())
    })?;
    Ok(last)
}
