//! Messages and their bytes.

use std::ops::AddAssign;

/// Messages and their bytes.
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

/// How long the responses to several requests took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replies {
    pub(crate) took_ns: u64,
    pub(crate) count: u64,
}

/// Messages that followed each other, from one reading of the clock to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) took_ns: u64,
    pub(crate) count: u64,
}

/// Messages of a stream that are counted at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) traffic: Traffic,
    /// Until the first response of the stream was here, if that is one of them.
    pub(crate) first_ns: Option<u64>,
    pub(crate) replies: Vec<Replies>,
    /// Of a stream one way: the messages before them.
    pub(crate) stretch: Option<Stretch>,
    /// Messages that came before them since the clock was read.
    pub(crate) before: u64,
}

impl Batch {
    /// Leaves so many of the responses.
    pub(crate) fn keep(&mut self, count: u64) {
        let Traffic { received, bytes_received, .. } = &mut self.traffic;
        if count < *received {
            *bytes_received = *bytes_received * count / *received;
            *received = count;
        }
    }
}
