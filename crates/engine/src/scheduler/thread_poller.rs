//! Spinning for all of a thread's connections, by one of them, before the thread sleeps.
//!
//! It does not read from its own socket, as a connection that is alone does. The runtime polls all sockets of the
//! thread for it.

use std::cell::Cell;
use std::time::Instant;

use super::spin_backoff::SpinBackoff;
use super::tuning::{FEW_CONNECTIONS, FEW_CONNECTIONS_IDLES, POLLER_STALE};

#[derive(Clone, Copy)]
struct Poller {
    identity: usize,
    tried_at: Instant,
    /// The value of [`READS`] at that time.
    reads: u32,
}

/// The connections that were idle last, of those that this thread drives.
#[derive(Clone, Copy)]
struct LastIdle {
    /// In the order of their last idle moments, the latest first.
    identities: [usize; FEW_CONNECTIONS],
    /// Idle moments since another connection had one.
    idles: u32,
}

impl LastIdle {
    const NEW: Self = Self { identities: [0; FEW_CONNECTIONS], idles: 0 };

    fn note(&mut self, identity: usize) {
        let known = self.identities.iter().position(|&known| known == identity);
        self.idles = if known.is_some() { self.idles.saturating_add(1) } else { 0 };
        self.identities[..=known.unwrap_or(FEW_CONNECTIONS - 1)].rotate_right(1);
        self.identities[0] = identity;
    }
}

thread_local! {
    static POLLER: Cell<Option<Poller>> = const { Cell::new(None) };
    /// Number of reads of the thread's connections.
    static READS: Cell<u32> = const { Cell::new(0) };
    static BACKOFF: Cell<SpinBackoff> = const { Cell::new(SpinBackoff::NEW) };
    static LAST_IDLE: Cell<LastIdle> = const { Cell::new(LastIdle::NEW) };
}

/// Notes that the connection of this `identity` is idle. Returns whether the thread has so few busy connections that
/// each should spin at its own socket.
pub(super) fn is_one_of_few(identity: usize) -> bool {
    let mut last = LAST_IDLE.get();
    last.note(identity);
    LAST_IDLE.set(last);
    last.idles >= FEW_CONNECTIONS_IDLES
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_connections_are_those_that_idle_without_another() {
        let idle = |identity| is_one_of_few(identity);
        for at in 1..FEW_CONNECTIONS + FEW_CONNECTIONS_IDLES as usize {
            assert!(!idle(1 + at % FEW_CONNECTIONS), "idle moment {at}");
        }
        assert!(idle(1));
        assert!(idle(1), "the same again");
        assert!(!idle(FEW_CONNECTIONS + 1), "one more");
        assert!(!idle(1));
        for _ in 0..10 * FEW_CONNECTIONS_IDLES {
            for identity in 1..=FEW_CONNECTIONS + 1 {
                assert!(!idle(identity), "more than few, in turn");
            }
        }
    }
}
