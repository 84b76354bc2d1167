//! The calls of a channel that wait for a connection or a free stream: how many they are, and who waits for fewer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The number of waiting calls. Calls that need not wait do not touch it.
#[derive(Debug, Default)]
pub(crate) struct WaitingCalls {
    count: AtomicUsize,
    /// Number of entries in `blocked`, readable without the lock.
    blocked_len: AtomicUsize,
    blocked: Mutex<Blocked>,
}

/// Callers that have found too many waiting calls.
#[derive(Debug, Default)]
struct Blocked {
    next_ticket: u64,
    callers: BTreeMap<u64, BlockedCaller>,
}

#[derive(Debug)]
struct BlockedCaller {
    waker: Waker,
    /// Number of waiting calls at which it is woken.
    wakes_at: usize,
}

/// A waiting call.
pub(crate) struct CallWaits<'a>(&'a WaitingCalls);

impl WaitingCalls {
    /// Counts a call until the guard is dropped.
    pub(crate) fn enter(&self) -> CallWaits<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        CallWaits(self)
    }

    /// Polls until fewer than `max` calls wait. Blocked callers are woken when half as many wait, since they are woken
    /// all at once. `ticket` identifies the caller.
    #[inline]
    pub(crate) fn poll_fewer_than(
        &self,
        max: usize,
        ticket: &mut Option<u64>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if self.count.load(Ordering::SeqCst) < max { Poll::Ready(()) } else { self.block(max, ticket, cx) }
    }

    #[cold]
    fn block(&self, max: usize, ticket: &mut Option<u64>, cx: &mut Context<'_>) -> Poll<()> {
        let caller = BlockedCaller { waker: cx.waker().clone(), wakes_at: max / 2 };
        let mut blocked = self.blocked();
        let number = *ticket.get_or_insert_with(|| {
            blocked.next_ticket += 1;
            blocked.next_ticket
        });
        let former = blocked.callers.insert(number, caller);
        self.note_len(&blocked);
        drop(blocked);
        drop(former);
        // Checked again, since a call that has ended meanwhile may not have seen the caller.
        if self.count.load(Ordering::SeqCst) >= max {
            return Poll::Pending;
        }
        let mut blocked = self.blocked();
        let removed = blocked.callers.remove(&number);
        self.note_len(&blocked);
        drop(blocked);
        drop(removed);
        Poll::Ready(())
    }

    #[cold]
    fn wake(&self, count: usize) {
        let mut blocked = self.blocked();
        let (woken, rest) = std::mem::take(&mut blocked.callers)
            .into_iter()
            .partition(|(_, caller)| count <= caller.wakes_at);
        blocked.callers = rest;
        self.note_len(&blocked);
        drop(blocked);
        let woken: BTreeMap<u64, BlockedCaller> = woken;
        for caller in woken.into_values() {
            caller.waker.wake();
        }
    }

    fn blocked(&self) -> MutexGuard<'_, Blocked> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_len(&self, blocked: &Blocked) {
        self.blocked_len.store(blocked.callers.len(), Ordering::SeqCst);
    }
}

impl Drop for CallWaits<'_> {
    fn drop(&mut self) {
        let count = self.0.count.fetch_sub(1, Ordering::SeqCst) - 1;
        if self.0.blocked_len.load(Ordering::SeqCst) > 0 {
            self.0.wake(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn callers_are_blocked_at_the_maximum_and_woken_at_half_of_it() {
        let calls = WaitingCalls::default();
        let woken: [Arc<Woken>; 2] = Default::default();
        let mut tickets = [None; 2];
        let mut poll = |caller: usize, max: usize| {
            let waker = Waker::from(Arc::clone(&woken[caller]));
            calls.poll_fewer_than(max, &mut tickets[caller], &mut Context::from_waker(&waker)).is_ready()
        };
        let mut waiting: Vec<_> = (0..4).map(|_| calls.enter()).collect();
        assert!(poll(0, 5) && !poll(0, 4) && !poll(0, 4) && !poll(1, 1));
        let count = || woken.each_ref().map(|woken| woken.0.load(Ordering::SeqCst));
        for expected in [[0, 0], [1, 0], [1, 0], [1, 1]] {
            waiting.pop();
            assert_eq!(count(), expected);
        }
        assert!(poll(0, 1) && poll(1, 1));
    }
}
