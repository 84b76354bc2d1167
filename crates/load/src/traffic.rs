//! Messages and bytes.

use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) received: u64,
    pub(crate) bytes_received: u64,
}

impl Traffic {
    pub(crate) fn sent(count: u64, bytes: u64) -> Self {
        Self { sent: count, bytes_sent: bytes, ..Self::default() }
    }

    pub(crate) fn received(count: u64, bytes: u64) -> Self {
        Self { received: count, bytes_received: bytes, ..Self::default() }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        let Self { sent, bytes_sent, received, bytes_received } = other;
        self.sent += sent;
        self.bytes_sent += bytes_sent;
        self.received += received;
        self.bytes_received += bytes_received;
    }
}

/// Response time of several requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replies {
    pub(crate) took_ns: u64,
    pub(crate) count: u64,
}

/// Messages from one reading of the clock to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedMessages {
    pub(crate) took_ns: u64,
    pub(crate) count: u64,
}

/// Stream messages that are counted together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) traffic: Traffic,
    /// Time to the first response of the stream, if it is in the batch.
    pub(crate) first_ns: Option<u64>,
    pub(crate) replies: Vec<Replies>,
    /// Preceding messages of a one-way stream.
    pub(crate) timed: Option<TimedMessages>,
    /// Messages counted since the clock was last read.
    pub(crate) before: u64,
}

impl Batch {
    /// Keeps `count` of the responses.
    pub(crate) fn keep(&mut self, count: u64) {
        let Traffic { received, bytes_received, .. } = &mut self.traffic;
        if count < *received {
            *bytes_received = *bytes_received * count / *received;
            *received = count;
        }
    }
}
