//! Protobuf as human-readable text, for types known at run time.
//!
//! - [`text_format`]: messages in the Protobuf text format, as `protoc --decode` prints it.
//! - [`declarations`]: descriptors as the text of `.proto` files.
//! - [`dissect`]: annotated dumps of wire bytes, including malformed ones.
//!
//! Types and messages are those of [`thalweg_protobuf`], which has JSON and MessagePack. The crate does no I/O, reads
//! no clock, and never panics on invalid input.

#![forbid(unsafe_code)]
// Protobuf integers have no sign on the wire: `int64` and `uint64` share their bits.
#![allow(clippy::cast_possible_wrap)]

pub mod declarations;
pub mod dissect;
pub mod text_format;
