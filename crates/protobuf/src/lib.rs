//! Dynamic Protobuf messages: decode, encode, JSON and MessagePack for types known at run time.
//!
//! ```
//! use thalweg_protobuf::{Decoder, Encoder, Schema, Value};
//! # let source = "syntax = 'proto3'; package shop; message Order { string item = 1; repeated int32 sizes = 2; }";
//! # let set = thalweg_protobuf::sources::compile(&["shop.proto"], |_| Some(source.to_owned()))?;
//!
//! // A FileDescriptorSet from `protoc --include_imports -o`, `sources::compile` or server reflection.
//! let schema = Schema::from_descriptor_set(&set)?;
//! let order = schema.message("shop.Order").ok_or("no such message")?;
//!
//! let input = b"\x0a\x04boot\x12\x02\x2a\x2b";
//! let mut decoder = Decoder::default();
//! let message = decoder.decode(order, input)?;
//! assert_eq!(message.get("item"), Some(Value::String("boot")));
//! assert_eq!(message.get("sizes").and_then(Value::as_list).map(|sizes| sizes.len()), Some(2));
//! assert_eq!(Encoder::new().encode(message), input);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`Schema`]: message, field and enum types, from descriptors. With the feature `sources`, the module `sources`
//!   compiles `.proto` files (proto2, proto3, editions).
//! - [`Decoder`] decodes into reused memory; [`Message`] owns its memory. Both respect [`Limits`].
//! - [`json`] and [`msgpack`] convert directly between wire bytes and JSON or MessagePack, without building a message.
//! - [`wire`]: varints, tags and lengths.
//! - [`printable`] makes untrusted text safe to print.
//!
//! The crate [`thalweg-protobuf-text`](https://docs.rs/thalweg-protobuf-text) has the text format, `.proto` text of
//! descriptors, and annotated dumps of wire bytes.
//!
//! `docs/PERFORMANCE.md` compares its speed with prost, buffa and prost-reflect.
//!
//! The crate does no I/O, reads no clock, and never panics on invalid input.

#![forbid(unsafe_code)]
// Protobuf integers have no sign on the wire: `int64` and `uint64` share their bits.
#![allow(clippy::cast_possible_wrap)]
// In the decoder's inner loop a call costs more than the work of reading a byte or a word.
#![allow(clippy::inline_always)]

pub mod json;
mod message;
pub mod msgpack;
pub mod printable;
mod schema;
#[cfg(feature = "sources")]
pub mod sources;
mod text;
mod transcode;
pub mod wire;

pub use message::{
    DecodeError, Decoder, Encoder, FieldKey, Limits, List, Map, Message, MessageMut, MessageRef, SetError,
    Value,
};
pub use schema::{
    Cardinality, Edition, EnumType, EnumValue, Field, File, Kind, MessageId, MessageType, Method, Oneof,
    Problem, Schema, SchemaError, Service, WellKnown,
};
