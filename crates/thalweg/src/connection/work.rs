//! What a driver did, until it tells the connection.

use tokio::time::Instant;

use super::Load;
use super::load::nanoseconds;

/// What the driver did since it last told.
#[derive(Debug, Default)]
pub(super) struct Work {
    busy_ns: u64,
    pub(super) bytes: u64,
    /// Short polls so far, of which each [`SHORT_POLLS_PER_LOOK`]th is timed.
    short_polls: u32,
    /// Since when the window keeps data back, while the driver sleeps.
    pub(super) blocked_since: Option<Instant>,
    /// Since when the driver has given way to others, with more to do.
    pub(super) gave_way_at: Option<Instant>,
}

/// A look at the clock is a sensible part of a poll that moves a call or two. Odd: where each call takes two polls, one to write and one
/// to read, both are looked at in turn.
const SHORT_POLLS_PER_LOOK: u32 = 5;
/// Rounds of a short poll: one that moved something and one that did not.
const SHORT_POLL_ROUNDS_MAX: usize = 2;

impl Work {
    /// A poll that began at `began` has ended.
    #[inline]
    pub(super) fn note_poll(&mut self, began: Instant, rounds: usize) {
        if self.bytes == 0 {
            return;
        }
        if rounds > SHORT_POLL_ROUNDS_MAX {
            self.busy_ns += nanoseconds(began, Instant::now());
            return;
        }
        self.short_polls = self.short_polls.wrapping_add(1);
        if self.short_polls.is_multiple_of(SHORT_POLLS_PER_LOOK) {
            self.busy_ns += nanoseconds(began, Instant::now()) * u64::from(SHORT_POLLS_PER_LOOK);
        }
    }

    /// Adds what was done up to `now` to the connection's totals.
    #[inline]
    pub(super) fn tell(&mut self, load: &mut Load, now: Instant) {
        load.busy_ns += std::mem::take(&mut self.busy_ns);
        load.bytes += std::mem::take(&mut self.bytes);
        if let Some(since) = self.blocked_since.take() {
            load.blocked_ns += nanoseconds(since, now);
        }
        if let Some(since) = self.gave_way_at.take() {
            load.note_wait(nanoseconds(since, now));
        }
    }
}
