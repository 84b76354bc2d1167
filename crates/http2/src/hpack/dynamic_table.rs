//! The dynamic table (RFC 7541 §2.3.2, §4): a bounded first-in first-out list.

use std::collections::VecDeque;

use crate::fields::FIELD_OVERHEAD;

/// The dynamic table of one direction.
///
/// Entries are contiguous in one arena: new ones are appended, evicted ones leave a dead front. When the arena is full
/// and at least half of it is dead, the live bytes move to the front. So each byte moves at most once on average, and
/// the arena stays below four times the size of the table. Every entry remains one contiguous slice.
#[derive(Debug)]
pub(super) struct DynamicTable {
    arena: Vec<u8>,
    /// Position of `arena[0]` in the sequence of all bytes ever inserted, so that moving bytes does not change entries.
    arena_position: u64,
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// Bytes as counted by RFC 7541 §4.1.
    size: usize,
    size_max: usize,
    version: u64,
}

/// Initial capacity of a table: bytes of names and values, and number of fields.
const ARENA_LEN_FIRST: usize = 192;
const ENTRIES_FIRST: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Entry {
    position: u64,
    name_len: u32,
    /// Length of name and value; a table has less than 4 GiB (RFC 9113 §6.5.1).
    len: u32,
}

/// A field of a table: contiguous name and value.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableField<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) name_len: usize,
}

impl<'a> TableField<'a> {
    pub(super) fn name(self) -> &'a [u8] {
        &self.bytes[..self.name_len]
    }

    pub(super) fn value(self) -> &'a [u8] {
        &self.bytes[self.name_len..]
    }

    pub(super) fn is(self, name: &[u8], value: &[u8]) -> bool {
        self.bytes.len() == name.len() + value.len() && self.bytes.split_at(self.name_len) == (name, value)
    }
}

impl DynamicTable {
    /// Creates an empty table of at most `size_max` bytes. Does not allocate.
    pub(super) fn new(size_max: usize) -> Self {
        Self { arena: Vec::new(), arena_position: 0, entries: VecDeque::new(), size: 0, size_max, version: 0 }
    }

    /// Returns the size in bytes that a field has in a table (RFC 7541 §4.1).
    pub(super) fn field_size(name: &[u8], value: &[u8]) -> usize {
        name.len() + value.len() + FIELD_OVERHEAD
    }

    /// Returns a version that changes with every insertion, eviction and change of the maximum size.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether a field of this size can enter without evictions.
    pub(super) fn has_room(&self, field_size: usize) -> bool {
        self.size + field_size <= self.size_max
    }

    /// Returns the entry with this age; the newest has age 0.
    #[inline]
    pub(super) fn get(&self, age: usize) -> Option<TableField<'_>> {
        let entry = *self.entries.get(self.entries.len().checked_sub(age + 1)?)?;
        let start = (entry.position - self.arena_position) as usize;
        Some(TableField {
            bytes: &self.arena[start..start + entry.len as usize],
            name_len: entry.name_len as usize,
        })
    }

    /// Inserts a field after the necessary evictions. A field larger than the table empties it and does not enter,
    /// which is not an error (RFC 7541 §4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let field_size = Self::field_size(name, value);
        self.evict_to(self.size_max.saturating_sub(field_size));
        if field_size > self.size_max {
            return;
        }
        self.make_room(name.len() + value.len());
        let position = self.end();
        self.arena.extend_from_slice(name);
        self.arena.extend_from_slice(value);
        self.push(position, name.len(), value.len());
    }

    /// Inserts a field with the name of the entry of this age, which must exist. That entry itself may be evicted by
    /// the insertion (RFC 7541 §4.4).
    pub(super) fn insert_named(&mut self, age: usize, value: &[u8]) {
        let Some(name_len) = self.get(age).map(|named| named.name_len) else { return };
        let field_size = name_len + value.len() + FIELD_OVERHEAD;
        if field_size > self.size_max {
            self.evict_to(0);
            return;
        }
        // Copies the name before its entry is evicted.
        self.make_room(name_len + value.len());
        let named = self.entries[self.entries.len() - 1 - age];
        let start = (named.position - self.arena_position) as usize;
        let position = self.end();
        self.arena.extend_from_within(start..start + name_len);
        self.arena.extend_from_slice(value);
        self.evict_to(self.size_max - field_size);
        self.push(position, name_len, value.len());
    }

    /// Returns the position of the next entry.
    fn end(&self) -> u64 {
        self.arena_position + self.arena.len() as u64
    }

    /// Adds the entry whose bytes are at `position`, at the arena's end.
    fn push(&mut self, position: u64, name_len: usize, value_len: usize) {
        let len = name_len + value_len;
        self.entries.push_back(Entry { position, name_len: name_len as u32, len: len as u32 });
        self.size += len + FIELD_OVERHEAD;
        self.version += 1;
    }

    /// Sets the maximum size in bytes and evicts entries that no longer fit (RFC 7541 §4.3).
    pub(super) fn set_size_max(&mut self, bytes: usize) {
        if bytes != self.size_max {
            self.size_max = bytes;
            self.version += 1;
            self.evict_to(bytes);
        }
    }

    fn evict_to(&mut self, size: usize) {
        while self.size > size
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.len as usize + FIELD_OVERHEAD;
            self.version += 1;
        }
    }

    /// Moves the live bytes to the front if the arena would grow by `additional` bytes and the move pays off.
    fn make_room(&mut self, additional: usize) {
        if self.arena.len() + additional <= self.arena.capacity() {
            return;
        }
        if self.arena.capacity() == 0 {
            // Enough for most connections, so that their first headers do not cause repeated growth.
            self.arena.reserve(additional.max(ARENA_LEN_FIRST));
            self.entries.reserve(ENTRIES_FIRST);
            return;
        }
        let dead = self.dead_len();
        if dead >= self.arena.len() - dead {
            self.drop_dead(dead);
        }
    }

    /// Frees memory that holds no entries.
    pub(super) fn shrink(&mut self) {
        self.drop_dead(self.dead_len());
        self.arena.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    /// Returns the length of the arena's dead front.
    fn dead_len(&self) -> usize {
        match self.entries.front() {
            Some(oldest) => (oldest.position - self.arena_position) as usize,
            None => self.arena.len(),
        }
    }

    fn drop_dead(&mut self, len: usize) {
        self.arena.drain(..len);
        self.arena_position += len as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_entries(table: &DynamicTable, newest_first: &[(&str, &str)]) {
        assert_eq!(table.len(), newest_first.len());
        for (age, (name, value)) in newest_first.iter().enumerate() {
            let field = table.get(age).expect("an entry");
            assert!(field.is(name.as_bytes(), value.as_bytes()), "{age}: {field:?}");
            assert_eq!(field.name(), name.as_bytes());
        }
        assert!(table.get(newest_first.len()).is_none());
        let size: usize = newest_first.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        assert_eq!(table.size, size);
    }

    #[test]
    fn oldest_entry_is_evicted_to_make_room() {
        let mut table = DynamicTable::new(100);
        table.insert(b"a", b"1");
        table.insert(b"b", b"2");
        check_entries(&table, &[("b", "2"), ("a", "1")]);
        // 68 bytes are used; 34 more need an eviction.
        assert!(table.has_room(32) && !table.has_room(33));
        table.insert(b"c", b"3");
        check_entries(&table, &[("c", "3"), ("b", "2")]);
    }

    #[test]
    fn name_outlives_the_evicted_entry_it_is_copied_from() {
        let mut table = DynamicTable::new(80);
        for round in 0..50 {
            table.insert(b"a-long-name", b"1");
            table.insert_named(0, &[b'a' + round % 26]);
            let value = [b'a' + round % 26];
            // 43 bytes each: one evicts the other.
            check_entries(&table, &[("a-long-name", std::str::from_utf8(&value).unwrap())]);
        }
        table.insert(b"b", b"2");
        table.insert_named(1, b"3");
        check_entries(&table, &[("a-long-name", "3"), ("b", "2")]);
        table.insert_named(0, &[b'4'; 40]);
        check_entries(&table, &[]);
        table.insert_named(0, b"5");
        check_entries(&table, &[]);
    }

    #[test]
    fn entry_of_exactly_the_maximum_size_enters() {
        let mut table = DynamicTable::new(40);
        table.insert(b"name", b"four");
        check_entries(&table, &[("name", "four")]);
    }

    #[test]
    fn entry_larger_than_the_table_empties_it() {
        let mut table = DynamicTable::new(64);
        table.insert(b"a", b"1");
        table.insert(b"name", &[b'x'; 29]);
        check_entries(&table, &[]);
    }

    #[test]
    fn smaller_maximum_evicts_and_zero_empties() {
        let mut table = DynamicTable::new(4096);
        table.insert(b"a", b"1");
        table.insert(b"b", b"2");
        table.set_size_max(67);
        check_entries(&table, &[("b", "2")]);
        table.set_size_max(0);
        check_entries(&table, &[]);
        table.insert(b"c", b"3");
        check_entries(&table, &[]);
        table.set_size_max(34);
        table.insert(b"d", b"4");
        check_entries(&table, &[("d", "4")]);
    }

    #[test]
    fn version_changes_exactly_with_the_table() {
        let mut table = DynamicTable::new(100);
        let mut last = table.version();
        let mut changed =
            |table: &DynamicTable| std::mem::replace(&mut last, table.version()) != table.version();
        table.insert(b"name", &[b'x'; 100]);
        assert!(!changed(&table), "too large for an empty table: nothing changed");
        table.insert(b"a", b"1");
        assert!(changed(&table));
        table.set_size_max(100);
        assert!(!changed(&table));
        table.set_size_max(101);
        assert!(changed(&table));
        table.insert(b"name", &[b'x'; 100]);
        assert!(changed(&table), "it emptied the table");
    }

    #[test]
    fn shrink_keeps_only_the_entries() {
        let mut table = DynamicTable::new(100);
        for value in ["1", "2", "3", "4"] {
            table.insert(b"a", value.as_bytes());
        }
        let version = table.version();
        table.shrink();
        check_entries(&table, &[("a", "4"), ("a", "3")]);
        assert_eq!((table.arena.capacity(), table.entries.capacity()), (4, 2));
        assert_eq!(table.version(), version);
        table.insert(b"a", b"5");
        check_entries(&table, &[("a", "5"), ("a", "4")]);
    }

    #[test]
    fn arena_stays_bounded_after_many_insertions() {
        let mut table = DynamicTable::new(4096);
        for round in 0..10_000usize {
            let value = round.to_string().repeat(round % 50);
            table.insert(b"name", value.as_bytes());
            assert!(table.get(0).expect("just inserted").is(b"name", value.as_bytes()));
        }
        assert!(table.arena.capacity() <= 4 * 4096, "{}", table.arena.capacity());
        assert!(table.len() > 10);
    }
}
