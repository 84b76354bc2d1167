//! The way back from a field to its entry in the encoder's dynamic table.

use super::dynamic_table::DynamicTable;

/// Hash chains over the dynamic table of an encoder: one set by name and value, one by name.
///
/// A chain runs from the newest entry to the oldest. Evicted entries are not unlinked: they are the oldest, so a chain
/// ends at the first of them. Entries are known by a number that counts insertions and may wrap; what a chain
/// leads to is always compared, so a stale link costs a comparison and never gives a wrong field.
#[derive(Debug, Default)]
pub(super) struct FieldIndex {
    /// Empty until the first insertion, for many connections never make one.
    links: Vec<Links>,
    by_field: Vec<u32>,
    by_name: Vec<u32>,
    /// The number that the next entry gets.
    next: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Links {
    field_hash: u32,
    name_hash: u32,
    older_by_field: u32,
    older_by_name: u32,
}

/// The hashes of a field.
#[derive(Clone, Copy, Debug)]
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

/// A table of at most this many entries can be indexed: as many as fit in 4096 bytes at 32 bytes each.
pub(super) const ENTRIES_MAX: usize = 128;

impl FieldIndex {
    /// The age of the newest entry with this name and value.
    pub(super) fn find_field(
        &self,
        table: &DynamicTable,
        hash: FieldHash,
        name: &[u8],
        value: &[u8],
    ) -> Option<usize> {
        let newest = *self.by_field.get(hash.field as usize % ENTRIES_MAX)?;
        self.walk(
            newest,
            table,
            |links| links.older_by_field,
            |links, age| {
                links.field_hash == hash.field && table.get(age).is_some_and(|field| field.is(name, value))
            },
        )
    }

    /// The age of the newest entry with this name.
    pub(super) fn find_name(&self, table: &DynamicTable, hash: u32, name: &[u8]) -> Option<usize> {
        let newest = *self.by_name.get(hash as usize % ENTRIES_MAX)?;
        self.walk(
            newest,
            table,
            |links| links.older_by_name,
            |links, age| links.name_hash == hash && table.get(age).is_some_and(|field| field.name() == name),
        )
    }

    /// Notes that a field has been inserted in the table.
    pub(super) fn push(&mut self, hash: FieldHash) {
        if self.links.is_empty() {
            self.links.resize(ENTRIES_MAX, Links::default());
            // Numbers of entries that never were: chains end there.
            self.by_field.resize(ENTRIES_MAX, self.next.wrapping_sub(1));
            self.by_name.resize(ENTRIES_MAX, self.next.wrapping_sub(1));
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        let older_by_field = std::mem::replace(&mut self.by_field[hash.field as usize % ENTRIES_MAX], number);
        let older_by_name = std::mem::replace(&mut self.by_name[hash.name as usize % ENTRIES_MAX], number);
        self.links[number as usize % ENTRIES_MAX] =
            Links { field_hash: hash.field, name_hash: hash.name, older_by_field, older_by_name };
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
            let links = &self.links[number as usize % ENTRIES_MAX];
            if wanted(links, age) {
                return Some(age);
            }
            age_min = age + 1;
            number = older(links);
        }
    }
}

/// A quick hash: the fields of one connection are few, and what it finds is compared.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    // The tail as one word. Where the string is long enough it overlaps what came before, which spares a copy.
    let last = match (bytes.last_chunk::<8>(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(word), ..) => u64::from_le_bytes(*word),
        (None, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => tail.iter().fold(0, |word, &octet| word << 8 | u64::from(octet)),
    };
    mix(hash, last)
}

/// 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(MULTIPLIER);
    product ^ (product >> 32)
}

/// The upper half, on which every bit of the last word has a bearing.
fn fold(hash: u64) -> u32 {
    (hash >> 32) as u32
}
