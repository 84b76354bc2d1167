//! How long a connection on which nothing moves goes on looking before it sleeps.
//!
//! The driver does not spin: after each try it gives way to the other tasks of its thread, which may be the very ones that would
//! make the next call.

use std::time::{Duration, Instant};

/// Busy polling of one connection; none at all for a duration of zero.
#[derive(Debug)]
pub(super) struct BusyPoll {
    duration: Duration,
    /// When the tries began that have found nothing so far. Time of the machine, even where a test has stopped tokio's: what
    /// is spent is a processor.
    since: Option<Instant>,
}

impl BusyPoll {
    pub(super) fn new(duration: Duration) -> Self {
        Self { duration, since: None }
    }

    /// Something moved: the next try that finds nothing is the first.
    pub(super) fn begin(&mut self) {
        self.since = None;
    }

    /// Nothing moved: whether to try again.
    pub(super) fn goes_on(&mut self) -> bool {
        if self.duration.is_zero() {
            return false;
        }
        match self.since {
            None => {
                self.since = Some(Instant::now());
                true
            }
            Some(since) => since.elapsed() < self.duration,
        }
    }
}
