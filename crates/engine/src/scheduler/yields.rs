//! Distinguishes a source that yields from one that has nothing available.
//!
//! Both return `Poll::Pending`. `tokio_stream::iter` yields after every 32 messages, tokio's channels once their
//! task's budget is spent, and a stream may await `tokio::task::yield_now`. Sending at each yield would split a stream
//! of small messages into frames of a few hundred bytes.
//!
//! A waker that detects wake-ups during the poll could not distinguish them. tokio defers the wake-ups of the first
//! two kinds until the task has returned, and sources would clone the new waker at each poll.

use tokio::time::Instant;

use super::heuristic::Heuristic;
use super::tuning::{BATCH_DELAY_MAX, TRUSTED};

/// Decision about a source's messages after it has returned `Poll::Pending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Send them.
    Send,
    /// Poll the source again at once.
    PollAgain,
    /// Keep them until the runtime has polled this task again, because its budget is spent.
    Yield,
}

/// Observations of how a source uses `Poll::Pending`.
#[derive(Debug, Default)]
pub(crate) struct Yields {
    /// When it first yielded since messages were last sent.
    since: Option<Instant>,
    /// Number of times that `Poll::Pending` is still trusted to mean that nothing is available.
    trusted: u8,
    trusted_next: u8,
}

impl Yields {
    /// Decides what to do after the source has returned messages and then `Poll::Pending`. `has_budget`: its task has
    /// some of tokio's budget left.
    pub(crate) fn pause(&mut self, has_budget: bool, now: impl FnOnce() -> Instant) -> Pause {
        if !Heuristic::Yields.is_on() {
            return Pause::Send;
        }
        let pause = if !has_budget {
            // Polling again now would return the same, without budget.
            Pause::Yield
        } else if self.trusted > 0 {
            self.trusted -= 1;
            return Pause::Send;
        } else {
            Pause::PollAgain
        };
        let now = now();
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) < BATCH_DELAY_MAX { pause } else { Pause::Send }
    }

    /// Notes that the source, polled again, had a message: it had yielded.
    pub(crate) fn confirm(&mut self) {
        self.trusted_next = 0;
    }

    /// Notes that the source, polled again, had no message.
    pub(crate) fn refute(&mut self) {
        self.trusted = self.trusted_next;
        self.trusted_next = self.trusted_next.saturating_mul(2).clamp(*TRUSTED.start(), *TRUSTED.end());
    }

    /// Notes that the messages have been sent.
    pub(crate) fn sent(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn source_that_never_yields_is_rarely_polled_twice() {
        let (mut yields, now) = (Yields::default(), Instant::now());
        let mut polled_again_at = Vec::new();
        for pending in 0..300 {
            if yields.pause(true, || now) == Pause::PollAgain {
                polled_again_at.push(pending);
                yields.refute();
            }
            yields.sent();
        }
        assert_eq!(polled_again_at, [0, 1, 6, 15, 32, 65, 130, 195, 260]);
    }

    #[test]
    fn source_that_yields_in_bursts_is_always_polled_twice() {
        let (mut yields, now) = (Yields::default(), Instant::now());
        for _ in 0..100 {
            for _ in 0..3 {
                assert_eq!(yields.pause(true, || now), Pause::PollAgain);
                yields.confirm();
            }
            assert_eq!(yields.pause(true, || now), Pause::PollAgain);
            yields.refute();
            yields.sent();
        }
    }

    #[test]
    fn messages_are_delayed_for_a_bounded_time() {
        let (mut yields, start) = (Yields::default(), Instant::now());
        let mut check = |has_budget, elapsed, expected| {
            assert_eq!(yields.pause(has_budget, || start + elapsed), expected);
            if expected == Pause::Send {
                yields.sent();
            }
        };
        check(true, Duration::ZERO, Pause::PollAgain);
        check(false, BATCH_DELAY_MAX / 2, Pause::Yield);
        check(true, BATCH_DELAY_MAX, Pause::Send);
        check(false, BATCH_DELAY_MAX * 5 / 2, Pause::Yield);
        check(false, BATCH_DELAY_MAX * 7 / 2, Pause::Send);
    }

    #[test]
    fn spent_budget_is_a_yield_of_a_trusted_source_too() {
        let mut yields = Yields { trusted: 9, ..Yields::default() };
        assert_eq!(yields.pause(false, Instant::now), Pause::Yield);
        assert_eq!(yields.pause(true, Instant::now), Pause::Send);
    }
}
