//! One of the connections that a thread drives spins for all of them before the thread sleeps.
//!
//! It does not read from its own socket as a connection that is alone does: it has the runtime ask the system for all
//! sockets of the thread.

use std::cell::Cell;
use std::time::Instant;

use super::spin_backoff::SpinBackoff;
use super::tuning::POLLER_STALE;

#[derive(Clone, Copy)]
struct Poller {
    identity: usize,
    tried_at: Instant,
    /// [`READS`] at that time.
    reads: u32,
}

thread_local! {
    static POLLER: Cell<Option<Poller>> = const { Cell::new(None) };
    /// Reads of the thread's connections.
    static READS: Cell<u32> = const { Cell::new(0) };
    static BACKOFF: Cell<SpinBackoff> = const { Cell::new(SpinBackoff::NEW) };
}

/// A connection of this thread has read something.
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

/// The thread has no poller any more.
pub(super) fn end() {
    POLLER.set(None);
}

/// Changes the backoff of the thread's spins. All its connections share it: each new one would start with a spin.
pub(super) fn with_backoff<R>(change: impl FnOnce(&mut SpinBackoff) -> R) -> R {
    let mut backoff = BACKOFF.get();
    let result = change(&mut backoff);
    BACKOFF.set(backoff);
    result
}
