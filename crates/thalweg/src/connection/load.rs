//! What a connection has done: totals that only grow. Who wants to know how busy it is looks twice.

use std::time::Duration;

use tokio::time::Instant;

/// Kept under the connection's lock, where most of it arises anyway. Times are in nanoseconds, which are cheaper to add than
/// [`Duration`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// The time that the driver was at work, by a sample: polls in which nothing moved are not counted.
    pub(crate) busy_ns: u64,
    /// The time that calls were in flight, summed over them.
    pub(crate) calls_ns: u64,
    /// Calls that ended, and DATA of streams that came or went.
    pub(crate) completed: u64,
    /// Bytes read and written.
    pub(crate) bytes: u64,
    /// The time from output being there to its being taken for the socket, over `waits` looks at it.
    pub(crate) waited_ns: u64,
    pub(crate) waits: u64,
    /// The time in which data was kept back by the connection's window.
    pub(crate) blocked_ns: u64,
}

impl Load {
    /// What was done since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            busy_ns: self.busy_ns - before.busy_ns,
            calls_ns: self.calls_ns.wrapping_sub(before.calls_ns),
            completed: self.completed - before.completed,
            bytes: self.bytes - before.bytes,
            waited_ns: self.waited_ns - before.waited_ns,
            waits: self.waits - before.waits,
            blocked_ns: self.blocked_ns - before.blocked_ns,
        }
    }

    /// What a look at the output that waited says.
    pub(crate) fn note_wait(&mut self, nanoseconds: u64) {
        self.waited_ns += nanoseconds;
        self.waits += 1;
    }

    /// Mean time from output being there to its being taken; zero if none was looked at.
    pub(crate) fn mean_wait(&self) -> Duration {
        Duration::from_nanos(self.waited_ns.checked_div(self.waits).unwrap_or(0))
    }
}

/// Nanoseconds between two times; 0 if they are the wrong way round. 2^64 of them are 584 years.
#[inline]
pub(crate) fn nanoseconds(from: Instant, to: Instant) -> u64 {
    let between = to.saturating_duration_since(from);
    between.as_secs() * 1_000_000_000 + u64::from(between.subsec_nanos())
}
