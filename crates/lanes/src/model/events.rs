//! Events of the model, ordered by time.

use std::cmp::Ordering;

use super::cores::Task;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    ClientAwake,
    ServerAwake,
    ClientDone(Task),
    ServerDone(Task),
    /// Bytes of requests reach the server.
    Requests {
        lane: u16,
        bytes: u32,
    },
    Responses {
        lane: u16,
        calls: u16,
    },
    /// The server has read this many bytes, and allows as many more.
    Window {
        lane: u16,
        bytes: u32,
    },
    LaneReady {
        lane: u16,
    },
    /// The next calls of an open loop.
    Arrivals,
}

/// An event with its time. Events at the same time are ordered by creation, so that runs are reproducible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// Time in nanoseconds, followed by the event's number in the low bits.
    pub(super) key: u64,
    pub(super) event: Event,
}

/// Bits for an event's number in its key. The remaining bits hold five hours.
pub(super) const NUMBER_BITS: u32 = 20;

impl Due {
    pub(super) fn at_ns(&self) -> u64 {
        self.key >> NUMBER_BITS
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Due {}
