//! Lookup of records by name. Names come from the schema, not from a peer, so a fast hash is enough.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from names.
pub(crate) type Names<T> = HashMap<Box<str>, T, BuildHasherDefault<NameHasher>>;

/// Maps names to the positions of their records. The records hold the names; the caller provides access to them.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    /// A position plus one, or 0 for a free slot. The length is a power of two; at least half of the slots are free.
    slots: Box<[u32]>,
}

impl NameIndex {
    /// Creates an index with room for `count` names.
    pub(crate) fn for_names(count: usize) -> NameIndex {
        NameIndex { slots: vec![0; (2 * count).next_power_of_two()].into() }
    }

    /// Inserts the record at `position`. Returns false if another has the same name.
    pub(crate) fn insert<'n>(&mut self, position: u32, name_of: impl Fn(u32) -> &'n str) -> bool {
        let slot = self.slot(name_of(position), name_of);
        let is_new = self.slots[slot] == 0;
        if is_new {
            self.slots[slot] = position + 1;
        }
        is_new
    }

    /// Returns the position of the record with this name.
    #[inline]
    pub(crate) fn get<'n>(&self, name: &str, name_of: impl Fn(u32) -> &'n str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.slot(name, name_of)].checked_sub(1)
    }

    /// Returns the slot of this name, or the free slot for it.
    #[inline]
    fn slot<'n>(&self, name: &str, name_of: impl Fn(u32) -> &'n str) -> usize {
        let mut hasher = NameHasher::default();
        hasher.write(name.as_bytes());
        let last = self.slots.len() - 1;
        let mut slot = hasher.finish() as usize & last;
        // The loop ends because half of the slots are free.
        while let Some(position) = self.slots[slot].checked_sub(1)
            && name_of(position) != name
        {
            slot = (slot + 1) & last;
        }
        slot
    }
}

/// Hashes eight bytes at a time: names are short, and each key of a JSON object is looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameHasher(u64);

impl NameHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for NameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The index is taken from the low bits, but multiplication mixes upwards.
        self.0 ^ (self.0 >> 32)
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }
}

#[cfg(test)]
mod tests {
    use super::NameIndex;

    #[test]
    fn each_name_finds_its_own_record() {
        for count in [0, 1, 2, 3, 100, 1000] {
            let names: Vec<String> = (0..count).map(|index| format!("name_{index}")).collect();
            let name_of = |position: u32| &*names[position as usize];
            let mut index = NameIndex::for_names(count);
            assert!((0..count as u32).all(|position| index.insert(position, name_of)));
            assert!((0..count as u32).all(|position| !index.insert(position, name_of)));
            for (position, name) in (0..).zip(&names) {
                assert_eq!(index.get(name, name_of), Some(position));
            }
            assert_eq!((index.get("name_", name_of), index.get("", name_of)), (None, None));
        }
        assert_eq!(NameIndex::default().get("name", |_| "name"), None);
    }
}
