//! [ProtoJSON](https://protobuf.dev/programming-guides/json/), converted directly from and to wire bytes, without an
//! intermediate message.
//!
//! ```
//! use thalweg_protobuf::{Schema, json, sources};
//!
//! let source = "syntax = 'proto3'; message Point { int32 x = 1; }";
//! let set = sources::compile(&["point.proto"], |_| Some(source.to_owned()))?;
//! let schema = Schema::from_descriptor_set(&set)?;
//! let point = schema.message("Point").expect("declared in the file");
//! assert_eq!(json::from_wire(point, b"\x08\x2a")?, r#"{"x":42}"#);
//! assert_eq!(json::to_wire(point, br#"{"x":42}"#)?, b"\x08\x2a");
//! let error = json::to_wire(point, br#"{"x":4.2}"#).expect_err("no integer");
//! assert_eq!(error.to_string(), "line 1, column 6: x: `4.2` is not a whole number");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod field;
mod paths;
mod print;
mod read;
mod sink;
mod source;

pub use field::{parse_field, parse_text, print_field};
pub use paths::field_paths;
pub use print::print;
use read::Reader;

use crate::message::{Message, MessageRef};
use crate::schema::MessageType;
use crate::transcode;
pub use crate::transcode::{LocatedError, ParseError, ParseOptions, PrintError, PrintOptions};

/// Converts a message from wire bytes to JSON, with the default options.
///
/// # Errors
///
/// See [`PrintError`].
pub fn from_wire(message_type: MessageType<'_>, wire: &[u8]) -> Result<String, PrintError> {
    let mut json = Vec::with_capacity(wire.len() * 2 + 16);
    print(message_type, wire, &PrintOptions::default(), &mut json)?;
    // The output is UTF-8: names of the schema are, and strings were checked.
    Ok(String::from_utf8(json).unwrap_or_default())
}

/// Converts a message from JSON to wire bytes, with the default options.
///
/// # Errors
///
/// See [`ParseError`].
pub fn to_wire(message_type: MessageType<'_>, json: &[u8]) -> Result<Vec<u8>, ParseError> {
    let mut wire = Vec::with_capacity(json.len());
    parse(message_type, json, &ParseOptions::default(), &mut wire)?;
    Ok(wire)
}

/// Appends the wire bytes of a message that is given as JSON. Fields keep the order of the JSON; fields without
/// presence are omitted if they are zero or empty.
///
/// # Errors
///
/// See [`ParseError`]. On error `wire` is unchanged.
pub fn parse(
    message_type: MessageType<'_>,
    json: &[u8],
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<(), ParseError> {
    let start = wire.len();
    let mut build = || {
        let source = Reader::new(json)?;
        let mut source = transcode::build(message_type, source, options, wire)?;
        source.end()
    };
    build().map_err(|error| {
        wire.truncate(start);
        error.locate(json)
    })
}

/// Returns the JSON of a message, with the default options.
///
/// # Errors
///
/// See [`PrintError`].
pub fn from_message(message: MessageRef<'_>) -> Result<String, PrintError> {
    from_wire(message.message_type(), &message.encode_to_vec())
}

/// Parses a message from JSON, with the default options and limits.
///
/// # Errors
///
/// See [`ParseError`].
pub fn to_message(message_type: MessageType<'_>, json: &[u8]) -> Result<Message, ParseError> {
    let wire = to_wire(message_type, json)?;
    Message::decode(message_type, wire).map_err(|error| LocatedError::new(0, error.to_string()).locate(json))
}
