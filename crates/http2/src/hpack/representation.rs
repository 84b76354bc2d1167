//! The bit patterns at the start of each representation (RFC 7541 §6), highest bit first; and the initial table size.

/// Initial size of dynamic tables in bytes: the initial value of `SETTINGS_HEADER_TABLE_SIZE` (RFC 9113 §6.5.2).
pub const DEFAULT_TABLE_SIZE: usize = 4096;

/// Indexed field (§6.1), then a prefix of 7 bits.
pub(super) const INDEXED: u8 = 0x80;
/// Literal field that enters the dynamic table (§6.2.1), then a prefix of 6 bits.
pub(super) const INCREMENTAL: u8 = 0x40;
/// Dynamic table size update (§6.3), then a prefix of 5 bits.
pub(super) const SIZE_UPDATE: u8 = 0x20;
/// The bits that distinguish a size update from other representations.
pub(super) const SIZE_UPDATE_MASK: u8 = 0xe0;
/// Literal field that must never be indexed (§6.2.3), then a prefix of 4 bits.
pub(super) const NEVER_INDEXED: u8 = 0x10;
/// Literal field that does not enter the dynamic table (§6.2.2), then a prefix of 4 bits.
pub(super) const WITHOUT_INDEXING: u8 = 0x00;
/// Marks a string literal as Huffman-coded (§5.2); its length follows in a prefix of 7 bits.
pub(super) const HUFFMAN: u8 = 0x80;
