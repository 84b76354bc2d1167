//! Encodes header blocks (RFC 7541 §3).

use super::admission::Admission;
use super::block_cache::BlockCache;
use super::dynamic_table::DynamicTable;
use super::field_index::{FieldHash, FieldIndex, name_hash};
use super::representation::{HUFFMAN, INCREMENTAL, INDEXED, NEVER_INDEXED, SIZE_UPDATE, WITHOUT_INDEXING};
use super::static_table::{self, StaticMatch};
use super::{DEFAULT_TABLE_SIZE, huffman, integer};
use crate::fields::{Block, Field, FieldList, FixedFields, Indexing};

/// Maximum size of the table in bytes, even if the peer allows more.
const TABLE_SIZE_MAX: usize = DEFAULT_TABLE_SIZE;

/// Encodes the header blocks of one direction of a connection.
///
/// Blocks must be sent completely, in the order in which they were encoded.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    index: FieldIndex,
    admission: Admission,
    cache: BlockCache,
    size_change: Option<SizeChange>,
}

/// Sizes that the peer set since the last block (RFC 7541 §4.2).
#[derive(Clone, Copy, Debug)]
struct SizeChange {
    smallest: usize,
    last: usize,
}

/// Whether encoding a field again would give the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoded {
    /// Yes, until the table changes.
    Stable,
    /// No: it entered the table, or may do so next time.
    Unstable,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// Creates an encoder with a table of 4096 bytes, HTTP/2's initial value.
    pub fn new() -> Self {
        Self {
            table: DynamicTable::new(TABLE_SIZE_MAX),
            index: FieldIndex::default(),
            admission: Admission::default(),
            cache: BlockCache::default(),
            size_change: None,
        }
    }

    /// Sets the table size in bytes that the peer allows: its `SETTINGS_HEADER_TABLE_SIZE`. At most 4096 are used. The
    /// next block announces the change.
    pub fn set_max_table_size(&mut self, peer_max: usize) {
        let last = peer_max.min(TABLE_SIZE_MAX);
        let smallest = self.size_change.map_or(last, |change| change.smallest.min(last));
        self.size_change = Some(SizeChange { smallest, last });
    }

    /// Appends the encoded block to `out`.
    ///
    /// Fixed fields are copied from a cache unless the table has changed since they were encoded.
    #[inline]
    pub fn encode(&mut self, block: Block<'_>, out: &mut Vec<u8>) {
        if self.size_change.is_some() {
            self.encode_size_change(out);
        }
        if let Some(fixed) = block.fixed {
            match self.cache.get(fixed.id(), self.table.version()) {
                Some(bytes) => out.extend_from_slice(bytes),
                None => self.encode_fixed(fixed, out),
            }
        }
        if !block.extra.is_empty() {
            self.encode_list(block.extra, out);
        }
    }

    /// Returns the bytes that [`encode`](Self::encode) would append, if they are cached: those of fixed fields only.
    #[inline]
    pub(crate) fn cached(&self, block: Block<'_>) -> Option<&[u8]> {
        if self.size_change.is_some() || !block.extra.is_empty() {
            return None;
        }
        self.cache.get(block.fixed?.id(), self.table.version())
    }

    /// Frees unused memory while the connection is idle. Keeps the table.
    pub(crate) fn shrink(&mut self) {
        self.table.shrink();
        self.admission = Admission::default();
        self.cache = BlockCache::default();
    }

    /// Announces the smallest size and then the last one, if they differ from the table's (RFC 7541 §4.2).
    #[cold]
    fn encode_size_change(&mut self, out: &mut Vec<u8>) {
        let Some(change) = self.size_change.take() else { return };
        if change.smallest < self.table.size_max() {
            self.encode_size_update(change.smallest, out);
        }
        if change.last != self.table.size_max() {
            self.encode_size_update(change.last, out);
        }
    }

    fn encode_size_update(&mut self, size: usize, out: &mut Vec<u8>) {
        integer::encode(5, SIZE_UPDATE, size, out);
        self.table.set_size_max(size);
    }

    /// Encodes fixed fields one by one, and caches the bytes if they are stable.
    #[cold]
    fn encode_fixed(&mut self, fixed: &FixedFields, out: &mut Vec<u8>) {
        let start = out.len();
        if self.encode_list(fixed.fields(), out) == Encoded::Stable {
            self.cache.insert(fixed.id(), self.table.version(), &out[start..]);
        }
    }

    /// Encodes a list; stable if all fields are.
    fn encode_list(&mut self, list: &FieldList, out: &mut Vec<u8>) -> Encoded {
        let mut outcome = Encoded::Stable;
        for field in list.iter() {
            if self.encode_field(field, out) == Encoded::Unstable {
                outcome = Encoded::Unstable;
            }
        }
        outcome
    }

    fn encode_field(&mut self, field: Field<'_>, out: &mut Vec<u8>) -> Encoded {
        match field.indexing {
            Indexing::Insert => self.encode_indexed(field, out),
            Indexing::Literal => match static_table::find(field.name, field.value) {
                StaticMatch::Field(index) => {
                    integer::encode(7, INDEXED, index, out);
                    Encoded::Stable
                }
                StaticMatch::Name(index) => encode_literal(4, WITHOUT_INDEXING, index, field, out),
                StaticMatch::None => {
                    let index = self.dynamic_name(name_hash(field.name), field.name);
                    encode_literal(4, WITHOUT_INDEXING, index, field, out)
                }
            },
            Indexing::Never => {
                let index = static_table::find_name(field.name)
                    .unwrap_or_else(|| self.dynamic_name(name_hash(field.name), field.name));
                encode_literal(4, NEVER_INDEXED, index, field, out)
            }
        }
    }

    fn encode_indexed(&mut self, field: Field<'_>, out: &mut Vec<u8>) -> Encoded {
        let static_match = static_table::find(field.name, field.value);
        if let StaticMatch::Field(index) = static_match {
            integer::encode(7, INDEXED, index, out);
            return Encoded::Stable;
        }
        let hash = FieldHash::new(field.name, field.value);
        if let Some(age) = self.index.find_field(&self.table, hash, field.name, field.value) {
            integer::encode(7, INDEXED, dynamic_index(age), out);
            return Encoded::Stable;
        }
        let name_index = match static_match {
            StaticMatch::Name(index) => index,
            _ => self.dynamic_name(hash.name, field.name),
        };
        let field_size = DynamicTable::field_size(field.name, field.value);
        if field_size > self.table.size_max() / 2 {
            // It would evict most entries.
            return encode_literal(4, WITHOUT_INDEXING, name_index, field, out);
        }
        if self.table.has_room(field_size) || self.admission.admits(hash.field) {
            encode_literal(6, INCREMENTAL, name_index, field, out);
            self.table.insert(field.name, field.value);
            self.index.push(hash, self.table.len());
        } else {
            encode_literal(4, WITHOUT_INDEXING, name_index, field, out);
        }
        Encoded::Unstable
    }

    /// Returns the index of a dynamic entry with this name, or 0 if there is none.
    fn dynamic_name(&self, hash: u32, name: &[u8]) -> usize {
        self.index.find_name(&self.table, hash, name).map_or(0, dynamic_index)
    }
}

/// The dynamic table follows the static one (RFC 7541 §2.3.3).
fn dynamic_index(age: usize) -> usize {
    static_table::LEN + 1 + age
}

/// Appends a literal field (RFC 7541 §6.2). Its name is that of `name_index`, or is spelt out if that is 0.
fn encode_literal(
    prefix_bits: u32,
    pattern: u8,
    name_index: usize,
    field: Field<'_>,
    out: &mut Vec<u8>,
) -> Encoded {
    integer::encode(prefix_bits, pattern, name_index, out);
    if name_index == 0 {
        encode_string(field.name, out);
    }
    encode_string(field.value, out);
    Encoded::Stable
}

/// Appends a string literal in the shorter of its two forms (RFC 7541 §5.2).
fn encode_string(string: &[u8], out: &mut Vec<u8>) {
    let coded_len = huffman::encoded_len(string);
    if coded_len < string.len() {
        integer::encode(7, HUFFMAN, coded_len, out);
        huffman::encode(string, out);
    } else {
        integer::encode(7, 0, string.len(), out);
        out.extend_from_slice(string);
    }
}
