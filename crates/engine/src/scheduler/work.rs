//! Work of a driver that has not been added to the connection's [`Load`] yet.

use tokio::time::Instant;

use super::load::{Load, nanoseconds};
use super::tuning::{SHORT_POLL_ROUNDS_MAX, SHORT_POLLS_PER_SAMPLE};

/// Work that is not in the [`Load`] yet.
#[derive(Debug, Default)]
pub(crate) struct Work {
    busy_ns: u64,
    /// Whether this poll has read or written something.
    pub(crate) has_moved: bool,
    /// Short polls; one in [`SHORT_POLLS_PER_SAMPLE`] is timed.
    short_polls: u32,
    /// Since when the window has held back data, while the driver sleeps.
    pub(crate) blocked_since: Option<Instant>,
    /// Since when the driver has yielded, with more to do.
    pub(crate) yielded_at: Option<Instant>,
    /// Whether there is enough to add. The work of a few short polls can wait for more of them.
    pub(crate) is_due: bool,
}

impl Work {
    /// Notes the end of a poll that began at `started_at`.
    #[inline]
    pub(crate) fn note_poll(&mut self, started_at: Instant, rounds: usize) {
        if !std::mem::take(&mut self.has_moved) {
            return;
        }
        if rounds > SHORT_POLL_ROUNDS_MAX {
            self.is_due = true;
            self.busy_ns += nanoseconds(started_at, Instant::now());
            return;
        }
        self.short_polls += 1;
        if self.short_polls == SHORT_POLLS_PER_SAMPLE {
            self.short_polls = 0;
            self.is_due = true;
            self.busy_ns += nanoseconds(started_at, Instant::now()) * u64::from(SHORT_POLLS_PER_SAMPLE);
        }
    }

    /// Adds the work done up to `now` to the connection's totals.
    pub(crate) fn add_to(&mut self, load: &mut Load, now: Instant) {
        self.is_due = false;
        load.busy_ns += std::mem::take(&mut self.busy_ns);
        if let Some(since) = self.blocked_since.take() {
            load.blocked_ns += nanoseconds(since, now);
        }
        if let Some(since) = self.yielded_at.take() {
            load.note_wait(nanoseconds(since, now));
        }
    }
}
