//! The open streams of a connection, and a record of closed ones.

use slab::Slab;

use crate::stream::{Stream, StreamId};

/// Location of an open stream in the table. Its slot may be reused later; the identifier detects a stale key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamKey {
    index: u32,
    stream: StreamId,
}

impl StreamKey {
    /// Returns the stream's identifier.
    pub(crate) fn stream(self) -> StreamId {
        self.stream
    }
}

/// Number of streams that ended in order and are remembered.
const ENDED_MAX: usize = 32;

/// Number of runs of skipped identifiers that are remembered.
const SKIPPED_MAX: usize = 8;

/// State of a stream that is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Not used yet.
    Idle,
    /// Both sides sent END_STREAM.
    Ended,
    /// The peer sent RST_STREAM.
    ResetByPeer,
    /// Closed without use, because a higher identifier was used first (RFC 9113 §5.1.1).
    Skipped,
    /// Reset by this endpoint, or closed long ago. Frames in flight to such a stream are legitimate and must be
    /// accepted. The number of streams that this endpoint resets while frames are in flight is unbounded. So the other,
    /// strict states are remembered, and forgetting one of those is harmless.
    Forgotten,
}

/// Open streams by identifier, and the record of closed ones.
#[derive(Debug, Default)]
pub(crate) struct StreamTable {
    streams: Slab<Stream>,
    index: IdIndex,
    /// The highest identifier used.
    highest: u32,
    /// A ring of identifiers of ended streams; the top bit marks a reset by the peer.
    ended: [u32; ENDED_MAX],
    ended_next: usize,
    /// A ring of runs of skipped identifiers, first and last.
    skipped: [(u32, u32); SKIPPED_MAX],
    skipped_next: usize,
}

const BY_RESET: u32 = 1 << 31;

impl StreamTable {
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    /// Returns the highest identifier used; 0 if none.
    pub(crate) fn highest(&self) -> StreamId {
        StreamId::new(self.highest)
    }

    #[inline]
    pub(crate) fn find(&self, id: StreamId) -> Option<StreamKey> {
        self.index.find(id.get()).map(|index| StreamKey { index, stream: id })
    }

    /// Returns the stream with this identifier.
    #[inline]
    pub(crate) fn find_ref(&self, id: StreamId) -> Option<&Stream> {
        self.get(self.find(id)?)
    }

    /// Returns the stream with this identifier, and its key.
    #[inline]
    pub(crate) fn find_mut(&mut self, id: StreamId) -> Option<(StreamKey, &mut Stream)> {
        let key = self.find(id)?;
        // The index contains only streams in the table.
        Some((key, &mut self.streams[key.index as usize]))
    }

    /// Returns a stream on which the driver may still send.
    #[inline]
    pub(crate) fn find_sendable(&mut self, id: StreamId) -> Option<(StreamKey, &mut Stream)> {
        self.find_mut(id).filter(|(_, stream)| stream.state.can_send())
    }

    /// Returns the stream at `key`, or `None` if it is gone, which is a bug of the caller.
    #[inline]
    pub(crate) fn get(&self, key: StreamKey) -> Option<&Stream> {
        let stream = self.streams.get(key.index as usize).filter(|stream| stream.id == key.stream);
        debug_assert!(stream.is_some(), "{key:?} is stale");
        stream
    }

    /// Returns the stream at `key`, or `None` if it is gone, which is a bug of the caller.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        let stream = self.streams.get_mut(key.index as usize).filter(|stream| stream.id == key.stream);
        debug_assert!(stream.is_some(), "{key:?} is stale");
        stream
    }

    /// Marks an identifier as used, whether or not the stream enters the table. It must be above the highest one.
    #[inline]
    pub(crate) fn use_id(&mut self, id: StreamId) {
        debug_assert!(id.get() > self.highest && id.is_client_initiated());
        // The first client stream is 1; each further step is 2.
        let next = if self.highest == 0 { 1 } else { self.highest + 2 };
        if id.get() > next {
            self.skipped[self.skipped_next] = (next, id.get() - 2);
            self.skipped_next = (self.skipped_next + 1) % SKIPPED_MAX;
        }
        self.highest = id.get();
    }

    /// Adds a stream whose identifier was marked by [`use_id`](Self::use_id).
    #[inline]
    pub(crate) fn insert(&mut self, stream: Stream) -> StreamKey {
        let id = stream.id;
        let index = self.streams.insert(stream) as u32;
        self.index.insert(id.get(), index);
        StreamKey { index, stream: id }
    }

    /// Removes the stream at `key`, which must exist. `ended` is how to remember it: `Ended`, `ResetByPeer` or
    /// `Forgotten`.
    #[inline]
    pub(crate) fn remove(&mut self, key: StreamKey, ended: Absent) {
        debug_assert!(self.get(key).is_some());
        self.streams.remove(key.index as usize);
        let id = key.stream.get();
        self.index.remove(id);
        let mark = match ended {
            Absent::Ended => id,
            Absent::ResetByPeer => id | BY_RESET,
            Absent::Idle | Absent::Skipped | Absent::Forgotten => return,
        };
        self.ended[self.ended_next] = mark;
        self.ended_next = (self.ended_next + 1) % ENDED_MAX;
    }

    /// Returns the state of a stream that [`find`](Self::find) does not find.
    pub(crate) fn absent(&self, id: StreamId) -> Absent {
        let id = id.get();
        if id > self.highest || !StreamId::new(id).is_client_initiated() {
            // Even identifiers belong to the server, which never opens streams.
            return Absent::Idle;
        }
        if self.ended.contains(&id) {
            return Absent::Ended;
        }
        if self.ended.contains(&(id | BY_RESET)) {
            return Absent::ResetByPeer;
        }
        if self.skipped.iter().any(|&(first, last)| first <= id && id <= last) {
            return Absent::Skipped;
        }
        Absent::Forgotten
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamKey, &mut Stream)> {
        self.streams
            .iter_mut()
            .map(|(index, stream)| (StreamKey { index: index as u32, stream: stream.id }, stream))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (StreamKey, &Stream)> {
        self.streams
            .iter()
            .map(|(index, stream)| (StreamKey { index: index as u32, stream: stream.id }, stream))
    }

    /// Removes all streams, because the connection is over.
    pub(crate) fn clear(&mut self) {
        self.streams = Slab::new();
        self.index = IdIndex::default();
    }

    /// Frees memory if no stream is open.
    pub(crate) fn shrink(&mut self) {
        if self.streams.is_empty() {
            self.clear();
        }
    }
}

/// Maps identifiers to table indices: a few in an array, more by open addressing with linear probing.
///
/// Fibonacci hashing spreads consecutive identifiers evenly over the table, so probes, and moves after a removal, are
/// short; unhashed, they would form one long cluster. A peer that chooses colliding identifiers gains little: a probe
/// never passes more entries than there are open streams.
#[derive(Debug, Default)]
struct IdIndex {
    /// Used while there are few entries: one cache line, compared with two more for a table. Connections with a call or
    /// two are common, by the thousands.
    inline: [(u32, u32); INLINE_MAX],
    /// A power of two of entries, at most half of them in use. Empty until there are more than a few. Identifier 0
    /// marks an unused entry.
    entries: Vec<(u32, u32)>,
    len: usize,
    /// There were more than a few entries since the index was last empty.
    is_hashed: bool,
}

const INLINE_MAX: usize = 8;
const INDEX_MIN: usize = 32;

impl IdIndex {
    #[inline]
    fn find(&self, id: u32) -> Option<u32> {
        if !self.is_hashed {
            return self.inline[..self.len].iter().find(|entry| entry.0 == id).map(|entry| entry.1);
        }
        // 0 would match unused entries.
        if id == 0 {
            return None;
        }
        let mut at = self.home(id);
        loop {
            let (found, index) = self.entries[at];
            if found == id {
                return Some(index);
            }
            if found == 0 {
                return None;
            }
            at = self.next(at);
        }
    }

    #[inline]
    fn insert(&mut self, id: u32, index: u32) {
        if !self.is_hashed {
            if let Some(entry) = self.inline.get_mut(self.len) {
                *entry = (id, index);
                self.len += 1;
                return;
            }
            self.move_to_table();
        }
        if (self.len + 1) * 2 > self.entries.len() {
            self.grow();
        }
        self.len += 1;
        let at = self.vacant_slot(id);
        self.entries[at] = (id, index);
    }

    /// Removes `id`.
    #[inline]
    fn remove(&mut self, id: u32) {
        if self.is_hashed {
            return self.remove_from_table(id);
        }
        if let Some(at) = self.inline[..self.len].iter().position(|entry| entry.0 == id) {
            self.len -= 1;
            self.inline[at] = self.inline[self.len];
        }
    }

    /// Moves the inline entries into the table.
    #[cold]
    fn move_to_table(&mut self) {
        if self.entries.is_empty() {
            self.entries = vec![(0, 0); INDEX_MIN];
        }
        self.is_hashed = true;
        for (id, index) in self.inline {
            let at = self.vacant_slot(id);
            self.entries[at] = (id, index);
        }
    }

    /// Removes `id` from the table, and moves displaced entries, so that no tombstones accumulate.
    fn remove_from_table(&mut self, id: u32) {
        let mut hole = self.home(id);
        while self.entries[hole].0 != id {
            if self.entries[hole].0 == 0 {
                return;
            }
            hole = self.next(hole);
        }
        self.len -= 1;
        self.is_hashed = self.len > 0;
        let mask = self.entries.len() - 1;
        let mut at = self.next(hole);
        while self.entries[at].0 != 0 {
            // An entry may move into the hole if that is not before its home; distances wrap around.
            let home = self.home(self.entries[at].0);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.entries[hole] = self.entries[at];
                hole = at;
            }
            at = self.next(at);
        }
        self.entries[hole] = (0, 0);
    }

    #[cold]
    fn grow(&mut self) {
        let size = self.entries.len() * 2;
        let entries = std::mem::replace(&mut self.entries, vec![(0, 0); size]);
        for (id, index) in entries.into_iter().filter(|entry| entry.0 != 0) {
            let at = self.vacant_slot(id);
            self.entries[at] = (id, index);
        }
    }

    #[inline]
    fn vacant_slot(&self, id: u32) -> usize {
        let mut at = self.home(id);
        while self.entries[at].0 != 0 {
            at = self.next(at);
        }
        at
    }

    #[inline]
    fn home(&self, id: u32) -> usize {
        // 2^64 divided by the golden ratio, odd.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        (u64::from(id).wrapping_mul(SPREAD) >> 32) as usize & (self.entries.len() - 1)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Runs the same operations on the index and on a standard map.
    #[test]
    fn index_agrees_with_a_map() {
        let mut index = IdIndex::default();
        let mut model = BTreeMap::new();
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for step in 0..20_000u32 {
            // Multiples of 64 collide in small tables; small numbers wrap around the end.
            let id = match random(3) {
                0 => random(64) as u32 * 64 + 1,
                1 => random(200) as u32 * 2 + 1,
                _ => random(1 << 30) as u32 * 2 + 1,
            };
            if random(2) == 0 && model.len() < 100 {
                if model.insert(id, step).is_none() {
                    index.insert(id, step);
                } else {
                    index.remove(id);
                    index.insert(id, step);
                }
            } else {
                model.remove(&id);
                index.remove(id);
            }
            assert_eq!(index.find(id), model.get(&id).copied());
            assert_eq!(index.len, model.len());
            if step % 100 == 0 {
                for (id, key) in &model {
                    assert_eq!(index.find(*id), Some(*key));
                }
            }
        }
    }

    /// Grows from a few entries to many and back to none, as on real connections.
    #[test]
    fn index_grows_from_inline_to_hashed_and_back() {
        let mut index = IdIndex::default();
        for count in [1, INLINE_MAX as u32, INLINE_MAX as u32 + 1, 3, 100, 2] {
            let ids = || (0..count).map(|number| 2 * number + 1);
            ids().for_each(|id| index.insert(id, id + count));
            assert_eq!(index.is_hashed, count as usize > INLINE_MAX);
            for left in 0..count {
                let found: Vec<_> = ids().filter_map(|id| index.find(id)).collect();
                assert_eq!(found, ids().skip(left as usize).map(|id| id + count).collect::<Vec<_>>());
                index.remove(2 * left + 1);
                index.remove(2 * left + 1);
            }
            assert_eq!((index.len, index.find(0), index.find(1)), (0, None, None));
        }
    }

    #[test]
    fn skipped_identifiers_are_distinguished_from_forgotten_ones() {
        let mut table = StreamTable::default();
        for id in [1, 7, 9] {
            table.use_id(StreamId::new(id));
        }
        let absent = |id| table.absent(StreamId::new(id));
        assert_eq!([1, 3, 5, 7, 9].map(absent), {
            use Absent::{Forgotten, Skipped};
            [Forgotten, Skipped, Skipped, Forgotten, Forgotten]
        });
        assert_eq!([2, 11].map(absent), [Absent::Idle; 2]);
    }

    #[test]
    fn first_stream_may_be_above_1() {
        let mut table = StreamTable::default();
        table.use_id(StreamId::new(5));
        assert_eq!(table.absent(StreamId::new(1)), Absent::Skipped);
    }
}
