//! Splits a batch that arrived while a connection slept into chunks, and answers each chunk before the next.
//!
//! Two ends that read everything available, work, and write once fall into lockstep. All calls of a connection are at
//! one end, while the other sleeps and then takes tens of microseconds to wake. With chunks, the other end gets the
//! first responses and wakes while this one works on the rest. Both work at the same time, and soon neither sleeps.
//! From then on each read finds little data and handles it at once. With a core per side, one connection
//! made 712 k empty calls/s instead of 382 k (64 in flight), and 1.15 M instead of 690 k (256).
//!
//! A thread with other connections to drive does not wait for this one's peer, so it splits nothing.

use std::cell::Cell;

use super::heuristic::Heuristic;
use super::tuning::{BATCH_LEN, CHUNKS, POLLS_IN_A_ROW};

/// State of the split of the last read.
#[derive(Debug, Default)]
pub(crate) struct ReadChunks {
    /// Whether the connection has slept since the last read.
    has_slept: bool,
    /// Length of each chunk; zero if nothing is left.
    chunk_len: usize,
    /// Remaining bytes that belong to an incomplete frame and were examined with the chunk before.
    examined: usize,
    /// Whether the chunk was left before its end.
    is_paused: bool,
}

impl ReadChunks {
    /// Notes that the connection sleeps: the next batch arrives meanwhile.
    pub(crate) fn note_sleep(&mut self) {
        self.has_slept = true;
    }

    /// Returns whether part of the last read is left.
    pub(crate) fn is_underway(&self) -> bool {
        self.is_paused || self.chunk_len > 0
    }

    /// Returns whether a chunk was handled to its end and another follows. Its responses must leave first.
    pub(crate) fn is_between(&self) -> bool {
        !self.is_paused && self.chunk_len > 0
    }

    /// Postpones the rest of the chunk, because it has caused much work.
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Starts a batch that has arrived, including an incomplete frame in front of it. `is_alone`: the thread drives no
    /// other connection.
    pub(crate) fn begin(&mut self, batch: &[u8], is_alone: bool) {
        let is_cut = std::mem::take(&mut self.has_slept)
            && (is_alone || !Heuristic::ChunksIfAlone.is_on())
            && BATCH_LEN.contains(&batch.len())
            && Heuristic::ReadChunks.is_on();
        self.chunk_len = if is_cut { batch.len().div_ceil(CHUNKS) } else { 0 };
        self.examined = 0;
    }

    /// Returns the end of the current chunk.
    pub(crate) fn end(&self, rest: &[u8]) -> usize {
        if self.chunk_len == 0 { rest.len() } else { rest.len().min(self.examined + self.chunk_len) }
    }

    /// Starts the next chunk, or resumes the last.
    pub(crate) fn resume(&mut self) {
        self.is_paused = false;
    }

    /// Notes that a chunk was handled except for `left` bytes, with `later` bytes after it. Unless it was paused, the
    /// bytes left are an incomplete frame.
    pub(crate) fn note_taken(&mut self, left: usize, later: usize) {
        self.examined = if self.is_paused { 0 } else { left };
        if later == 0 {
            self.chunk_len = 0;
        }
    }
}

/// Returns whether this thread drives no other connection, judging by its last polls, of which this is one. `identity`
/// is unique among the live connections.
pub(crate) fn is_alone(identity: usize) -> bool {
    let polls = match LAST_POLLED.get() {
        #[cfg(any(test, feature = "testing"))]
        LastPolled::Settled(is_alone) => return is_alone,
        LastPolled::Connection { identity: last, polls } if last == identity => polls.saturating_add(1),
        LastPolled::Nobody | LastPolled::Connection { .. } => 1,
    };
    LAST_POLLED.set(LastPolled::Connection { identity, polls });
    polls >= POLLS_IN_A_ROW
}

/// Fixes for this thread whether its connections count as alone. In a simulation both ends share a thread, and the
/// split must replay.
#[cfg(any(test, feature = "testing"))]
pub fn settle_alone(is_alone: bool) {
    LAST_POLLED.set(LastPolled::Settled(is_alone));
}

#[derive(Clone, Copy)]
enum LastPolled {
    Nobody,
    Connection {
        identity: usize,
        /// Number of polls in a row.
        polls: u32,
    },
    #[cfg(any(test, feature = "testing"))]
    Settled(bool),
}

thread_local! {
    static LAST_POLLED: Cell<LastPolled> = const { Cell::new(LastPolled::Nobody) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the chunks of `batch` if frames end at each multiple of `frame_len`.
    fn taken(batch: usize, frame_len: usize, has_slept: bool, is_alone: bool) -> Vec<usize> {
        let bytes = vec![0; batch];
        let mut chunks = ReadChunks { has_slept, ..ReadChunks::default() };
        chunks.begin(&bytes, is_alone);
        let (mut rest, mut all) = (&bytes[..], Vec::new());
        loop {
            let end = chunks.end(rest);
            all.push(end);
            let examined = end % frame_len;
            chunks.note_taken(examined, rest.len() - end);
            rest = &rest[end - examined..];
            if !chunks.is_underway() {
                return all;
            }
        }
    }

    #[test]
    fn a_batch_that_gathered_is_cut() {
        assert_eq!(taken(900, 50, true, true), [300, 300, 300]);
        // An incomplete frame is examined again with the next chunk.
        assert_eq!(taken(900, 70, true, true), [300, 320, 340]);
        // A frame longer than a chunk grows until it is complete.
        assert_eq!(taken(900, 2000, true, true), [300, 600, 900]);
    }

    #[test]
    fn rest_of_a_chunk_comes_first() {
        let check = |is_alone, taken: &[(usize, usize, bool)]| {
            let bytes = [0; 900];
            let mut chunks = ReadChunks { has_slept: true, ..ReadChunks::default() };
            chunks.begin(&bytes, is_alone);
            let mut rest = &bytes[..];
            for (end, left, is_between) in taken {
                assert_eq!(chunks.end(rest), *end, "{} are left", rest.len());
                chunks.resume();
                if *left > 0 {
                    chunks.pause();
                }
                chunks.note_taken(*left, rest.len() - end);
                rest = &rest[end - left..];
                assert_eq!((chunks.is_underway(), chunks.is_between()), (!rest.is_empty(), *is_between));
            }
        };
        check(false, &[(900, 400, false), (400, 100, false), (100, 0, false)]);
        check(true, &[(300, 100, false), (300, 0, true), (300, 0, true), (100, 0, false)]);
        check(true, &[(300, 0, true), (300, 0, true), (300, 100, false), (100, 0, false)]);
    }

    #[test]
    fn small_and_full_batches_are_not_cut() {
        assert_eq!(taken(1000, 50, false, true), [1000], "it never slept");
        assert_eq!(taken(1000, 50, true, false), [1000], "there are other connections");
        assert_eq!(taken(47, 50, true, true), [47], "too little");
        assert_eq!(taken(120 * 1024 + 1, 50, true, true), [120 * 1024 + 1], "large messages");
    }

    #[test]
    fn connection_polled_repeatedly_counts_as_alone() {
        let polls = |identity| (0..100).take_while(|_| !is_alone(identity)).count() as u32;
        std::thread::spawn(move || {
            assert_eq!(polls(1), POLLS_IN_A_ROW - 1);
            assert!(is_alone(1));
            assert!(!is_alone(2));
            assert!(!is_alone(1));
            assert_eq!(polls(2), POLLS_IN_A_ROW - 1);
            settle_alone(true);
            assert!(is_alone(3) && is_alone(1));
        })
        .join()
        .expect("as said");
    }
}
