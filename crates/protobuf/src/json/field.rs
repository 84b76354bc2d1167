//! Converts a single field of a message, as HTTP transcoding needs it: a whole body, or a URL parameter.

use super::print::{print, print_present_fields};
use super::read::Reader;
use crate::printable::excerpt;
use crate::schema::{Field, Kind, WellKnown};
use crate::text::field_mask;
use crate::transcode::parse_error::LocatedError;
use crate::transcode::unquoted::UnquotedValue;
use crate::transcode::{ParseError, ParseOptions, PrintError, PrintOptions, build_field, build_value};
use crate::wire::{self, Tag, WireType};

/// Maximum nesting depth of groups in skipped fields.
const SKIP_DEPTH_MAX: usize = 100;

/// Appends the wire records of `field`, whose value is given as JSON: an array if it is repeated, an object if it is a
/// map or a message. Null appends nothing.
///
/// ```
/// # use thalweg_protobuf::{Schema, json, sources};
/// # let source = "syntax = 'proto3'; message Shelf { repeated int32 rows = 1; }";
/// # let set = sources::compile(&["shelf.proto"], |_| Some(source.to_owned()))?;
/// # let schema = Schema::from_descriptor_set(&set)?;
/// let rows = schema.message("Shelf").and_then(|shelf| shelf.field("rows")).expect("declared in the file");
/// let mut wire = Vec::new();
/// json::parse_field(rows, b"[1, 2]", &json::ParseOptions::default(), &mut wire)?;
/// assert_eq!(wire, b"\x0a\x02\x01\x02");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// See [`ParseError`]; the path starts with the field. On error `wire` is unchanged.
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
    build().map_err(|error| {
        wire.truncate(start);
        error.locate(json)
    })
}

/// Appends a wire record of `field` with the value of `text`, which is unquoted, as in a URL. For a repeated field it
/// is one element. Supported values:
///
/// - a string, number, boolean or enum (by name or number), and bytes as base64
/// - a well-known type whose JSON is such a value; paths of a FieldMask may be schema names or JSON names
/// - Struct, Value, ListValue and Any, which are read as JSON
///
/// The record is written even if it holds the default value, because a later record of a singular field replaces an
/// earlier one.
///
/// # Errors
///
/// See [`ParseError`]; fields of other message types and maps have no such value. On error `wire` is unchanged.
pub fn parse_text(
    field: Field<'_>,
    text: &str,
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<(), ParseError> {
    let start = wire.len();
    let parsed = match field.message_type().map(|message| (message, message.well_known())) {
        _ if field.is_map() => Err(LocatedError::new(0, "a map cannot be set from a single value")),
        Some((_, Some(WellKnown::Struct | WellKnown::Value | WellKnown::ListValue | WellKnown::Any))) => {
            Reader::new(text.as_bytes())
                .and_then(|source| build_value(field, source, options, wire))
                .and_then(|mut source| source.end())
        }
        Some((_, Some(WellKnown::FieldMask))) => camel_paths(text)
            .and_then(|paths| build_value(field, UnquotedValue(&paths), options, wire).map(drop)),
        Some((message, None | Some(WellKnown::Empty))) => {
            let problem =
                format!("{} is a message and cannot be set from a single value", message.full_name());
            Err(LocatedError::new(0, problem))
        }
        Some(_) | None => build_value(field, UnquotedValue(text), options, wire).map(drop),
    };
    parsed.map_err(|error| {
        wire.truncate(start);
        error.locate(text.as_bytes())
    })
}

/// Converts the paths of a mask to JSON form; each may be in schema form or JSON form.
fn camel_paths(text: &str) -> Result<String, LocatedError> {
    let mut camel = Vec::with_capacity(text.len());
    for (index, path) in text.split(',').enumerate() {
        if index > 0 {
            camel.push(b',');
        }
        if !path.contains('_') {
            camel.extend_from_slice(path.as_bytes());
        } else if !field_mask::to_camel(path, &mut camel) {
            return Err(LocatedError::new(0, format!("invalid field path `{}`", excerpt(path))));
        }
    }
    // Still UTF-8: the input is a `str`, of which only ASCII was changed.
    Ok(String::from_utf8(camel).unwrap_or_default())
}

/// Appends the JSON of one field of the message in `wire`. An absent field has its default: zero, or an empty text,
/// list, map or message. It is null for scalars with presence and for well-known types.
///
/// # Errors
///
/// See [`PrintError`]. On error `json` is unchanged.
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
    // Print any other field as the only one of its message, then strip the enclosing object.
    let records = records_of(field.number(), wire)?;
    let start = json.len();
    print_present_fields(field.message(), &records, options, json)?;
    let object = json.split_off(start);
    match value_of_only_member(&object) {
        Some(value) => put_less_indented(value, json),
        None => put_unset(field, options, json),
    }
    Ok(())
}

/// Returns the value in `{"name":value}`, if there is one.
fn value_of_only_member(object: &[u8]) -> Option<&[u8]> {
    let inside = object.strip_prefix(b"{")?.strip_suffix(b"}")?.trim_ascii();
    // Find the closing quote of the name. Schema names have neither quotes nor escapes, but JSON names may.
    let mut is_escaped = false;
    let closing = inside.iter().skip(1).position(|&byte| {
        let is_closing = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_closing
    })?;
    Some(inside.get(closing + 2..)?.strip_prefix(b":")?.trim_ascii())
}

/// Appends a value that was nested in an object, with less indentation. JSON strings contain no line breaks.
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

/// Returns all wire records of the field with this number, concatenated.
fn records_of(number: u32, wire: &[u8]) -> Result<Vec<u8>, PrintError> {
    let mut found = Vec::new();
    each_record(number, wire, |_, record, _| found.extend_from_slice(record))?;
    Ok(found)
}

/// Returns the contents of a message field's records, which together are one message, and whether there were any.
fn bodies_of(number: u32, wire: &[u8]) -> Result<(Vec<u8>, bool), PrintError> {
    let (mut found, mut is_there) = (Vec::new(), false);
    each_record(number, wire, |tag, _, body| {
        // A message may be encoded as a group, and vice versa; other wire types are skipped.
        if matches!(tag.wire_type, WireType::Len | WireType::StartGroup) {
            found.extend_from_slice(body);
            is_there = true;
        }
    })?;
    Ok((found, is_there))
}

/// Calls `found` with the tag, the whole bytes and the content of each record of a field.
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
