//! [MessagePack](https://github.com/msgpack/msgpack/blob/master/spec.md), converted directly from and to wire bytes.
//!
//! There is no standard mapping of Protobuf to MessagePack. This one is [ProtoJSON's](crate::json), with these
//! differences:
//!
//! - 64-bit integers, `NaN` and the infinities are numbers
//! - `bytes` are binary
//! - map keys have their own type
//! - `google.protobuf.Timestamp` is MessagePack's timestamp
//!
//! Everything else is as in JSON: a message is a map from names to values, an enum is its name, a `Duration` is
//! `"1.5s"`.
//!
//! ```
//! use thalweg_protobuf::{Schema, msgpack, sources};
//!
//! let source = "syntax = 'proto3'; message Point { int32 x = 1; }";
//! let set = sources::compile(&["point.proto"], |_| Some(source.to_owned()))?;
//! let schema = Schema::from_descriptor_set(&set)?;
//! let point = schema.message("Point").expect("declared in the file");
//! assert_eq!(msgpack::from_wire(point, b"\x08\x2a")?, b"\x81\xa1x\x2a");
//! assert_eq!(msgpack::to_wire(point, b"\x81\xa1x\x2a")?, b"\x08\x2a");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod sink;
mod source;

use std::fmt;

use crate::schema::MessageType;
use crate::transcode::{self, Printer};
pub use crate::transcode::{ParseOptions, PrintError, PrintOptions};
use sink::MsgpackSink;
use source::Reader;

/// Error for bytes that are not MessagePack, or not a message of the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Offset in the bytes, from 0.
    pub offset: usize,
    /// Path such as `results[3].name`; empty at the message itself.
    pub path: String,
    /// The problem.
    pub problem: String,
    /// Whether the message exceeds [`ParseOptions::len_max`].
    pub is_too_long: bool,
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { offset, path, problem, .. } = self;
        write!(formatter, "at byte {offset}: ")?;
        if !path.is_empty() {
            write!(formatter, "{path}: ")?;
        }
        formatter.write_str(problem)
    }
}

impl std::error::Error for ParseError {}

/// Converts a message from wire bytes to MessagePack, with the default options.
///
/// # Errors
///
/// See [`PrintError`].
pub fn from_wire(message_type: MessageType<'_>, wire: &[u8]) -> Result<Vec<u8>, PrintError> {
    let mut msgpack = Vec::with_capacity(wire.len() * 2 + 16);
    print(message_type, wire, &PrintOptions::default(), &mut msgpack)?;
    Ok(msgpack)
}

/// Converts a message from MessagePack to wire bytes, with the default options.
///
/// # Errors
///
/// See [`ParseError`].
pub fn to_wire(message_type: MessageType<'_>, msgpack: &[u8]) -> Result<Vec<u8>, ParseError> {
    let mut wire = Vec::with_capacity(msgpack.len());
    parse(message_type, msgpack, &ParseOptions::default(), &mut wire)?;
    Ok(wire)
}

/// Appends the MessagePack of a message that is given as wire bytes. Fields keep their wire order.
///
/// # Errors
///
/// See [`PrintError`]. On error `msgpack` is unchanged.
pub fn print(
    message_type: MessageType<'_>,
    wire: &[u8],
    options: &PrintOptions,
    msgpack: &mut Vec<u8>,
) -> Result<(), PrintError> {
    transcode::print(message_type, wire, options, msgpack, |normalize, wire, msgpack| {
        let pool = message_type.schema().pool();
        Printer::new(pool, options, MsgpackSink::new(msgpack), normalize).print(message_type.index(), wire)
    })
}

/// Appends the wire bytes of a message that is given as MessagePack.
///
/// # Errors
///
/// See [`ParseError`]. On error `wire` is unchanged.
pub fn parse(
    message_type: MessageType<'_>,
    msgpack: &[u8],
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<(), ParseError> {
    let start = wire.len();
    let built = transcode::build(message_type, Reader::new(msgpack), options, wire);
    built.and_then(|source| source.end()).map_err(|error| {
        wire.truncate(start);
        let (offset, is_too_long) = (error.at(), error.is_too_long());
        let (path, problem) = error.into_parts();
        ParseError { offset, path, problem, is_too_long }
    })
}
