//! Tracks the fields of a message and the keys of a map seen so far.

use std::collections::HashSet;
use std::hash::Hash;

/// The fields of a message seen so far: one bit for each record slot; members of a oneof share a bit.
#[derive(Debug, Default)]
pub(crate) struct SeenFields {
    first: [u64; 2],
    /// Bits beyond the first 128.
    others: Vec<u64>,
}

impl SeenFields {
    /// Sets a bit and returns whether it was already set.
    #[inline]
    pub(crate) fn set(&mut self, bit: u32) -> bool {
        let (word, mask) = ((bit / 64) as usize, 1 << (bit % 64));
        let word = match self.first.get_mut(word) {
            Some(word) => word,
            None => self.other(word - self.first.len()),
        };
        let was_set = *word & mask != 0;
        *word |= mask;
        was_set
    }

    #[cold]
    fn other(&mut self, index: usize) -> &mut u64 {
        if self.others.len() <= index {
            self.others.resize(index + 1, 0);
        }
        &mut self.others[index]
    }

    pub(crate) fn has(&self, bit: u32) -> bool {
        let (word, mask) = ((bit / 64) as usize, 1 << (bit % 64));
        let word = self.first.get(word).or_else(|| self.others.get(word.wrapping_sub(self.first.len())));
        word.is_some_and(|word| word & mask != 0)
    }
}

/// The keys of a map, to detect duplicates.
#[derive(Debug)]
pub(crate) struct Keys<K> {
    /// The first keys: most maps are small.
    first: [Option<K>; FIRST_LEN],
    /// The following keys.
    more: Vec<K>,
    /// Number of keys in both.
    len: usize,
    /// Whether each key was greater than the one before, so that there are no duplicates.
    is_ascending: bool,
    /// All keys, once there are many and they are unordered.
    set: Option<HashSet<K>>,
}

const FIRST_LEN: usize = 4;
/// Up to this length, searching a list is faster than a set.
const LIST_LEN_MAX: usize = 12;

impl<K: Ord + Hash + Clone> Keys<K> {
    pub(crate) fn new() -> Keys<K> {
        Keys { first: [const { None }; FIRST_LEN], more: Vec::new(), len: 0, is_ascending: true, set: None }
    }

    /// Inserts a key and returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, key: K) -> bool {
        let last = if self.len <= FIRST_LEN {
            self.len.checked_sub(1).and_then(|last| self.first[last].as_ref())
        } else {
            self.more.last()
        };
        if self.is_ascending && last.is_none_or(|last| *last < key) {
            self.push(key);
            return true;
        }
        self.insert_unordered(key)
    }

    #[inline]
    fn push(&mut self, key: K) {
        match self.first.get_mut(self.len) {
            Some(place) => *place = Some(key),
            None => self.more.push(key),
        }
        self.len += 1;
    }

    fn insert_unordered(&mut self, key: K) -> bool {
        self.is_ascending = false;
        let keys = self.first.iter().flatten().chain(&self.more);
        if self.len <= LIST_LEN_MAX {
            let is_new = keys.into_iter().all(|other| *other != key);
            if is_new {
                self.push(key);
            }
            return is_new;
        }
        self.set.get_or_insert_with(|| keys.cloned().collect()).insert(key)
    }
}

#[cfg(test)]
mod tests {
    use super::{Keys, SeenFields};

    #[test]
    fn seen_bits_are_independent() {
        for bits in [[0, 1, 63], [64, 127, 128], [255, 256, 131_071], [129, 4000, 65_535]] {
            let mut seen = SeenFields::default();
            for bit in bits {
                assert!(!seen.has(bit) && !seen.set(bit) && seen.has(bit) && seen.set(bit), "{bit}");
            }
        }
    }

    #[test]
    fn duplicate_keys_are_detected() {
        for len in [1, 2, 12, 13, 14, 100] {
            for step in [1, 37] {
                let mut keys = Keys::new();
                let numbers: Vec<u32> = (0..len).map(|index| index * step % 101).collect();
                assert!(numbers.iter().all(|number| keys.insert(*number)), "{len} by {step}");
                assert!(numbers.iter().all(|number| !keys.insert(*number)), "{len} by {step}");
            }
        }
    }
}
