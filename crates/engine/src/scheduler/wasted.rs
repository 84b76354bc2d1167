//! Processor time of spins that received nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static WASTED_NS: AtomicU64 = AtomicU64::new(0);

pub(super) fn add_wasted(nanoseconds: u64) {
    WASTED_NS.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// Returns the processor time that this process has spent busy-polling without receiving anything, over all threads and
/// connections. [`ChannelConfig::busy_poll`](crate::ChannelConfig::busy_poll) says when connections busy-poll.
pub fn busy_poll_wasted() -> Duration {
    Duration::from_nanos(WASTED_NS.load(Ordering::Relaxed))
}
