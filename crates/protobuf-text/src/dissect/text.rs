//! Encoded messages as text, from which exactly the same bytes can be assembled.
//!
//! The language is [Protoscope](https://github.com/protocolbuffers/protoscope)'s, of which [`write`](fn@write) uses a
//! subset:
//!
//! ```text
//! 1: {"polar penguin"}              # a tag, and bytes with their length before them
//! 2: 20                             # a varint; -5z is one in zigzag
//! 3: {1: 2.5  2: 7i32}              # a message: 8 bytes, 4 bytes
//! 4: !{1: 0x10i64}                  # a group
//! long-form:2 5: long-form:1 150    # varints of two bytes and one byte more than they need
//! 6:LEN `05aabb`                    # a tag alone, and bytes as they are
//! ```
//!
//! An extension, `grpc:FLAGS {…}`, is a message with gRPC's 5-byte prefix.

mod assemble;
mod lex;
mod write;

pub use assemble::assemble;
pub use lex::AssembleError;
pub use write::{write, write_frames};

#[cfg(test)]
mod tests;
