//! Spinning for all of a thread's connections, by one of them, before the thread sleeps.
//!
//! It does not read from its own socket, as a connection that is alone does. The runtime polls all sockets of the
//! thread for it.

use std::cell::Cell;
use std::time::Instant;

use super::spin_backoff::SpinBackoff;
use super::tuning::POLLER_STALE;

#[derive(Clone, Copy)]
struct Poller {
    identity: usize,
    tried_at: Instant,
    /// The value of [`READS`] at that time.
    reads: u32,
}

thread_local! {
    static POLLER: Cell<Option<Poller>> = const { Cell::new(None) };
    /// Number of reads of the thread's connections.
    static READS: Cell<u32> = const { Cell::new(0) };
    static BACKOFF: Cell<SpinBackoff> = const { Cell::new(SpinBackoff::NEW) };
}

/// Notes that a connection of this thread has read something.
#[inline]
pub(super) fn note_read() {
    READS.set(READS.get().wrapping_add(1));
}

/// Makes the connection of this `identity` the poller of the thread, if it `starts`, or keeps it. Returns whether a
/// connection of the thread has read something since its last try, or `None` if another connection is the poller.
pub(super) fn go_on(identity: usize, starts: bool, now: Instant) -> Option<bool> {
    let poller = POLLER.get();
    let reads = READS.get();
    let has_read = match poller {
        Some(poller) if poller.identity == identity => poller.reads != reads,
        Some(poller) if now.saturating_duration_since(poller.tried_at) < POLLER_STALE => return None,
        _ if starts => false,
        _ => return None,
    };
    POLLER.set(Some(Poller { identity, tried_at: now, reads }));
    Some(has_read)
}

/// Removes the thread's poller.
pub(super) fn end() {
    POLLER.set(None);
}

/// Changes the thread's backoff. All its connections share it: otherwise each new connection would start with a spin.
pub(super) fn with_backoff<R>(change: impl FnOnce(&mut SpinBackoff) -> R) -> R {
    let mut backoff = BACKOFF.get();
    let result = change(&mut backoff);
    BACKOFF.set(backoff);
    result
}
