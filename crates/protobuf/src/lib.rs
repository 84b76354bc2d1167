//! Protobuf at run time: messages whose type is known only when the program runs.
//!
//! ```
//! use thalweg_protobuf::{Decoder, Encoder, Schema, Value};
//! # let source = "syntax = 'proto3'; package shop; message Order { string item = 1; repeated int32 sizes = 2; }";
//! # let set = thalweg_protobuf::sources::compile(&["shop.proto"], |_| Some(source.to_owned()))?;
//!
//! // What `protoc --include_imports -o` writes, or `sources::compile`, or gRPC's reflection gives.
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
//! # The way of a message
//!
//! 1. **Descriptors** are read and checked, and become a [`Schema`]. [`MessageType`], [`Field`] and the other handles look into
//!    it. Text of `.proto` files is compiled by `sources` (with the feature of that name).
//! 2. With the schema come **flat tables** (`schema/table.rs`): for each message, from a field's number to all that decoding and
//!    encoding need to know of it.
//! 3. A **message** lies in an arena of 64-bit words (`message/arena.rs`). [`Message`] owns one; a [`Decoder`] uses one again and
//!    again; [`MessageRef`] and [`MessageMut`] are the ways to read and to change it.
//! 4. **Decoding** is one loop over the records of the wire (`message/decode.rs`, [`wire`]), within [`Limits`]. **Encoding** goes
//!    from the end to the start (`message/encode.rs`), so that each length is known when it is written, by words and blocks
//!    (`message/output.rs`).
//! 5. **JSON and MessagePack** are printed straight from wire bytes and built straight to them (`transcode`), by tables made for
//!    that when they are first asked for: [`json`], [`msgpack`].
//!
//! How fast that is beside prost and prost-reflect is in `docs/PERFORMANCE.md`; `examples/speed` measures it.
//!
//! The crate does no I/O, reads no clock, and never panics on what it is given.

#![forbid(unsafe_code)]
// The wire knows no signs: `int64` and `uint64` are the same bits, on purpose.
#![allow(clippy::cast_possible_wrap)]
// What reads a byte or a word stands in the decoder's loop, where a call costs more than the work.
#![allow(clippy::inline_always)]

pub mod dissect;
pub mod json;
mod message;
pub mod msgpack;
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
    Cardinality, Edition, EnumType, EnumValue, Field, File, Kind, MessageType, Method, Oneof, Problem,
    Schema, SchemaError, Service, WellKnown,
};
