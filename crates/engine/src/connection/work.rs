//! What a driver did, until it tells the connection.

use tokio::time::Instant;

use super::load::{Load, nanoseconds};

/// What the driver did since it last told.
#[derive(Debug, Default)]
pub(super) struct Work {
    busy_ns: u64,
    /// This poll has read or written something.
    pub(super) has_moved: bool,
    /// Short polls, of which each [`SHORT_POLLS_PER_SAMPLE`]th is timed.
    short_polls: u32,
    /// Since when the window keeps data back, while the driver sleeps.
    pub(super) blocked_since: Option<Instant>,
    /// Since when the driver has given way to others, with more to do.
    pub(super) gave_way_at: Option<Instant>,
    /// There is enough to tell. What a few short polls moved can wait for more of them.
    pub(super) is_due: bool,
}

/// To read the clock is a sensible part of a poll that moves a call or two. Odd: where each call takes two polls, one
/// to write and one to read, both are sampled.
const SHORT_POLLS_PER_SAMPLE: u32 = 31;
/// Rounds of a short poll: one that moved something and one that did not.
const SHORT_POLL_ROUNDS_MAX: usize = 2;

impl Work {
    /// A poll that began at `began` has ended.
    #[inline]
    pub(super) fn note_poll(&mut self, began: Instant, rounds: usize) {
        if !std::mem::take(&mut self.has_moved) {
            return;
        }
        if rounds > SHORT_POLL_ROUNDS_MAX {
            self.is_due = true;
            self.busy_ns += nanoseconds(began, Instant::now());
            return;
        }
        self.short_polls += 1;
        if self.short_polls == SHORT_POLLS_PER_SAMPLE {
            self.short_polls = 0;
            self.is_due = true;
            self.busy_ns += nanoseconds(began, Instant::now()) * u64::from(SHORT_POLLS_PER_SAMPLE);
        }
    }

    /// Adds what was done up to `now` to the connection's totals.
    pub(super) fn tell(&mut self, load: &mut Load, now: Instant) {
        self.is_due = false;
        load.busy_ns += std::mem::take(&mut self.busy_ns);
        if let Some(since) = self.blocked_since.take() {
            load.blocked_ns += nanoseconds(since, now);
        }
        if let Some(since) = self.gave_way_at.take() {
            load.note_wait(nanoseconds(since, now));
        }
    }
}
