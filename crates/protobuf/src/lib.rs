//! Protobuf at run time: messages whose type is known only when the program runs.
//!
//! The crate does no I/O, reads no clock, and never panics on what it is given.

#![forbid(unsafe_code)]

pub mod json;
mod text;
pub mod wire;
