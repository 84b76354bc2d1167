//! Decodes header blocks (RFC 7541 §3).

use super::dynamic_table::{DynamicTable, TableField};
use super::representation::{HUFFMAN, INCREMENTAL, INDEXED, NEVER_INDEXED, SIZE_UPDATE, SIZE_UPDATE_MASK};
use super::{DEFAULT_TABLE_SIZE, DecodeError, huffman, integer, static_table};
use crate::fields::{FIELD_OVERHEAD, FieldList, Indexing};

/// Maximum number of size updates at the start of a block: the smallest size since the last block, then the final one
/// (RFC 7541 §4.2).
const SIZE_UPDATES_MAX: usize = 2;

/// Decodes the header blocks of one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// Maximum for size updates.
    size_limit: usize,
    /// The lowest value to which the limit fell below the table's size. The next block must start with a size update to
    /// at most this.
    update_due: Option<usize>,
    limit_changes: u64,
    /// Name bytes that the last block had copied within the table.
    copied_names_len: usize,
}

/// The result of decoding a complete block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeOutcome {
    /// The list contains all fields.
    Complete,
    /// The fields exceed the maximum list size. The list contains the fields before the first that did not fit. The
    /// table is still in sync, so the connection can continue.
    TooLarge,
}

impl Decoder {
    /// Creates a decoder whose peer may use a table of up to `max_table_size` bytes.
    ///
    /// The table starts with the smaller of that size and 4096 bytes; the peer announces when it uses more. To use less
    /// than 4096, start with 4096 and reduce the limit once the peer has acknowledged it.
    pub fn new(max_table_size: usize) -> Self {
        Self {
            table: DynamicTable::new(max_table_size.min(DEFAULT_TABLE_SIZE)),
            size_limit: max_table_size,
            update_due: None,
            limit_changes: 0,
            copied_names_len: 0,
        }
    }

    /// Sets the limit in bytes for the peer's size updates: our `SETTINGS_HEADER_TABLE_SIZE`, once the peer has
    /// acknowledged it. If the table is larger, the next block must start with a size update (RFC 9113 §4.3.1).
    pub fn set_max_table_size(&mut self, bytes: usize) {
        if bytes != self.size_limit {
            self.size_limit = bytes;
            self.limit_changes += 1;
        }
        if bytes < self.table.size_max() {
            // A reduction undone before the next block must be signalled too (RFC 7541 §4.2).
            self.update_due = Some(self.update_due.map_or(bytes, |smallest| smallest.min(bytes)));
        }
    }

    /// Returns a version that changes whenever the dynamic table or its limit changes. Equal blocks at equal versions
    /// decode equally. If a block leaves the version unchanged, its result can be cached.
    pub fn version(&self) -> u64 {
        // Both only grow, so the sum changes if either does.
        self.table.version() + self.limit_changes
    }

    /// Frees unused memory while the connection is idle. Keeps the table.
    pub(crate) fn shrink(&mut self) {
        self.table.shrink();
    }

    /// Returns the number of name bytes that the last block had copied within the table. A field of two octets can
    /// refer to an entry of 4 KB and enter the table with its name.
    pub(crate) fn copied_names_len(&self) -> usize {
        self.copied_names_len
    }

    /// Decodes one complete block into `out`, which is cleared first.
    ///
    /// `list_size_max` bounds the decoded size in bytes, as [`FieldList::size`] counts it. The rest of a larger block
    /// is still decoded, to keep the table in sync. After an error `out` is empty.
    pub fn decode(
        &mut self,
        block: &[u8],
        list_size_max: usize,
        out: &mut FieldList,
    ) -> Result<DecodeOutcome, DecodeError> {
        out.clear();
        let mut rest = block;
        self.decode_size_updates(&mut rest)?;
        self.decode_after_prefix(rest, list_size_max, out)
    }

    /// Decodes the rest of a block whose first fields are in `out` and have not changed the table.
    pub(crate) fn decode_after_prefix(
        &mut self,
        rest: &[u8],
        list_size_max: usize,
        out: &mut FieldList,
    ) -> Result<DecodeOutcome, DecodeError> {
        self.copied_names_len = 0;
        let decoded = self.decode_fields(rest, list_size_max, out);
        if decoded.is_err() {
            // A field may be partially written.
            out.clear();
        }
        decoded
    }

    fn decode_fields(
        &mut self,
        mut block: &[u8],
        list_size_max: usize,
        out: &mut FieldList,
    ) -> Result<DecodeOutcome, DecodeError> {
        let bytes = list_size_max.saturating_sub(out.size());
        let mut space = FreeSpace { bytes, outcome: DecodeOutcome::Complete };
        while let Some(&first) = block.first() {
            if first & INDEXED != 0 {
                let field = self.table_field(integer::decode(7, &mut block)?)?;
                // A field that does not fit is not copied, because each octet could make us copy kilobytes.
                if space.take(field.bytes.len()) {
                    out.push_joined(field.bytes, field.name_len, Indexing::Insert);
                }
            } else if first & INCREMENTAL != 0 {
                self.decode_literal(6, Indexing::Insert, &mut block, &mut space, out)?;
            } else if first & SIZE_UPDATE != 0 {
                return Err(DecodeError::SizeUpdateMisplaced);
            } else {
                let indexing = if first & NEVER_INDEXED != 0 { Indexing::Never } else { Indexing::Literal };
                self.decode_literal(4, indexing, &mut block, &mut space, out)?;
            }
        }
        Ok(space.outcome)
    }

    /// Applies the size updates at the start of `block`, and checks that a required one is present.
    fn decode_size_updates(&mut self, block: &mut &[u8]) -> Result<(), DecodeError> {
        let mut updates = 0;
        while let Some(&first) = block.first()
            && first & SIZE_UPDATE_MASK == SIZE_UPDATE
        {
            let size = integer::decode(5, block)? as usize;
            updates += 1;
            if updates > SIZE_UPDATES_MAX {
                return Err(DecodeError::SizeUpdateMisplaced);
            }
            if size > self.size_limit {
                return Err(DecodeError::SizeUpdateTooLarge);
            }
            if self.update_due.is_some_and(|smallest| size <= smallest) {
                self.update_due = None;
            }
            self.table.set_size_max(size);
        }
        if self.update_due.is_some() { Err(DecodeError::SizeUpdateMissing) } else { Ok(()) }
    }

    /// Decodes a literal field (RFC 7541 §6.2). Appends it to `out` if it fits, and inserts it into the table if its
    /// indexing says so.
    fn decode_literal(
        &mut self,
        prefix_bits: u32,
        indexing: Indexing,
        block: &mut &[u8],
        space: &mut FreeSpace,
        out: &mut FieldList,
    ) -> Result<(), DecodeError> {
        let start = out.arena().len();
        let index = integer::decode(prefix_bits, block)?;
        if index == 0 {
            decode_string(block, out.arena())?;
        } else {
            let name = self.table_field(index)?.name();
            if !space.fits(name.len()) {
                space.exceed();
                return self.decode_oversized_literal(index, indexing, block, out);
            }
            out.arena().extend_from_slice(name);
        }
        let name_end = out.arena().len();
        decode_string(block, out.arena())?;
        let field = out.finish_field(start, name_end, indexing);
        if indexing == Indexing::Insert {
            self.table.insert(field.name, field.value);
            if index != 0 {
                self.copied_names_len += field.name.len();
            }
        }
        if !space.take(field.name.len() + field.value.len()) {
            out.pop();
        }
        Ok(())
    }

    /// Decodes the rest of a literal field with an indexed name that does not fit into the list. Only the table may
    /// need it, so its name is not copied elsewhere.
    #[cold]
    fn decode_oversized_literal(
        &mut self,
        index: u32,
        indexing: Indexing,
        block: &mut &[u8],
        out: &mut FieldList,
    ) -> Result<(), DecodeError> {
        let start = out.arena().len();
        decode_string(block, out.arena())?;
        if indexing == Indexing::Insert {
            let name_len = self.table_field(index)?.name().len();
            self.copied_names_len += name_len;
            let value = &out.arena()[start..];
            if let Some(age) = (index as usize).checked_sub(static_table::LEN + 1) {
                self.table.insert_named(age, value);
            } else {
                let field = static_table::get(index as usize).ok_or(DecodeError::InvalidIndex)?;
                self.table.insert(field.name(), value);
            }
        }
        out.arena().truncate(start);
        Ok(())
    }

    /// Returns the field at an index in the address space of both tables (RFC 7541 §2.3.3).
    #[inline]
    fn table_field(&self, index: u32) -> Result<TableField<'_>, DecodeError> {
        let index = index as usize;
        let field = match index.checked_sub(static_table::LEN + 1) {
            None => static_table::get(index),
            Some(age) => self.table.get(age),
        };
        field.ok_or(DecodeError::InvalidIndex)
    }
}

/// Remaining size of a list in bytes, and whether it was exceeded.
struct FreeSpace {
    bytes: usize,
    outcome: DecodeOutcome,
}

impl FreeSpace {
    /// Returns whether a field of `len` bytes fits.
    #[inline]
    fn fits(&self, len: usize) -> bool {
        len + FIELD_OVERHEAD <= self.bytes
    }

    /// Records that a field did not fit; no further one fits.
    fn exceed(&mut self) {
        *self = Self { bytes: 0, outcome: DecodeOutcome::TooLarge };
    }

    /// Reserves the size of a field of `len` bytes. After one that does not fit, none does.
    #[inline]
    fn take(&mut self, len: usize) -> bool {
        let rest = self.bytes.checked_sub(len + FIELD_OVERHEAD);
        if rest.is_none() {
            self.outcome = DecodeOutcome::TooLarge;
        }
        self.bytes = rest.unwrap_or(0);
        rest.is_some()
    }
}

/// Decodes a string literal and appends it to `out` (RFC 7541 §5.2).
fn decode_string(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let huffman_coded = block.first().is_some_and(|first| first & HUFFMAN != 0);
    let len = integer::decode(7, block)? as usize;
    let (string, rest) = block.split_at_checked(len).ok_or(DecodeError::Truncated)?;
    *block = rest;
    if huffman_coded {
        huffman::decode(string, out)
    } else {
        out.extend_from_slice(string);
        Ok(())
    }
}
