//! What a connection has done: totals that only grow. Who wants to know how busy it is looks twice.

use std::time::Duration;

/// Kept under the connection's lock, where most of it arises anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// The time that the driver was at work: polls in which nothing moved are not counted.
    pub(crate) busy: Duration,
    /// Calls that ended, and DATA of streams that came or went.
    pub(crate) completed: u64,
    /// Bytes read and written.
    pub(crate) bytes: u64,
    /// The time from output being there to its being taken for the socket, over `waits` looks at it.
    pub(crate) waited: Duration,
    pub(crate) waits: u32,
    /// The time in which data was kept back by the connection's window.
    pub(crate) blocked: Duration,
}

impl Load {
    /// What was done since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(before.busy),
            completed: self.completed - before.completed,
            bytes: self.bytes - before.bytes,
            waited: self.waited.saturating_sub(before.waited),
            waits: self.waits.wrapping_sub(before.waits),
            blocked: self.blocked.saturating_sub(before.blocked),
        }
    }

    /// What a look at the output that waited says.
    pub(crate) fn note_wait(&mut self, wait: Duration) {
        self.waited += wait;
        self.waits = self.waits.wrapping_add(1);
    }

    /// Mean time from output being there to its being taken; zero if none was looked at.
    pub(crate) fn mean_wait(&self) -> Duration {
        self.waited.checked_div(self.waits).unwrap_or_default()
    }
}
