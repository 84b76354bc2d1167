//! Protobuf's [text format](https://protobuf.dev/reference/protobuf/textformat-spec/), as `protoc --decode` prints it.
//!
//! ```
//! use thalweg_protobuf::{Schema, sources};
//! use thalweg_protobuf_text::text_format;
//!
//! let source = "syntax = 'proto3'; message Point { int32 x = 1; string name = 2; }";
//! let set = sources::compile(&["point.proto"], |_| Some(source.to_owned()))?;
//! let schema = Schema::from_descriptor_set(&set)?;
//! let point = schema.message("Point").expect("declared in the file");
//! let wire = text_format::to_wire(point, b"x: 42  # the answer\nname: 'here'")?;
//! assert_eq!(text_format::from_wire(point, &wire)?, "x: 42\nname: \"here\"\n");
//! let error = text_format::to_wire(point, b"x: 4.2").expect_err("no integer");
//! assert_eq!(error.to_string(), "line 1, column 4: x: `4.2` is not a valid int32");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Enums are written by name, and an `Any` as its content (`[type.googleapis.com/pkg.Type] { … }`). Extensions have
//! their full names in brackets, groups the names of their types. Well-known types have no special form here.

mod group;
mod lex;
mod literal;
mod parse;
mod print;

use thalweg_protobuf::json::{ParseError, ParseOptions, PrintError, PrintOptions};
use thalweg_protobuf::{DecodeError, Message, MessageType};

/// Converts a message from wire bytes to text, with one line per field.
///
/// # Errors
///
/// Returns an error if the bytes are not a valid message of the type.
pub fn from_wire(message_type: MessageType<'_>, wire: &[u8]) -> Result<String, PrintError> {
    let mut text = String::new();
    let options = PrintOptions::default().pretty(true).allow_partial(true);
    print(message_type, wire, &options, &mut text)?;
    Ok(text)
}

/// Appends the text of a message: with `pretty` one line per field, otherwise all on one line. Respects `defaults`,
/// `enum_numbers`, `allow_partial`, `depth_max` and `len_max`; always uses schema names.
///
/// Returns the type URLs of `Any`s that the schema does not have; these are printed with their fields `type_url` and
/// `value`. Unknown fields are printed by number, which no parser accepts.
///
/// # Errors
///
/// See [`PrintError`]. On error `text` is unchanged.
pub fn print(
    message_type: MessageType<'_>,
    wire: &[u8],
    options: &PrintOptions,
    text: &mut String,
) -> Result<Vec<String>, PrintError> {
    let start = text.len();
    let printed = print::print(message_type, wire, options, text);
    printed.inspect_err(|_| text.truncate(start))
}

/// Converts a message from text to wire bytes, with the default options.
///
/// # Errors
///
/// See [`ParseError`].
pub fn to_wire(message_type: MessageType<'_>, text: &[u8]) -> Result<Vec<u8>, ParseError> {
    let mut wire = Vec::with_capacity(text.len());
    parse(message_type, text, &ParseOptions::default(), &mut wire)?;
    Ok(wire)
}

/// Appends the wire bytes of a message that is given as text, in encoding order.
///
/// # Errors
///
/// See [`ParseError`]. On error `wire` is unchanged.
pub fn parse(
    message_type: MessageType<'_>,
    text: &[u8],
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<(), ParseError> {
    let at_start = |error: &dyn std::fmt::Display| ParseError::new(text, 0, error.to_string());
    let records = parse::parse(message_type, text, options).map_err(|error| error.locate(text))?;
    let message = Message::decode(message_type, records).map_err(|error: DecodeError| at_start(&error))?;
    if !options.allow_partial
        && let Some(field) = message.as_ref().missing_required()
    {
        return Err(at_start(&format!("missing required field {field}")));
    }
    message.as_ref().encode(wire);
    Ok(())
}
