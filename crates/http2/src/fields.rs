//! Header fields: flat lists, and lists that are sent repeatedly.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a field beyond its bytes, in list sizes and in HPACK tables (RFC 9113 §6.5.2, RFC 7541 §4.1).
pub(crate) const FIELD_OVERHEAD: usize = 32;

/// The HPACK representations allowed for a field.
///
/// A received field is [`Insert`](Indexing::Insert) if it came from a table or entered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Indexing {
    /// The field may enter the dynamic table. Use it if the field will be sent again on this connection.
    Insert,
    /// The field stays out of the dynamic table. Use it for values that are unlikely to be sent again.
    Literal,
    /// The field is sensitive. No hop may add it to a table, where an attacker could check guesses against it (RFC 7541
    /// §7.1.3).
    Never,
}

/// A header field, borrowed from a [`FieldList`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name: lower case in HTTP/2, with a leading colon for pseudo-headers.
    pub name: &'a [u8],
    /// The value; arbitrary bytes.
    pub value: &'a [u8],
    /// The HPACK representations allowed for the field, or the one received.
    pub indexing: Indexing,
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = String::from_utf8_lossy(self.name);
        match self.indexing {
            Indexing::Never => write!(f, "{name}: (sensitive, {} bytes)", self.value.len()),
            Indexing::Insert | Indexing::Literal => {
                write!(f, "{name}: {}", String::from_utf8_lossy(self.value).escape_debug())
            }
        }
    }
}

/// A list of header fields in one flat arena.
///
/// Fields have no allocations of their own, and [`clear`](FieldList::clear) keeps the capacity, so a reused list does
/// not allocate.
///
/// ```
/// use thalweg_http2::{FieldList, Indexing};
///
/// let mut trailers = FieldList::new();
/// trailers.push(b"grpc-status", b"0", Indexing::Insert);
/// trailers.push(b"trace-bin", b"\x00\xff", Indexing::Literal);
/// assert_eq!(trailers.get(b"grpc-status"), Some(&b"0"[..]));
/// ```
#[derive(Default, Clone, PartialEq, Eq)]
pub struct FieldList {
    /// Names and values back to back, in order.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// End offsets of a field's name and value in the arena. A field starts where the previous one ends, so equal lists
/// have equal entries.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    name_end: usize,
    value_end: usize,
    indexing: Indexing,
}

impl FieldList {
    /// Creates an empty list. Does not allocate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field.
    pub fn push(&mut self, name: &[u8], value: &[u8], indexing: Indexing) {
        self.bytes.extend_from_slice(name);
        let name_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.entries.push(Entry { name_end, value_end: self.bytes.len(), indexing });
    }

    /// Reserves memory for headers of usual length if there is none yet, to avoid growing field by field.
    pub(crate) fn reserve_initial(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(256);
            self.entries.reserve(8);
        }
    }

    /// Removes all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the size in bytes as `SETTINGS_MAX_HEADER_LIST_SIZE` counts it: names, values and 32 per field (RFC 9113
    /// §6.5.2).
    pub fn size(&self) -> usize {
        self.bytes.len() + self.entries.len() * FIELD_OVERHEAD
    }

    /// Iterates over the fields in order.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.iter_from(0)
    }

    /// Like [`iter`](Self::iter), without the first `count` fields.
    pub(crate) fn iter_from(&self, count: usize) -> impl Iterator<Item = Field<'_>> {
        let (before, entries) = self.entries.split_at(count.min(self.entries.len()));
        let mut start = before.last().map_or(0, |entry| entry.value_end);
        entries.iter().map(move |entry| {
            let name = &self.bytes[start..entry.name_end];
            let value = &self.bytes[entry.name_end..entry.value_end];
            start = entry.value_end;
            Field { name, value, indexing: entry.indexing }
        })
    }

    /// Returns the value of the first field with this name. Compares names bytewise; HTTP/2 names are lower case.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|field| field.name == name).map(|field| field.value)
    }

    /// Copies another list into the existing memory.
    pub(crate) fn copy_from(&mut self, other: &FieldList) {
        self.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.entries.extend_from_slice(&other.entries);
    }

    /// Appends a field whose name and value are contiguous.
    #[inline]
    pub(crate) fn push_joined(&mut self, bytes: &[u8], name_len: usize, indexing: Indexing) {
        let name_end = self.bytes.len() + name_len;
        self.bytes.extend_from_slice(bytes);
        self.entries.push(Entry { name_end, value_end: self.bytes.len(), indexing });
    }

    /// Returns the arena, for a decoder that writes name and value in place and then calls
    /// [`finish_field`](Self::finish_field).
    pub(crate) fn arena(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Adds a field of the bytes appended to the arena from `start`: a name up to `name_end`, then a value.
    pub(crate) fn finish_field(&mut self, start: usize, name_end: usize, indexing: Indexing) -> Field<'_> {
        self.entries.push(Entry { name_end, value_end: self.bytes.len(), indexing });
        Field { name: &self.bytes[start..name_end], value: &self.bytes[name_end..], indexing }
    }

    /// Removes the last field.
    pub(crate) fn pop(&mut self) {
        self.entries.pop();
        self.bytes.truncate(self.entries.last().map_or(0, |entry| entry.value_end));
    }
}

impl fmt::Debug for FieldList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Fields that are sent repeatedly, for example the headers of every request to a method.
///
/// A connection encodes them once per state of its HPACK table, then copies the bytes. Create one per distinct list,
/// keep it, and share it among connections.
#[derive(Debug)]
pub struct FixedFields {
    id: u64,
    fields: FieldList,
}

impl FixedFields {
    /// Creates fixed fields. Fields that should be encoded as one byte each must be [`Indexing::Insert`].
    pub fn new(fields: FieldList) -> Arc<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), fields })
    }

    /// Copies the list with the same identity for encoders, so that threads with a copy each do not contend for the
    /// reference count.
    pub fn duplicate(&self) -> Arc<Self> {
        Arc::new(Self { id: self.id, fields: self.fields.clone() })
    }

    /// Returns the fields.
    pub fn fields(&self) -> &FieldList {
        &self.fields
    }

    /// Returns the identity: unique in this process, in sequence from 1.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// The content of a header block: the fixed fields first, because they include the pseudo-headers, then the extra ones.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Fields shared by many blocks.
    pub fixed: Option<&'a Arc<FixedFields>>,
    /// Fields of this block only.
    pub extra: &'a FieldList,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(fields: &[(&str, &str, Indexing)]) -> FieldList {
        let mut list = FieldList::new();
        for (name, value, indexing) in fields {
            list.push(name.as_bytes(), value.as_bytes(), *indexing);
        }
        list
    }

    #[test]
    fn debug_hides_sensitive_values() {
        let list =
            list(&[("te", "trailers", Indexing::Insert), ("authorization", "secret", Indexing::Never)]);
        assert_eq!(format!("{list:?}"), "[te: trailers, authorization: (sensitive, 6 bytes)]");
    }

    #[test]
    fn lists_are_equal_if_names_values_and_indexing_are() {
        let one = list(&[("a", "bc", Indexing::Insert)]);
        assert_eq!(one, list(&[("a", "bc", Indexing::Insert)]));
        assert_ne!(one, list(&[("ab", "c", Indexing::Insert)]));
        assert_ne!(one, list(&[("a", "bc", Indexing::Never)]));
        assert_ne!(one, list(&[("a", "b", Indexing::Insert), ("c", "", Indexing::Insert)]));
    }

    #[test]
    fn pop_undoes_push() {
        let mut popped = list(&[("a", "1", Indexing::Insert), ("b", "2", Indexing::Literal)]);
        popped.push(b"c", b"3", Indexing::Insert);
        popped.pop();
        assert_eq!(popped, list(&[("a", "1", Indexing::Insert), ("b", "2", Indexing::Literal)]));
        popped.pop();
        popped.pop();
        assert_eq!(popped, FieldList::new());
        assert_eq!(popped.size(), 0);
    }

    #[test]
    fn cleared_list_equals_a_new_one() {
        let mut cleared = list(&[("a", "1", Indexing::Insert)]);
        assert_eq!(cleared.size(), 34);
        cleared.clear();
        cleared.push(b"b", b"2", Indexing::Insert);
        assert_eq!(cleared, list(&[("b", "2", Indexing::Insert)]));
    }
}
