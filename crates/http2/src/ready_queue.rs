//! Which stream sends next: those that have something to send, one frame of each, round and round.

use std::collections::VecDeque;

use crate::send_queue::{Queued, QueuedItems};
use crate::stream::{Scheduled, Stream};
use crate::stream_table::{Key, StreamTable};

/// The streams that may send, in the writer's round-robin.
///
/// A stream is in `ready` or `blocked` at most once, and only while it is open, so neither outgrows the
/// streams.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// Streams that can send a frame.
    ready: VecDeque<Key>,
    /// Streams that could if the connection's flow-control window were open.
    blocked: VecDeque<Key>,
}

impl ReadyQueue {
    /// Puts a stream at the end, if it has something to send and is nowhere yet.
    pub(crate) fn schedule(&mut self, key: Key, stream: &mut Stream, items: &QueuedItems) {
        if stream.scheduled != Scheduled::No {
            return;
        }
        match items.front(&stream.queue) {
            // What is empty only carries END_STREAM, and needs no window.
            Some(Queued::Data(bytes)) if !bytes.is_empty() && stream.send_window.available() == 0 => return,
            Some(_) => {}
            None => return,
        }
        stream.scheduled = Scheduled::Ready;
        self.ready.push_back(key);
    }

    /// The stream that sends next; it is nowhere afterwards. When the connection's window is open, those that waited
    /// for it go first.
    pub(crate) fn next(&mut self, streams: &mut StreamTable, window_open: bool) -> Option<Key> {
        let unblocked = if window_open { self.blocked.pop_front() } else { None };
        let key = unblocked.or_else(|| self.ready.pop_front())?;
        streams.get_mut(key)?.scheduled = Scheduled::No;
        Some(key)
    }

    /// A stream could send if the connection's window were open.
    pub(crate) fn block(&mut self, key: Key, stream: &mut Stream) {
        stream.scheduled = Scheduled::Blocked;
        self.blocked.push_back(key);
    }

    /// Takes out a stream that is gone.
    #[cold]
    pub(crate) fn forget(&mut self, key: Key, stream: &mut Stream) {
        match stream.scheduled {
            Scheduled::No => {}
            Scheduled::Ready => self.ready.retain(|&other| other != key),
            Scheduled::Blocked => self.blocked.retain(|&other| other != key),
        }
        stream.scheduled = Scheduled::No;
    }

    /// Whether [`next`](Self::next) would give a stream.
    #[inline]
    pub(crate) fn has_next(&self, window_open: bool) -> bool {
        !self.ready.is_empty() || (window_open && !self.blocked.is_empty())
    }

    /// Whether a stream waits for the connection's window.
    #[inline]
    pub(crate) fn has_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        *self = ReadyQueue::default();
    }

    /// Gives memory back where no stream waits.
    pub(crate) fn shrink(&mut self) {
        if self.ready.is_empty() && self.blocked.is_empty() {
            self.clear();
        }
    }
}
