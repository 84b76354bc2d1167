//! Where a worker counts, and what is left of the run.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use crate::progress::Progress;
use crate::tally::Shards;

/// Messages of streams that are counted at once, at the most.
pub(crate) const BATCH_MESSAGES_MAX: u64 = 16;

/// Where a worker counts, and the run's clock. Each worker has its own: a counter of references that all threads change
/// would be fetched from one processor to another with each stream.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) shards: Arc<Shards>,
    /// When the run's clock began. All times are ns of this clock.
    pub(crate) base: Instant,
    /// When measuring begins.
    pub(crate) from_ns: u64,
    /// Messages of streams that are left, where their number ends the run; those of the warm-up are none of it.
    pub(crate) messages_left: Option<Arc<AtomicU64>>,
    /// Nothing begins any more.
    pub(crate) stopped: Arc<AtomicBool>,
    /// Of this worker.
    pub(crate) progress: Arc<Progress>,
}

impl Counting {
    pub(crate) fn now_ns(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.messages_left.is_some()
    }

    /// Takes up to `wanted` messages of what is left.
    pub(crate) fn take(&self, now_ns: u64, wanted: u64) -> u64 {
        let Some(left) = self.messages_left.as_ref().filter(|_| now_ns >= self.from_ns) else {
            return wanted;
        };
        let taken = left.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(wanted)));
        taken.map_or(0, |left| left.min(wanted))
    }

    /// A stream that fails before its first message counts as some of those that are left: a run against a server that
    /// refuses all streams ends, too.
    pub(crate) fn take_failed(&self) {
        self.take(self.now_ns(), BATCH_MESSAGES_MAX);
    }

    /// Gives back what was taken at this time.
    pub(crate) fn give_back(&self, taken_ns: u64, count: u64) {
        if let Some(left) = self.messages_left.as_ref().filter(|_| count > 0 && taken_ns >= self.from_ns) {
            left.fetch_add(count, Relaxed);
        }
    }
}
