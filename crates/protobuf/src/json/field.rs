//! One field of a message by itself, as HTTP has it: as the whole of a body, or as a parameter of a URL.

use super::print::{print, print_set};
use super::read::Reader;
use crate::printable::excerpt;
use crate::schema::{Field, Kind, WellKnown};
use crate::text::field_mask;
use crate::transcode::fault::Fault;
use crate::transcode::plain::Plain;
use crate::transcode::{ParseError, ParseOptions, PrintError, PrintOptions, build_field, build_value};
use crate::wire::{self, Tag, WireType};

/// How deep groups may lie in one another, of a field that is not looked at.
const SKIP_DEPTH_MAX: usize = 100;

/// Appends the records of `field`, whose value is given as JSON: an array if it is repeated, an object if it is a map
/// or a message. Null is no record.
///
/// ```
/// # use thalweg_protobuf::{Schema, json, sources};
/// # let source = "syntax = 'proto3'; message Shelf { repeated int32 rows = 1; }";
/// # let set = sources::compile(&["shelf.proto"], |_| Some(source.to_owned()))?;
/// # let schema = Schema::from_descriptor_set(&set)?;
/// let rows = schema.message("Shelf").and_then(|shelf| shelf.field("rows")).expect("it is in the file");
/// let mut wire = Vec::new();
/// json::parse_field(rows, b"[1, 2]", &json::ParseOptions::default(), &mut wire)?;
/// assert_eq!(wire, b"\x0a\x02\x01\x02");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// See [`ParseError`]; the path begins with the field. `wire` is then what it was.
pub fn parse_field(
    field: Field<'_>,
    json: &[u8],
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<(), ParseError> {
    let start = wire.len();
    let mut build = || {
        let source = Reader::new(json)?;
        build_field(field, source, options, wire)?.end()
    };
    build().map_err(|fault| {
        wire.truncate(start);
        fault.locate(json)
    })
}

/// Appends a record of `field` with the value that `text` stands for, which has no quotes around it, as in a URL: a
/// string, number, boolean or enum (by name or number), bytes as base64, and the well-known types whose JSON is such a
/// value. Paths of a FieldMask may be written as the schema has them or as JSON has them. Struct, Value, ListValue and
/// Any are read as JSON. Of a repeated field it is one element. The record is written also if it says what the field
/// holds anyway: a later record of a singular field replaces an earlier one.
///
/// # Errors
///
/// See [`ParseError`]; fields of other messages, and maps, have no such value. `wire` is then what it was.
pub fn parse_text(
    field: Field<'_>,
    text: &str,
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<(), ParseError> {
    let start = wire.len();
    let parsed = match field.message_type().map(|message| (message, message.well_known())) {
        _ if field.is_map() => Err(Fault::new(0, "a map has no value as a whole")),
        Some((_, Some(WellKnown::Struct | WellKnown::Value | WellKnown::ListValue | WellKnown::Any))) => {
            Reader::new(text.as_bytes())
                .and_then(|source| build_value(field, source, options, wire))
                .and_then(|mut source| source.end())
        }
        Some((_, Some(WellKnown::FieldMask))) => {
            camel_paths(text).and_then(|paths| build_value(field, Plain(&paths), options, wire).map(drop))
        }
        Some((message, None | Some(WellKnown::Empty))) => {
            let problem = format!("{} is a message, which has fields and no value", message.full_name());
            Err(Fault::new(0, problem))
        }
        Some(_) | None => build_value(field, Plain(text), options, wire).map(drop),
    };
    parsed.map_err(|fault| {
        wire.truncate(start);
        fault.locate(text.as_bytes())
    })
}

/// The paths of a mask as JSON has them, of which some are written as the schema has them.
fn camel_paths(text: &str) -> Result<String, Fault> {
    let mut camel = Vec::with_capacity(text.len());
    for (index, path) in text.split(',').enumerate() {
        if index > 0 {
            camel.push(b',');
        }
        if !path.contains('_') {
            camel.extend_from_slice(path.as_bytes());
        } else if !field_mask::to_camel(path, &mut camel) {
            return Err(Fault::new(0, format!("`{}` is no path of fields", excerpt(path))));
        }
    }
    // Of a `str` only ASCII was changed.
    Ok(String::from_utf8(camel).unwrap_or_default())
}

/// Appends the JSON of one field of the message that `wire` holds. Of one that is not there, it is what it holds then:
/// zero, an empty text, list, map or message; null, if it has presence and no such value.
///
/// # Errors
///
/// See [`PrintError`]. `json` is then what it was.
pub fn print_field(
    field: Field<'_>,
    wire: &[u8],
    options: &PrintOptions,
    json: &mut Vec<u8>,
) -> Result<(), PrintError> {
    if let (Some(message), false) = (field.message_type(), field.is_repeated()) {
        let (body, is_there) = bodies_of(field.number(), wire)?;
        if !is_there && message.well_known().is_some() {
            json.extend_from_slice(b"null");
            return Ok(());
        }
        return print(message, &body, options, json);
    }
    // What is no message is printed as the only field of its message, which is then taken off around it.
    let records = records_of(field.number(), wire)?;
    let start = json.len();
    print_set(field.message(), &records, options, json)?;
    let object = json.split_off(start);
    match value_of_only_member(&object) {
        Some(value) => put_less_indented(value, json),
        None => put_unset(field, options, json),
    }
    Ok(())
}

/// The value in `{"name":value}`, if there is one.
fn value_of_only_member(object: &[u8]) -> Option<&[u8]> {
    let inside = object.strip_prefix(b"{")?.strip_suffix(b"}")?.trim_ascii();
    // A name has no quote in it that is not escaped: names of the schema have neither, JSON names may.
    let mut is_escaped = false;
    let closing = inside.iter().skip(1).position(|&byte| {
        let is_closing = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_closing
    })?;
    Some(inside.get(closing + 2..)?.strip_prefix(b":")?.trim_ascii())
}

/// The value lay in an object. Strings have no line breaks in them.
fn put_less_indented(value: &[u8], json: &mut Vec<u8>) {
    for (index, line) in value.split(|&byte| byte == b'\n').enumerate() {
        if index > 0 {
            json.push(b'\n');
            json.extend_from_slice(line.strip_prefix(b"  ").unwrap_or(line));
        } else {
            json.extend_from_slice(line);
        }
    }
}

fn put_unset(field: Field<'_>, options: &PrintOptions, json: &mut Vec<u8>) {
    let value: &[u8] = match field.kind() {
        _ if field.is_map() => b"{}",
        _ if field.is_repeated() => b"[]",
        _ if field.has_presence() => b"null",
        Kind::String | Kind::Bytes => b"\"\"",
        Kind::Bool => b"false",
        Kind::Int64 | Kind::Uint64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64 => b"\"0\"",
        Kind::Enum => {
            let zero = field.enum_type().and_then(|enumeration| enumeration.value_by_number(0));
            match zero {
                Some(zero) if !options.enum_numbers => {
                    json.push(b'"');
                    json.extend_from_slice(zero.name().as_bytes());
                    b"\""
                }
                _ => b"0",
            }
        }
        _ => b"0",
    };
    json.extend_from_slice(value);
}

/// The records of the field with this number, one behind the other.
fn records_of(number: u32, wire: &[u8]) -> Result<Vec<u8>, PrintError> {
    let mut found = Vec::new();
    each_record(number, wire, |_, record, _| found.extend_from_slice(record))?;
    Ok(found)
}

/// What is in the records of a field of messages, which is one message, and whether there were any.
fn bodies_of(number: u32, wire: &[u8]) -> Result<(Vec<u8>, bool), PrintError> {
    let (mut found, mut is_there) = (Vec::new(), false);
    each_record(number, wire, |tag, _, body| {
        // A message may be written as a group, and the other way round; numbers are none of it.
        if matches!(tag.wire_type, WireType::Len | WireType::StartGroup) {
            found.extend_from_slice(body);
            is_there = true;
        }
    })?;
    Ok((found, is_there))
}

/// Calls `found` with the tag of each record of a field, with all of the record, and with what is in it.
fn each_record(number: u32, wire: &[u8], mut found: impl FnMut(Tag, &[u8], &[u8])) -> Result<(), PrintError> {
    let mut reader = wire::Reader::new(wire);
    while !reader.is_empty() {
        let start = reader.offset();
        let tag = reader.tag().map_err(no_message)?;
        let behind_tag = reader.offset();
        let mut body = reader;
        reader.skip(tag, SKIP_DEPTH_MAX).map_err(no_message)?;
        if tag.number != number {
            continue;
        }
        let content = match tag.wire_type {
            WireType::Len => body.len_prefixed().map_err(no_message)?,
            WireType::StartGroup => {
                let end_tag_len = wire::varint_len(Tag::new(number, WireType::EndGroup).bits().into());
                let group = reader.since(behind_tag);
                &group[..group.len().saturating_sub(end_tag_len)]
            }
            _ => reader.since(behind_tag),
        };
        found(tag, reader.since(start), content);
    }
    Ok(())
}

fn no_message(error: wire::WireError) -> PrintError {
    PrintError::Decode(error.into())
}
