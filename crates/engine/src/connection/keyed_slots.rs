//! Insertion, lookup and removal of a connection's slots by key.

use thalweg_http2::{self as http2, Tag};

use super::slot::{Slot, SlotKey};
use super::state::State;
use super::unlocked::Deferred;
use crate::status::Code;

impl State {
    /// Returns the key of the next slot.
    #[inline]
    pub(crate) fn next_key(&self) -> SlotKey {
        SlotKey { index: self.slots.next_index() as u32, generation: self.generation.wrapping_add(1) as u32 }
    }

    /// Adds a slot, at [`next_key`](Self::next_key).
    #[inline]
    pub(crate) fn insert(&mut self, mut slot: Slot) {
        self.generation = self.generation.wrapping_add(1);
        slot.generation = self.generation as u32;
        self.slots.insert(slot);
    }

    /// Client: returns the number of open calls that are not unary.
    pub(crate) fn streaming_calls(&self) -> usize {
        self.slots
            .iter()
            .filter(|(_, slot)| slot.is_streaming_call() && !slot.is_own() && slot.end.is_none())
            .count()
    }

    #[inline]
    pub(crate) fn slots_len(&self) -> usize {
        self.slots.len()
    }

    /// Returns all slots with their keys.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (SlotKey, &Slot)> {
        let key = |index, slot: &Slot| SlotKey { index: index as u32, generation: slot.generation };
        self.slots.iter().map(move |(index, slot)| (key(index, slot), slot))
    }

    /// Returns the slot, or `None` once it was removed. A key never matches a later stream's slot.
    #[inline]
    pub(crate) fn slot(&mut self, key: SlotKey) -> Option<&mut Slot> {
        self.slots.get_mut(key.index as usize).filter(|slot| slot.generation == key.generation)
    }

    /// Returns the slot together with the protocol, for code that needs both.
    #[inline]
    pub(crate) fn parts(
        &mut self,
        key: SlotKey,
    ) -> Option<(&mut Slot, &mut http2::Connection, &mut Deferred)> {
        let slot = self.slots.get_mut(key.index as usize).filter(|slot| slot.generation == key.generation)?;
        Some((slot, &mut self.http2, &mut self.deferred))
    }

    /// Removes the slot and wakes the tasks that wait on its stream. Leaves the call's measurement to its other
    /// holders.
    #[inline]
    pub(crate) fn remove(&mut self, key: SlotKey) -> Option<Slot> {
        let (slot, _, deferred) = self.parts(key)?;
        slot.wake_all(deferred);
        deferred.end(slot.take_measure(), None);
        self.slots.remove(key.index as usize)
    }

    /// Like [`remove`](Self::remove), but drops the slot.
    #[inline]
    pub(crate) fn discard(&mut self, key: SlotKey) {
        let Some((slot, _, deferred)) = self.parts(key) else { return };
        slot.wake_all(deferred);
        deferred.end(slot.take_measure(), None);
        self.slots.discard(key.index as usize);
    }

    /// Removes the slot of a server's call that has ended with this code, which is recorded. Returns whether its
    /// request has ended, too.
    #[inline]
    pub(crate) fn discard_ended(&mut self, key: SlotKey, code: Code) -> Option<bool> {
        let (slot, _, deferred) = self.parts(key)?;
        let is_ended = slot.end.is_some();
        // A call that was lost meanwhile has had no response.
        let code = if slot.send_closed { Code::Cancelled } else { code };
        deferred.end(slot.take_measure(), Some(code));
        slot.wake_all(deferred);
        self.slots.discard(key.index as usize);
        Some(is_ended)
    }

    /// Counts the call as cut off, if it has no outcome yet.
    #[cold]
    pub(crate) fn note_cut_off(&mut self, key: SlotKey) {
        if self.slot(key).is_some_and(|slot| !slot.is_over() && !slot.is_own()) {
            self.failed.cut_off();
        }
    }

    /// Counts the call as failed, if it has no outcome yet.
    #[cold]
    pub(crate) fn note_failed(&mut self, key: SlotKey) {
        if self.slot(key).is_some_and(|slot| !slot.is_over() && !slot.is_own()) {
            self.failed.call();
        }
    }
}

/// Converts a slot's key to the tag that the protocol returns with each event of the stream.
impl From<SlotKey> for Tag {
    fn from(key: SlotKey) -> Self {
        Tag(u64::from(key.generation) << 32 | u64::from(key.index))
    }
}

impl From<Tag> for SlotKey {
    fn from(tag: Tag) -> Self {
        Self { index: tag.0 as u32, generation: (tag.0 >> 32) as u32 }
    }
}
