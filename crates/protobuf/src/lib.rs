//! Dynamic Protobuf messages: decode, encode, JSON, MessagePack and text format for types known at run time.
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
//! **Descriptors** are compiled once into a [`Schema`] (`schema`): records of messages, fields and enums that name each
//! other by index. [`MessageType`], [`Field`] and the other handles look into it. Text of `.proto` files is compiled by
//! `sources` (with the feature of that name): proto2, proto3 and editions, to the descriptors that protoc writes.
//!
//! A message that is **decoded** enters these files, in this order:
//!
//! 1. `message/decoder.rs` or `message/owned.rs`: a [`Decoder`] uses its memory again and again, a [`Message`] owns it.
//! 2. `message/decode.rs`: one loop over the records of the wire, within [`Limits`].
//! 3. `wire/reader.rs` and `wire/varint.rs` read the next tag.
//! 4. `schema/table.rs` leads from its number to an `Entry`: what the field is, and where its slot is.
//! 5. `schema/number.rs` makes the word of a number; `message/decode/packed.rs` and `wire/rows.rs` those of a packed
//!    row.
//! 6. `message/arena.rs` keeps the words.
//! 7. `message/message_ref.rs`, `message/read.rs` and `message/value.rs`: a [`MessageRef`] gives [`Value`]s of it.
//!
//! **Encoding** goes from the end to the start (`message/encoder.rs`, `message/encode.rs`), so that each length is
//! known when it is written, by words and blocks (`message/output.rs`).
//!
//! **[JSON](json) and [MessagePack](msgpack)** are printed straight from wire bytes and built straight to them,
//! without a message in between: `json.rs`, then `transcode/print.rs`, which goes by the same `Entry`s, then
//! `json/sink.rs`; the other way round `json/source.rs`, then `transcode/build.rs`.
//!
//! **[Text](text_format)** is printed from a [`Message`] and parsed to records, for people.
//!
//! **[`dissect`]** takes bytes apart, malformed ones too, for a person to look at.
//!
//! How fast that is beside prost, buffa and prost-reflect is in `docs/PERFORMANCE.md`; the example `speed` of
//! `crates/codec` measures it.
//!
//! The crate does no I/O, reads no clock, and never panics on what it is given.

#![forbid(unsafe_code)]
// The wire knows no signs: `int64` and `uint64` are the same bits, on purpose.
#![allow(clippy::cast_possible_wrap)]
// What reads a byte or a word stands in the decoder's loop, where a call costs more than the work.
#![allow(clippy::inline_always)]

#[cfg(feature = "sources")]
pub mod declarations;
pub mod dissect;
pub mod json;
mod message;
pub mod msgpack;
pub mod printable;
mod schema;
#[cfg(feature = "sources")]
pub mod sources;
mod text;
pub mod text_format;
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
