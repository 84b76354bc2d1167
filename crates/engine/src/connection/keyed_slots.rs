//! The slots of a connection by their keys: how they come, are found, and go.

use thalweg_http2::{self as http2, Tag};

use super::slot::{Slot, SlotKey};
use super::state::State;
use super::unlocked::Deferred;
use crate::status::Code;

impl State {
    /// The key that the next slot will have.
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

    /// Client: calls under way that are not unary.
    pub(crate) fn streaming_calls(&self) -> usize {
        self.slots.iter().filter(|(_, slot)| slot.is_streaming_call() && slot.end.is_none()).count()
    }

    #[inline]
    pub(crate) fn slots_len(&self) -> usize {
        self.slots.len()
    }

    /// All slots, with their keys.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (SlotKey, &Slot)> {
        let key = |index, slot: &Slot| SlotKey { index: index as u32, generation: slot.generation };
        self.slots.iter().map(move |(index, slot)| (key(index, slot), slot))
    }

    /// None once the slot was removed: a key is never taken for a later stream's.
    #[inline]
    pub(crate) fn slot(&mut self, key: SlotKey) -> Option<&mut Slot> {
        self.slots.get_mut(key.index as usize).filter(|slot| slot.generation == key.generation)
    }

    /// The slot together with the protocol, for work that needs both.
    #[inline]
    pub(crate) fn parts(
        &mut self,
        key: SlotKey,
    ) -> Option<(&mut Slot, &mut http2::Connection, &mut Deferred)> {
        let slot = self.slots.get_mut(key.index as usize).filter(|slot| slot.generation == key.generation)?;
        Some((slot, &mut self.http2, &mut self.deferred))
    }

    /// Takes the slot away. Who still waits on its stream is woken; what is measured of its call is left to the other
    /// holders of that.
    #[inline]
    pub(crate) fn remove(&mut self, key: SlotKey) -> Option<Slot> {
        let (slot, _, deferred) = self.parts(key)?;
        slot.wake_all(deferred);
        deferred.end(slot.take_measure(), None);
        self.slots.remove(key.index as usize)
    }

    /// As [`remove`](Self::remove), where nothing of the slot is wanted.
    #[inline]
    pub(crate) fn discard(&mut self, key: SlotKey) {
        let Some((slot, _, deferred)) = self.parts(key) else { return };
        slot.wake_all(deferred);
        deferred.end(slot.take_measure(), None);
        self.slots.discard(key.index as usize);
    }

    /// Takes the slot of a server's call away, which has ended with this code, for what is measured of it. Whether its
    /// request has ended, too.
    #[inline]
    pub(crate) fn discard_ended(&mut self, key: SlotKey, code: Code) -> Option<bool> {
        let (slot, _, deferred) = self.parts(key)?;
        let is_ended = slot.end.is_some();
        // One that was lost meanwhile was not answered.
        let code = if slot.send_closed { Code::Cancelled } else { code };
        deferred.end(slot.take_measure(), Some(code));
        slot.wake_all(deferred);
        self.slots.discard(key.index as usize);
        Some(is_ended)
    }

    /// The call in this slot, if it has no outcome yet, is about to be cut off.
    #[cold]
    pub(crate) fn note_cut_off(&mut self, key: SlotKey) {
        if self.slot(key).is_some_and(|slot| !slot.is_over()) {
            self.failed.cut_off();
        }
    }

    /// The call in this slot, if it has no outcome yet, is about to end with another status than OK.
    #[cold]
    pub(crate) fn note_failed(&mut self, key: SlotKey) {
        if self.slot(key).is_some_and(|slot| !slot.is_over()) {
            self.failed.call();
        }
    }
}

/// A slot's key as the tag that the protocol gives back with each event of the stream.
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
