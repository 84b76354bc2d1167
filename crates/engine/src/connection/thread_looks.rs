//! Of the connections that a thread drives, one looks for all of them before the thread sleeps.
//!
//! It does not read from its own socket to see whether something has come, as one that is alone does: it has the
//! runtime ask the system for all sockets of the thread.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::looks::Looks;

#[derive(Clone, Copy)]
struct Looker {
    identity: usize,
    tried_at: Instant,
    /// [`READS`] then.
    reads: u32,
}

thread_local! {
    static LOOKER: Cell<Option<Looker>> = const { Cell::new(None) };
    /// How often a connection of the thread has read something.
    static READS: Cell<u32> = const { Cell::new(0) };
    static LOOKS: Cell<Looks> = const { Cell::new(Looks::NEW) };
}

/// A looker that has not tried for so long is no more: its task may have moved to another thread.
const STALE: Duration = Duration::from_micros(500);

/// A connection of this thread has read something.
#[inline]
pub(super) fn note_read() {
    READS.set(READS.get().wrapping_add(1));
}

/// The connection of this `identity` looks for the thread, unless another one does (`None`), and `begins` or goes on.
/// Whether a connection of the thread has read something since its last try.
pub(super) fn go_on(identity: usize, begins: bool, now: Instant) -> Option<bool> {
    let looker = LOOKER.get();
    let reads = READS.get();
    let has_read = match looker {
        Some(looker) if looker.identity == identity => looker.reads != reads,
        Some(looker) if now.saturating_duration_since(looker.tried_at) < STALE => return None,
        _ if begins => false,
        _ => return None,
    };
    LOOKER.set(Some(Looker { identity, tried_at: now, reads }));
    Some(has_read)
}

/// The connection that looks for this thread does so no longer.
pub(super) fn end() {
    LOOKER.set(None);
}

/// Whether looks for this thread have paid: of all its connections, since each new one would begin with a look.
pub(super) fn with_looks<R>(change: impl FnOnce(&mut Looks) -> R) -> R {
    let mut looks = LOOKS.get();
    let result = change(&mut looks);
    LOOKS.set(looks);
    result
}
