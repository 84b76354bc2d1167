//! Errors of the decoder.

/// The reason why a block cannot be decoded. The table is out of sync afterwards, so this is a connection error of type
/// `COMPRESSION_ERROR` (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The block ends within a field (RFC 7541 §5).
    #[error("header block ends within a field")]
    Truncated,
    /// An integer exceeds 32 bits, or is padded beyond the octets that 32 bits need (RFC 7541 §5.1).
    #[error("integer in a header block is out of bounds")]
    IntegerOverflow,
    /// An index is zero or beyond the end of the dynamic table (RFC 7541 §2.3.3, §6.1).
    #[error("header block refers to a table entry that does not exist")]
    InvalidIndex,
    /// A Huffman-coded string contains EOS or has invalid padding (RFC 7541 §5.2).
    #[error("Huffman-coded string in a header block is invalid")]
    InvalidHuffman,
    /// A size update exceeds `SETTINGS_HEADER_TABLE_SIZE` (RFC 7541 §6.3).
    #[error("dynamic table size update exceeds SETTINGS_HEADER_TABLE_SIZE")]
    SizeUpdateTooLarge,
    /// A size update follows a field, or is the third one (RFC 7541 §4.2).
    #[error("dynamic table size update is misplaced in a header block")]
    SizeUpdateMisplaced,
    /// `SETTINGS_HEADER_TABLE_SIZE` fell below the table's size, and no size update followed (RFC 9113 §4.3.1).
    #[error("header block lacks the size update that a smaller SETTINGS_HEADER_TABLE_SIZE requires")]
    SizeUpdateMissing,
}
