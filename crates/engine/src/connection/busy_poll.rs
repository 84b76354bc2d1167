//! How long a connection on which nothing moves goes on looking before it sleeps.
//!
//! The driver does not spin: after each try it gives way to the other tasks of its thread, which may be the very ones
//! that would make the next call.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

use super::give_way::give_way;

/// Busy polling of one connection; none at all for a duration of zero.
#[derive(Debug)]
pub(super) struct BusyPoll {
    duration: Duration,
    /// When the tries began that have found nothing so far. Time of the machine, even where a test has stopped tokio's:
    /// what is spent is a processor.
    since: Option<Instant>,
    tries: u32,
    /// After how many tries the runtime polls everything else; 0 until its kind is known.
    tries_per_runtime_poll: u32,
}

/// A poll by the runtime of timers, other sockets and the future of `block_on` costs about a microsecond, four
/// times what a try costs, so not every try is followed by one. By itself it would poll after 61 tasks, which here are
/// one task 61 times.
const TRIES_PER_RUNTIME_POLL: u32 = 8;

impl BusyPoll {
    pub(super) fn new(duration: Duration) -> Self {
        Self { duration, since: None, tries: 0, tries_per_runtime_poll: 0 }
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

    /// Lets the other tasks of the thread run, and the runtime poll from time to time, before the task is polled again.
    pub(super) fn give_way(&mut self, cx: &mut Context<'_>) {
        if self.tries_per_runtime_poll == 0 {
            self.tries_per_runtime_poll = match Handle::try_current().map(|runtime| runtime.runtime_flavor())
            {
                Ok(RuntimeFlavor::CurrentThread) => TRIES_PER_RUNTIME_POLL,
                // A task that wakes itself makes one of several threads wake another to share the work: it must not.
                _ => 1,
            };
        }
        self.tries = self.tries.wrapping_add(1);
        if self.tries.is_multiple_of(self.tries_per_runtime_poll) {
            let _: Poll<()> = give_way(cx);
        } else {
            cx.waker().wake_by_ref();
        }
    }
}
