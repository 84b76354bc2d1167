//! Selects the stream that sends next: one frame per stream in turn.

use std::collections::VecDeque;

use crate::send_queue::{Queued, QueuedItems};
use crate::stream::{Scheduled, Stream};
use crate::stream_table::{StreamKey, StreamTable};

/// The streams that may send, in round-robin order.
///
/// A stream is in `ready` or `blocked` at most once and only while it is open, so neither outgrows the number of
/// streams.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// Streams that can send a frame.
    ready: VecDeque<StreamKey>,
    /// Streams that wait for the connection's flow-control window.
    blocked: VecDeque<StreamKey>,
}

impl ReadyQueue {
    /// Adds a stream at the end, if it has something to send and is not queued yet.
    pub(crate) fn schedule(&mut self, key: StreamKey, stream: &mut Stream, items: &QueuedItems) {
        if stream.scheduled != Scheduled::No {
            return;
        }
        match items.front(&stream.queue) {
            // Empty DATA only carries END_STREAM, and needs no window.
            Some(Queued::Data(bytes)) if !bytes.is_empty() && stream.send_window.available() == 0 => return,
            Some(_) => {}
            None => return,
        }
        stream.scheduled = Scheduled::Ready;
        self.ready.push_back(key);
    }

    /// Removes and returns the stream that sends next. If the connection's window is open, streams that waited for it
    /// go first.
    pub(crate) fn next(&mut self, streams: &mut StreamTable, window_open: bool) -> Option<StreamKey> {
        let unblocked = if window_open { self.blocked.pop_front() } else { None };
        let key = unblocked.or_else(|| self.ready.pop_front())?;
        streams.get_mut(key)?.scheduled = Scheduled::No;
        Some(key)
    }

    /// Marks a stream as waiting for the connection's window.
    pub(crate) fn block(&mut self, key: StreamKey, stream: &mut Stream) {
        stream.scheduled = Scheduled::Blocked;
        self.blocked.push_back(key);
    }

    /// Removes a stream that is gone.
    #[cold]
    pub(crate) fn remove(&mut self, key: StreamKey, stream: &mut Stream) {
        match stream.scheduled {
            Scheduled::No => {}
            Scheduled::Ready => self.ready.retain(|&other| other != key),
            Scheduled::Blocked => self.blocked.retain(|&other| other != key),
        }
        stream.scheduled = Scheduled::No;
    }

    /// Returns whether [`next`](Self::next) would return a stream.
    #[inline]
    pub(crate) fn has_next(&self, window_open: bool) -> bool {
        !self.ready.is_empty() || (window_open && !self.blocked.is_empty())
    }

    /// Returns whether a stream waits for the connection's window.
    #[inline]
    pub(crate) fn has_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        *self = ReadyQueue::default();
    }

    /// Frees memory if no stream waits.
    pub(crate) fn shrink(&mut self) {
        if self.ready.is_empty() && self.blocked.is_empty() {
            self.clear();
        }
    }
}
