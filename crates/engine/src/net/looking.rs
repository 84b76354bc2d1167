//! Whether reads of this thread ask the system without waiting for the runtime to say that something has come.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

thread_local! {
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

static IN_VAIN_NS: AtomicU64 = AtomicU64::new(0);

/// From now on the connection that this thread drives looks by itself, or does not.
#[inline]
pub(crate) fn set_looking(is_looking: bool) {
    IS_LOOKING.set(is_looking);
}

#[inline]
pub(super) fn is_looking() -> bool {
    IS_LOOKING.get()
}

/// For so many nanoseconds a connection looked, and nothing came.
pub(crate) fn add_in_vain(nanoseconds: u64) {
    IN_VAIN_NS.fetch_add(nanoseconds, Ordering::Relaxed);
}

/// How long the connections of this process have looked for what did not come, all threads together: processor time in
/// which there was nothing to do. [`ChannelConfig::busy_poll`](crate::ChannelConfig::busy_poll) says when they look.
pub fn looked_in_vain() -> Duration {
    Duration::from_nanos(IN_VAIN_NS.load(Ordering::Relaxed))
}
