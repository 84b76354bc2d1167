//! HPACK, the compression of header fields ([RFC 7541]).
//!
//! A connection has one [`Encoder`] for the blocks it sends and one [`Decoder`] for those it receives. Both hold a
//! dynamic table whose state is shared with the peer, so every block must pass through them, in order.
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
mod field_index;
mod huffman;
mod integer;
mod static_table;

pub use decoder::{DecodeError, DecodeOutcome, Decoder};
pub use encoder::Encoder;

/// The size in bytes that dynamic tables have until something else is agreed: the initial value of
/// `SETTINGS_HEADER_TABLE_SIZE` (RFC 9113 §6.5.2).
pub const DEFAULT_TABLE_SIZE: usize = 4096;

/// The bit patterns that start each representation (RFC 7541 §6), highest bit first.
mod representation {
    /// Indexed field (§6.1), then a prefix of 7 bits.
    pub(super) const INDEXED: u8 = 0x80;
    /// Literal field that enters the dynamic table (§6.2.1), then a prefix of 6 bits.
    pub(super) const INCREMENTAL: u8 = 0x40;
    /// Dynamic table size update (§6.3), then a prefix of 5 bits.
    pub(super) const SIZE_UPDATE: u8 = 0x20;
    /// The bits that tell a size update from the others.
    pub(super) const SIZE_UPDATE_MASK: u8 = 0xe0;
    /// Literal field that no one may index (§6.2.3), then a prefix of 4 bits.
    pub(super) const NEVER_INDEXED: u8 = 0x10;
    /// Literal field that does not enter the dynamic table (§6.2.2), then a prefix of 4 bits.
    pub(super) const WITHOUT_INDEXING: u8 = 0x00;
    /// Marks a string literal as Huffman-coded (§5.2); its length follows in a prefix of 7 bits.
    pub(super) const HUFFMAN: u8 = 0x80;
}
