//! HPACK, the compression of header fields ([RFC 7541]).
//!
//! A connection has one [`Encoder`] for the blocks it sends and one [`Decoder`] for those it receives. Each has a
//! dynamic table in sync with the peer's, so every block must pass through them, in order.
//!
//! ```
//! use thalweg_http2::hpack::{DecodeOutcome, Decoder, Encoder};
//! use thalweg_http2::{Block, FieldList, Indexing};
//!
//! let mut fields = FieldList::new();
//! fields.push(b":status", b"200", Indexing::Insert);
//! fields.push(b"content-type", b"application/grpc", Indexing::Insert);
//!
//! let mut block = Vec::new();
//! Encoder::new().encode(Block { fixed: None, extra: &fields }, &mut block);
//!
//! let mut received = FieldList::new();
//! let outcome = Decoder::new(4096).decode(&block, 16 * 1024, &mut received).unwrap();
//! assert_eq!(outcome, DecodeOutcome::Complete);
//! assert_eq!(received, fields);
//! ```
//!
//! [RFC 7541]: https://www.rfc-editor.org/rfc/rfc7541

mod admission;
mod block_cache;
mod decoder;
mod dynamic_table;
mod encoder;
mod error;
mod field_index;
mod huffman;
mod integer;
mod representation;
mod static_table;

pub use decoder::{DecodeOutcome, Decoder};
pub use encoder::Encoder;
pub use error::DecodeError;
pub use representation::DEFAULT_TABLE_SIZE;
