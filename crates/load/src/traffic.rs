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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replies {
    pub(crate) took_ns: u64,
    pub(crate) count: u64,
}

/// Batch that have come together: they are counted at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Until the first one of the stream was here, if that is one of them.
    pub(crate) first_ns: Option<u64>,
    pub(crate) replies: Vec<Replies>,
}
