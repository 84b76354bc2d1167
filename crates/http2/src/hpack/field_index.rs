//! The way back from a field to its entry in the encoder's dynamic table.

use super::dynamic_table::DynamicTable;
use crate::hash::hash;

/// Hash chains over the dynamic table of an encoder: one set by name and value, one by name.
///
/// A chain runs from the newest entry to the oldest. Evicted entries are not unlinked: they are the oldest, so a chain
/// ends at the first of them. Entries are known by a number that counts insertions and may wrap; what a chain
/// leads to is always compared, so a stale link costs a comparison and never gives a wrong field.
#[derive(Debug, Default)]
pub(super) struct FieldIndex {
    /// As many places as the table had entries at most, rounded up to a power of two: most connections have two or
    /// ten. Empty until the first insertion, for many never make one.
    places: Vec<Place>,
    /// The number that the next entry gets.
    next: u32,
}

/// An entry, in the ring of their numbers; and the newest entries of two chains, in two hash tables as large as the
/// ring.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
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

/// How many places there are at least: what a server needs whose answers are all alike.
const PLACES_MIN: usize = 4;

impl FieldIndex {
    /// The age of the newest entry with this name and value.
    pub(super) fn find_field(
        &self,
        table: &DynamicTable,
        hash: FieldHash,
        name: &[u8],
        value: &[u8],
    ) -> Option<usize> {
        let newest = self.places.get(self.place(hash.field))?.newest_by_field;
        self.walk(
            newest,
            table,
            |links| links.older_by_field,
            |links, age| {
                links.hash.field == hash.field && table.get(age).is_some_and(|field| field.is(name, value))
            },
        )
    }

    /// The age of the newest entry with this name.
    pub(super) fn find_name(&self, table: &DynamicTable, hash: u32, name: &[u8]) -> Option<usize> {
        let newest = self.places.get(self.place(hash))?.newest_by_name;
        self.walk(
            newest,
            table,
            |links| links.older_by_name,
            |links, age| links.hash.name == hash && table.get(age).is_some_and(|field| field.name() == name),
        )
    }

    /// Notes that a field has been inserted in the table, which has `len` entries now.
    pub(super) fn push(&mut self, hash: FieldHash, len: usize) {
        if len > self.places.len() {
            self.grow(len);
        }
        self.link(self.next, hash);
        self.next = self.next.wrapping_add(1);
    }

    /// Makes place for `len` entries, of which the last is yet to come, and links the others anew.
    fn grow(&mut self, len: usize) {
        let oldest = self.next.wrapping_sub(len as u32 - 1);
        // The number of an entry that is no more: chains end there.
        let end = oldest.wrapping_sub(1);
        let place = Place { entry: Links::default(), newest_by_field: end, newest_by_name: end };
        let smaller =
            FieldIndex { places: vec![place; len.next_power_of_two().max(PLACES_MIN)], next: self.next };
        let smaller = std::mem::replace(self, smaller);
        let mut number = oldest;
        while number != self.next {
            self.link(number, smaller.places[smaller.place(number)].entry.hash);
            number = number.wrapping_add(1);
        }
    }

    /// Puts an entry at the head of its chains.
    fn link(&mut self, number: u32, hash: FieldHash) {
        let (by_field, by_name) = (self.place(hash.field), self.place(hash.name));
        let older_by_field = std::mem::replace(&mut self.places[by_field].newest_by_field, number);
        let older_by_name = std::mem::replace(&mut self.places[by_name].newest_by_name, number);
        let place = self.place(number);
        self.places[place].entry = Links { hash, older_by_field, older_by_name };
    }

    /// Where a hash or a number has its place, if there are any.
    fn place(&self, hash_or_number: u32) -> usize {
        hash_or_number as usize & self.places.len().wrapping_sub(1)
    }

    /// Follows a chain as far as its entries are in the table, to the first that is `wanted`.
    fn walk(
        &self,
        newest: u32,
        table: &DynamicTable,
        older: impl Fn(&Links) -> u32,
        wanted: impl Fn(&Links, usize) -> bool,
    ) -> Option<usize> {
        let mut number = newest;
        let mut age_min = 0;
        loop {
            let age = self.next.wrapping_sub(number).wrapping_sub(1) as usize;
            // Ages grow along a chain; one that does not is a leftover from before the numbers wrapped.
            if age >= table.len() || age < age_min {
                return None;
            }
            let links = &self.places[self.place(number)].entry;
            if wanted(links, age) {
                return Some(age);
            }
            age_min = age + 1;
            number = older(links);
        }
    }
}

/// The upper half, on which every bit of the last word has a bearing.
fn fold(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every entry is found by field and by name while the index grows and the table turns over.
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
            assert!(index.places.len() <= (2 * table.len()).max(PLACES_MIN));
        }
    }
}
