//! The slots of a connection. A freed entry is reused by the next slot. Slots are large, and each call has one, so
//! they are dropped in place.

use super::slot::Slot;

#[derive(Debug)]
pub(super) struct Slots {
    places: Vec<Place>,
    /// The first vacant entry, or one past the last.
    vacant: usize,
    len: usize,
}

#[derive(Debug)]
enum Place {
    Taken(Slot),
    /// Holds the index of the next vacant entry.
    Vacant(usize),
}

impl Slots {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), vacant: 0, len: 0 }
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
        if let Some(place @ &mut Place::Vacant(next)) = self.places.get_mut(self.vacant) {
            self.vacant = next;
            *place = Place::Taken(slot);
        } else {
            self.places.push(Place::Taken(slot));
            self.vacant = self.places.len();
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Slot> {
        match self.places.get_mut(index) {
            Some(Place::Taken(slot)) => Some(slot),
            Some(Place::Vacant(_)) | None => None,
        }
    }

    /// Removes a slot and returns it.
    pub(super) fn remove(&mut self, index: usize) -> Option<Slot> {
        let place = self.places.get_mut(index)?;
        if matches!(place, Place::Vacant(_)) {
            return None;
        }
        let taken = std::mem::replace(place, Place::Vacant(self.vacant));
        self.vacant = index;
        self.len -= 1;
        match taken {
            Place::Taken(slot) => Some(slot),
            Place::Vacant(_) => None,
        }
    }

    /// Drops a slot in place.
    #[inline]
    pub(super) fn discard(&mut self, index: usize) {
        if let Some(place @ Place::Taken(_)) = self.places.get_mut(index) {
            *place = Place::Vacant(self.vacant);
            self.vacant = index;
            self.len -= 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.places.iter().enumerate().filter_map(|(index, place)| match place {
            Place::Taken(slot) => Some((index, slot)),
            Place::Vacant(_) => None,
        })
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.places.iter_mut().filter_map(|place| match place {
            Place::Taken(slot) => Some(slot),
            Place::Vacant(_) => None,
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
    fn places_are_taken_again() {
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
    fn memory_goes_back_when_all_have_gone() {
        let mut slots = Slots::new();
        slots.insert(slot(1));
        slots.shrink();
        check(&slots, &[(0, 1)]);
        slots.discard(0);
        slots.shrink();
        assert_eq!((slots.places.capacity(), slots.next_index()), (0, 0));
    }
}
