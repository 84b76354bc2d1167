//! Message memory: words for records and lists, bytes for text that is not in the input.
//!
//! A record is laid out as its [`Table`] defines. The content of a slot depends on the field:
//!
//! | field | slot |
//! | --- | --- |
//! | integer, enum, `bool` | the value of its varint: sign-extended, but not zigzag |
//! | fixed-size number | its bits |
//! | string, bytes | a [`ByteRange`] |
//! | message | the address of its record |
//! | repeated, map | address << 32 \| length; the second word has the capacity |
//!
//! Lists are arrays of such words, maps arrays of pairs. Memory is released only when the whole arena is cleared.

use crate::schema::table::{Entry, Table};

/// A byte range: offset << 32 | arena bit << 31 | length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ByteRange(pub(crate) u64);

/// Set if the bytes are in the arena, not in the input.
pub(crate) const IN_ARENA: u64 = 1 << 31;

impl ByteRange {
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        (self.0 & (IN_ARENA - 1)) as usize
    }

    #[inline(always)]
    pub(crate) fn offset(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    pub(crate) fn is_in_arena(self) -> bool {
        self.0 & IN_ARENA != 0
    }
}

/// Set in the second word of a map that is in [`Arena::unsorted`].
pub(crate) const IN_UNSORTED: u64 = 1 << 32;

/// Initial number of words of an arena.
const WORDS_MIN: usize = 32;

/// Maximum number of words reserved from the input's length alone.
const RESERVED_WORDS_MAX: usize = 256;

/// Initial capacity of a list.
const CAPACITY_MIN: usize = 4;

#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    /// Zero from `top` on, so that allocating words only moves `top`.
    pub(crate) words: Vec<u64>,
    pub(crate) top: usize,
    pub(crate) bytes: Vec<u8>,
    /// Maps that may contain duplicate keys: the address of their slot, and whether their keys are strings.
    pub(crate) unsorted: Vec<(u32, bool)>,
}

impl Arena {
    /// Clears the arena and allocates an empty record at address 0.
    pub(crate) fn reset(&mut self, root: &Table) {
        self.words[..self.top].fill(0);
        self.top = 0;
        self.bytes.clear();
        self.unsorted.clear();
        self.allocate(root.record_words as usize);
    }

    /// Allocates `count` zeroed words and returns the address of the first.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, count: usize) -> usize {
        let at = self.top;
        self.top += count;
        if self.top > self.words.len() {
            self.grow_words();
        }
        at
    }

    /// Reserves the words that an input of `len` bytes probably needs, up to [`RESERVED_WORDS_MAX`].
    pub(crate) fn reserve_for_input(&mut self, len: usize) {
        let likely = self.top + (len / 4).min(RESERVED_WORDS_MAX);
        if self.words.len() < likely {
            self.words.resize(likely, 0);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow_words(&mut self) {
        self.words.resize(self.top.max(self.words.len() * 2).max(WORDS_MIN), 0);
    }

    /// Whether addresses are still in bounds. Messages built by hand must not grow beyond that.
    pub(crate) fn has_capacity(&self) -> bool {
        self.top < (u32::MAX / 2) as usize && self.bytes.len() < (u32::MAX / 2) as usize
    }

    #[inline]
    pub(crate) fn new_record(&mut self, table: &Table) -> usize {
        self.allocate(table.record_words as usize)
    }

    /// Copies `bytes` into the arena and returns the [`ByteRange`] word for them.
    pub(crate) fn store(&mut self, bytes: &[u8]) -> u64 {
        let offset = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        offset << 32 | IN_ARENA | bytes.len() as u64
    }

    /// Returns the bytes of a text.
    #[inline]
    pub(crate) fn text<'a>(&'a self, input: &'a [u8], word: u64) -> &'a [u8] {
        let text = ByteRange(word);
        let from = if text.is_in_arena() { &self.bytes } else { input };
        from.get(text.offset()..text.offset() + text.len()).unwrap_or_default()
    }

    /// Whether the field of entry `index` is present.
    #[inline(always)]
    pub(crate) fn is_present(&self, at: usize, index: usize) -> bool {
        self.words[at + 1 + index / 64] >> (index % 64) & 1 != 0
    }

    #[inline(always)]
    pub(crate) fn set_present(&mut self, at: usize, index: usize) {
        set_present(&mut self.words[at..], index);
    }

    pub(crate) fn set_absent(&mut self, at: usize, index: usize) {
        set_absent(&mut self.words[at..], index);
    }

    /// See [`select_member`].
    pub(crate) fn select_member(&mut self, at: usize, index: usize, entry: &Entry) {
        select_member(&mut self.words[at..], index, entry);
    }

    /// Appends a word to the list whose slot is at `slot`.
    #[inline]
    pub(crate) fn push(&mut self, slot: usize, word: u64) {
        let (start, len) = self.list(slot);
        let address = if len < self.capacity(slot) { start + len } else { self.grow(slot, len + 1) + len };
        self.words[address] = word;
        self.words[slot] += 1;
    }

    /// Appends a pair to the map whose slot is at `slot`. Its length counts pairs, its capacity words.
    pub(crate) fn push_pair(&mut self, slot: usize, key: u64, value: u64) {
        let (start, len) = self.list(slot);
        let len = len * 2;
        let address =
            if len + 2 <= self.capacity(slot) { start + len } else { self.grow(slot, len + 2) + len };
        self.words[address] = key;
        self.words[address + 1] = value;
        self.words[slot] += 1;
    }

    /// Returns the address and length of a list.
    #[inline(always)]
    pub(crate) fn list(&self, slot: usize) -> (usize, usize) {
        let head = self.words[slot];
        ((head >> 32) as usize, head as u32 as usize)
    }

    #[inline(always)]
    pub(crate) fn capacity(&self, slot: usize) -> usize {
        self.words[slot + 1] as u32 as usize
    }

    /// Grows a list to `needed` words in total and returns its address, which may have changed.
    #[inline(never)]
    pub(crate) fn grow(&mut self, slot: usize, needed: usize) -> usize {
        let (start, capacity) = ((self.words[slot] >> 32) as usize, self.capacity(slot));
        let wanted = needed.max(CAPACITY_MIN).max(capacity * 2);
        let address = if capacity > 0 && start + capacity == self.top {
            self.allocate(wanted - capacity);
            start
        } else {
            let address = self.allocate(wanted);
            // Most lists never grow past their first capacity; skip the call for them.
            if capacity > 0 {
                self.words.copy_within(start..start + capacity, address);
            }
            address
        };
        self.words[slot] = (address as u64) << 32 | u64::from(self.words[slot] as u32);
        self.words[slot + 1] = self.words[slot + 1] & !u64::from(u32::MAX) | wanted as u64;
        address
    }

    /// Returns the first and the last node of a record's unknown fields, if it has any. See [`Arena::add_unknown`].
    pub(crate) fn unknown(&self, at: usize) -> Option<(usize, usize)> {
        let last = self.words[at] as usize;
        (last != 0).then(|| (self.words[last + 1] as u32 as usize, last))
    }

    /// Appends an unknown field. If `number` is 0, `word` is the [`ByteRange`] of whole wire records. Otherwise `word`
    /// is an enum value from a packed field, which has no wire record of its own.
    ///
    /// The nodes form a ring and the record points to the last one, so both ends are reachable in one step.
    pub(crate) fn add_unknown(&mut self, at: usize, word: u64, number: u32) {
        let new = self.top;
        let first = match self.unknown(at) {
            Some((_, last))
                if number == 0 && self.words[last + 1] >> 32 == 0 && are_adjacent(self.words[last], word) =>
            {
                self.words[last] += word & (IN_ARENA - 1);
                return;
            }
            Some((first, last)) => {
                self.words[last + 1] = self.words[last + 1] & !u64::from(u32::MAX) | new as u64;
                first
            }
            None => new,
        };
        self.allocate(2);
        self.words[new] = word;
        self.words[new + 1] = u64::from(number) << 32 | first as u64;
        self.words[at] = new as u64;
    }

    /// Iterates over a record's unknown fields: text or value, and number.
    pub(crate) fn unknown_nodes(&self, at: usize) -> impl Iterator<Item = (u64, u32)> {
        let mut next = self.unknown(at);
        std::iter::from_fn(move || {
            let (node, last) = next?;
            let link = self.words[node + 1];
            next = (node != last).then_some((link as u32 as usize, last));
            Some((self.words[node], (link >> 32) as u32))
        })
    }

    /// Removes duplicate keys from all maps that may have them; the last pair of each key stays.
    #[inline(always)]
    pub(crate) fn dedup_map_keys(&mut self, input: &[u8]) {
        if !self.unsorted.is_empty() {
            self.dedup_unsorted_maps(input);
        }
    }

    #[inline(never)]
    fn dedup_unsorted_maps(&mut self, input: &[u8]) {
        let mut unsorted = std::mem::take(&mut self.unsorted);
        for (slot, strings) in unsorted.drain(..) {
            let slot = slot as usize;
            self.words[slot + 1] &= !IN_UNSORTED;
            self.dedup_keys_of(input, slot, strings);
        }
        self.unsorted = unsorted;
    }

    /// Moves the last pair of a map over an earlier pair with the same key.
    pub(crate) fn dedup_last_key(&mut self, input: &[u8], slot: usize, strings: bool) {
        let (start, len) = self.list(slot);
        let Some(last) = len.checked_sub(1) else { return };
        let key = |index: usize| self.words[start + 2 * index];
        let same = |index: &usize| {
            if strings {
                self.text(input, key(*index)) == self.text(input, key(last))
            } else {
                key(*index) == key(last)
            }
        };
        if let Some(earlier) = (0..last).find(same) {
            self.words.copy_within(start + 2 * last..start + 2 * last + 2, start + 2 * earlier);
            self.words[slot] -= 1;
        }
    }

    fn dedup_keys_of(&mut self, input: &[u8], slot: usize, strings: bool) {
        let (start, len) = self.list(slot);
        let key = |index: usize| self.words[start + 2 * index];
        let compare = |&left: &usize, &right: &usize| {
            if strings {
                self.text(input, key(left)).cmp(self.text(input, key(right)))
            } else {
                key(left).cmp(&key(right))
            }
        };
        // Most maps are small, and comparing all pairs of keys needs no memory.
        let superseded: Vec<bool> = if len <= 16 {
            let is_superseded = |index| (index + 1..len).any(|later| compare(&index, &later).is_eq());
            if !(0..len).any(is_superseded) {
                return;
            }
            (0..len).map(is_superseded).collect()
        } else {
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by(compare);
            let mut superseded = vec![false; len];
            for pair in order.windows(2) {
                superseded[pair[0]] = compare(&pair[0], &pair[1]).is_eq();
            }
            superseded
        };
        let mut kept = 0;
        for (index, _) in superseded.iter().enumerate().filter(|(_, superseded)| !**superseded) {
            self.words.copy_within(start + 2 * index..start + 2 * index + 2, start + 2 * kept);
            kept += 1;
        }
        self.words[slot] = (start as u64) << 32 | kept as u64;
    }
}

/// Marks the field of entry `index` as present.
#[inline(always)]
pub(crate) fn set_present(record: &mut [u64], index: usize) {
    record[1 + index / 64] |= 1 << (index % 64);
}

#[inline(always)]
fn set_absent(record: &mut [u64], index: usize) {
    record[1 + index / 64] &= !(1 << (index % 64));
}

/// Selects `index` as the set member of its oneof. If another member was set, the slot is zeroed.
#[inline(always)]
pub(crate) fn select_member(record: &mut [u64], index: usize, entry: &Entry) {
    let case = entry.case as usize;
    let (before, now) = (record[case], index as u64 + 1);
    if before != now {
        if let Some(before) = before.checked_sub(1) {
            set_absent(record, before as usize);
        }
        record[entry.slot as usize] = 0;
        record[case] = now;
    }
}

/// Whether the second text starts where the first ends.
fn are_adjacent(first: u64, second: u64) -> bool {
    let (first, second) = (ByteRange(first), ByteRange(second));
    first.is_in_arena() == second.is_in_arena() && first.offset() + first.len() == second.offset()
}
