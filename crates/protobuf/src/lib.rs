//! Protobuf at run time: messages whose type is known only when the program runs.
//!
//! The crate does no I/O, reads no clock, and never panics on what it is given.

#![forbid(unsafe_code)]
// The wire knows no signs: `int64` and `uint64` are the same bits, on purpose.
#![allow(clippy::cast_possible_wrap)]
// What reads a byte or a word stands in the decoder's loop, where a call costs more than the work.
#![allow(clippy::inline_always)]

pub mod dissect;
pub mod json;
pub mod msgpack;
mod schema;
mod text;
mod transcode;
pub mod wire;

pub use schema::{
    Cardinality, Edition, EnumType, EnumValue, Field, File, Kind, MessageType, Method, Oneof, Problem,
    Schema, SchemaError, Service, WellKnown,
};
