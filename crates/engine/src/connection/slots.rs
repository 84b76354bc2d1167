//! The slots of a connection. A freed entry is reused by the next slot. Slots are large, and each call has one, so
//! they are dropped in place.

use super::slot::Slot;

#[derive(Debug)]
pub(super) struct Slots {
    entries: Vec<Entry>,
    /// The first vacant entry, or one past the last.
    vacant: usize,
    len: usize,
}

#[derive(Debug)]
enum Entry {
    Occupied(Slot),
    /// Holds the index of the next vacant entry.
    Vacant(usize),
}

impl Slots {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), vacant: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the index of the next slot.
    #[inline]
    pub(super) fn next_index(&self) -> usize {
        self.vacant
    }

    #[inline]
    pub(super) fn insert(&mut self, slot: Slot) {
        self.len += 1;
        if let Some(entry @ &mut Entry::Vacant(next)) = self.entries.get_mut(self.vacant) {
            self.vacant = next;
            *entry = Entry::Occupied(slot);
        } else {
            self.entries.push(Entry::Occupied(slot));
            self.vacant = self.entries.len();
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Slot> {
        match self.entries.get_mut(index) {
            Some(Entry::Occupied(slot)) => Some(slot),
            Some(Entry::Vacant(_)) | None => None,
        }
    }

    /// Removes a slot and returns it.
    pub(super) fn remove(&mut self, index: usize) -> Option<Slot> {
        let entry = self.entries.get_mut(index)?;
        if matches!(entry, Entry::Vacant(_)) {
            return None;
        }
        let taken = std::mem::replace(entry, Entry::Vacant(self.vacant));
        self.vacant = index;
        self.len -= 1;
        match taken {
            Entry::Occupied(slot) => Some(slot),
            Entry::Vacant(_) => None,
        }
    }

    /// Drops a slot in place.
    #[inline]
    pub(super) fn discard(&mut self, index: usize) {
        if let Some(entry @ Entry::Occupied(_)) = self.entries.get_mut(index) {
            *entry = Entry::Vacant(self.vacant);
            self.vacant = index;
            self.len -= 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| match entry {
            Entry::Occupied(slot) => Some((index, slot)),
            Entry::Vacant(_) => None,
        })
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Occupied(slot) => Some(slot),
            Entry::Vacant(_) => None,
        })
    }

    /// Frees the memory, if there are no slots.
    pub(super) fn shrink(&mut self) {
        if self.is_empty() {
            *self = Self::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_http2::StreamId;

    use super::*;
    use crate::connection::inbox::Inbox;
    use crate::connection::slot::WakesOn;

    fn slot(generation: u32) -> Slot {
        let mut slot = Slot::of_client(StreamId::CONNECTION, Inbox::new(0), WakesOn::End);
        slot.generation = generation;
        slot
    }

    fn check(slots: &Slots, expected: &[(usize, u32)]) {
        let found: Vec<_> = slots.iter().map(|(index, slot)| (index, slot.generation)).collect();
        assert_eq!(found, expected);
        assert_eq!(slots.len(), expected.len());
    }

    #[test]
    fn entries_are_reused() {
        let mut slots = Slots::new();
        for generation in 0..4 {
            assert_eq!(slots.next_index(), generation as usize);
            slots.insert(slot(generation));
        }
        assert_eq!(slots.remove(1).map(|slot| slot.generation), Some(1));
        slots.discard(3);
        check(&slots, &[(0, 0), (2, 2)]);

        // Removed slots are gone.
        slots.discard(3);
        assert!(slots.remove(1).is_none() && slots.remove(9).is_none() && slots.get_mut(3).is_none());
        check(&slots, &[(0, 0), (2, 2)]);

        for (generation, index) in [(10, 3), (11, 1), (12, 4)] {
            assert_eq!(slots.next_index(), index);
            slots.insert(slot(generation));
        }
        check(&slots, &[(0, 0), (1, 11), (2, 2), (3, 10), (4, 12)]);
        for slot in slots.iter_mut() {
            slot.generation += 1;
        }
        assert_eq!(slots.get_mut(4).map(|slot| slot.generation), Some(13));
    }

    #[test]
    fn memory_is_freed_without_slots() {
        let mut slots = Slots::new();
        slots.insert(slot(1));
        slots.shrink();
        check(&slots, &[(0, 1)]);
        slots.discard(0);
        slots.shrink();
        assert_eq!((slots.entries.capacity(), slots.next_index()), (0, 0));
    }
}
