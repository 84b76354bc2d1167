//! Finds the entry of a field in the encoder's dynamic table.

use super::dynamic_table::DynamicTable;
use crate::hash::hash;

/// Hash chains over the dynamic table of an encoder: by name and value, and by name.
///
/// A chain runs from the newest entry to the oldest. Evicted entries are not unlinked: they are the oldest, so a chain
/// ends at the first of them. Entries are identified by an insertion count that may wrap. Every match is verified by
/// comparison, so a stale link costs a comparison but never yields a wrong field.
#[derive(Debug, Default)]
pub(super) struct FieldIndex {
    /// One slot for each entry that the table ever had at once, rounded up to a power of two. Most connections have
    /// two or ten entries. Empty until the first insertion, because many connections never insert.
    slots: Vec<Slot>,
    /// Number of the next entry.
    next: u32,
}

/// An entry, in a ring indexed by entry number; and the newest entries of two chains, in two hash tables of the same
/// size.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    entry: Links,
    newest_by_field: u32,
    newest_by_name: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Links {
    hash: FieldHash,
    older_by_field: u32,
    older_by_name: u32,
}

/// The hashes of a field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldHash {
    pub(super) name: u32,
    pub(super) field: u32,
}

impl FieldHash {
    pub(super) fn new(name: &[u8], value: &[u8]) -> Self {
        let name = hash(0, name);
        Self { name: fold(name), field: fold(hash(name, value)) }
    }
}

pub(super) fn name_hash(name: &[u8]) -> u32 {
    fold(hash(0, name))
}

/// Minimum number of slots: enough for a server whose responses have identical headers.
const SLOTS_MIN: usize = 4;

impl FieldIndex {
    /// Returns the age of the newest entry with this name and value.
    pub(super) fn find_field(
        &self,
        table: &DynamicTable,
        hash: FieldHash,
        name: &[u8],
        value: &[u8],
    ) -> Option<usize> {
        let newest = self.slots.get(self.slot(hash.field))?.newest_by_field;
        self.walk(
            newest,
            table,
            |links| links.older_by_field,
            |links, age| {
                links.hash.field == hash.field && table.get(age).is_some_and(|field| field.is(name, value))
            },
        )
    }

    /// Returns the age of the newest entry with this name.
    pub(super) fn find_name(&self, table: &DynamicTable, hash: u32, name: &[u8]) -> Option<usize> {
        let newest = self.slots.get(self.slot(hash))?.newest_by_name;
        self.walk(
            newest,
            table,
            |links| links.older_by_name,
            |links, age| links.hash.name == hash && table.get(age).is_some_and(|field| field.name() == name),
        )
    }

    /// Records the insertion of a field into the table, which now has `len` entries.
    pub(super) fn push(&mut self, hash: FieldHash, len: usize) {
        if len > self.slots.len() {
            self.grow(len);
        }
        self.link(self.next, hash);
        self.next = self.next.wrapping_add(1);
    }

    /// Makes room for `len` entries, of which the last is yet to be added, and links the others again.
    fn grow(&mut self, len: usize) {
        let oldest = self.next.wrapping_sub(len as u32 - 1);
        // The number of an evicted entry, which ends chains.
        let end = oldest.wrapping_sub(1);
        let slot = Slot { entry: Links::default(), newest_by_field: end, newest_by_name: end };
        let smaller =
            FieldIndex { slots: vec![slot; len.next_power_of_two().max(SLOTS_MIN)], next: self.next };
        let smaller = std::mem::replace(self, smaller);
        let mut number = oldest;
        while number != self.next {
            self.link(number, smaller.slots[smaller.slot(number)].entry.hash);
            number = number.wrapping_add(1);
        }
    }

    /// Puts an entry at the head of its chains.
    fn link(&mut self, number: u32, hash: FieldHash) {
        let (by_field, by_name) = (self.slot(hash.field), self.slot(hash.name));
        let older_by_field = std::mem::replace(&mut self.slots[by_field].newest_by_field, number);
        let older_by_name = std::mem::replace(&mut self.slots[by_name].newest_by_name, number);
        let slot = self.slot(number);
        self.slots[slot].entry = Links { hash, older_by_field, older_by_name };
    }

    /// Returns the slot of a hash or an entry number, if there are slots.
    fn slot(&self, hash_or_number: u32) -> usize {
        hash_or_number as usize & self.slots.len().wrapping_sub(1)
    }

    /// Follows a chain while its entries are in the table, to the first that is `accepts`.
    fn walk(
        &self,
        newest: u32,
        table: &DynamicTable,
        older: impl Fn(&Links) -> u32,
        accepts: impl Fn(&Links, usize) -> bool,
    ) -> Option<usize> {
        let mut number = newest;
        let mut age_min = 0;
        loop {
            let age = self.next.wrapping_sub(number).wrapping_sub(1) as usize;
            // Ages increase along a chain; any other link predates a wrap of the numbers.
            if age >= table.len() || age < age_min {
                return None;
            }
            let links = &self.slots[self.slot(number)].entry;
            if accepts(links, age) {
                return Some(age);
            }
            age_min = age + 1;
            number = older(links);
        }
    }
}

/// Returns the upper half, which every bit of the last word affects.
fn fold(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every entry is found by field and by name while the index grows and the table is replaced.
    #[test]
    fn entries_are_found_at_every_size() {
        for size_max in [50, 200, 1000, 4096] {
            let mut table = DynamicTable::new(size_max);
            let mut index = FieldIndex::default();
            for number in 0..300u32 {
                let (name, value) = (format!("n{}", number % 7), number.to_string());
                table.insert(name.as_bytes(), value.as_bytes());
                index.push(FieldHash::new(name.as_bytes(), value.as_bytes()), table.len());
                for age in 0..table.len() {
                    let (name, value) =
                        (format!("n{}", (number - age as u32) % 7), (number - age as u32).to_string());
                    let (name, value) = (name.as_bytes(), value.as_bytes());
                    let found = index.find_field(&table, FieldHash::new(name, value), name, value);
                    assert_eq!(found, Some(age));
                    let newest_of_name = index.find_name(&table, name_hash(name), name);
                    assert_eq!(newest_of_name, Some(age % 7));
                }
                assert_eq!(index.find_name(&table, name_hash(b"other"), b"other"), None);
            }
            assert!(index.slots.len() <= (2 * table.len()).max(SLOTS_MIN));
        }
    }
}
