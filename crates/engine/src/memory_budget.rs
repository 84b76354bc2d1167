//! Memory budget of a server, shared by its connections: [`MemoryBudget`].
//!
//! Each connection sums up its own buffers and charges the budget in steps of [`STEP`], so small calls never touch the
//! shared atomics.

use std::collections::VecDeque;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Granularity of charges, in bytes. The remainder of a step is not charged.
pub(crate) const STEP: usize = 16 << 10;
/// Calls wait only while responses take at least one part in so many of the budget. Running handlers free requests, so
/// handlers that waited for requests to leave would deadlock.
const RESPONSES_MIN: usize = 4;
/// One part in so many of the budget, on top of it, is the reserve for connections with small responses.
const RESERVE: usize = 8;

/// Buffered bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Requests: received bytes that are not consumed, and decoded messages.
    pub(crate) requests: usize,
    /// Responses that peers have not received.
    pub(crate) responses: usize,
}

impl Held {
    pub(crate) fn all(self) -> usize {
        self.requests + self.responses
    }

    /// Returns whether the difference to `other` is worth a charge.
    pub(crate) fn differs(self, other: Self) -> bool {
        self.requests.abs_diff(other.requests) >= STEP || self.responses.abs_diff(other.responses) >= STEP
    }

    /// Rounds down to whole steps.
    pub(crate) fn charged(self) -> Self {
        Self { requests: self.requests / STEP * STEP, responses: self.responses / STEP * STEP }
    }
}

impl Add for Held {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, responses: self.responses + other.responses }
    }
}

impl Sub for Held {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            responses: self.responses.saturating_sub(other.responses),
        }
    }
}

/// Limit and use of the memory that a server spends on its peers.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    max: usize,
    /// Bytes charged in all.
    held: AtomicUsize,
    /// Bytes charged for responses.
    responses: AtomicUsize,
    has_waiters: AtomicBool,
    waiters: Mutex<Waiters>,
}

/// Waiters woken at once. Each waiter that proceeds wakes the next. Woken all at once, they would build their responses
/// before other tasks run, and before the first of them is charged.
const WOKEN_AT_ONCE: usize = 2;
/// The periodic sweep wakes one waiter in so many, because a waiter that has gone wakes nobody.
const SWEPT: usize = 4;

#[derive(Debug, Default)]
struct Waiters {
    /// Waiters, the oldest first.
    for_room: VecDeque<Waker>,
    /// Number of waiters woken so far, which is the ticket of the oldest.
    served: u64,
    /// Wakes the task that ends connections to make room.
    reaper: Option<Waker>,
    /// That task has work to do.
    is_pressed: bool,
}

/// The ticket of a waiter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn(Option<u64>);

impl Turn {
    /// Returns whether the holder waits, or was woken and has not passed its turn on.
    #[inline]
    pub(crate) fn waits(self) -> bool {
        self.0.is_some()
    }
}

impl MemoryBudget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            held: AtomicUsize::new(0),
            responses: AtomicUsize::new(0),
            has_waiters: AtomicBool::new(false),
            waiters: Mutex::default(),
        })
    }

    /// Returns the limit in bytes.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Returns whether only connections with small responses may go on.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.held.load(Ordering::Relaxed) >= self.max && self.are_responses_many()
    }

    /// Returns whether even the reserve is used up.
    #[cold]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.held.load(Ordering::Relaxed) >= self.max + self.max / RESERVE && self.are_responses_many()
    }

    #[cold]
    fn are_responses_many(&self) -> bool {
        self.responses.load(Ordering::Relaxed) >= (self.max / RESPONSES_MIN).max(1)
    }

    /// Returns whether anyone waits for room.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.has_waiters.load(Ordering::Relaxed)
    }

    /// Replaces the charge `charged` by that of `held`. Returns the wakers to wake, outside of any lock.
    #[cold]
    pub(crate) fn charge(&self, charged: &mut Held, held: Held) -> Vec<Waker> {
        let before = std::mem::replace(charged, held.charged());
        let (more, less) = (*charged - before, before - *charged);
        if more.responses != less.responses {
            self.responses.fetch_add(more.responses, Ordering::SeqCst);
            self.responses.fetch_sub(less.responses, Ordering::SeqCst);
        }
        let was_held = self.held.fetch_add(more.all(), Ordering::SeqCst);
        self.held.fetch_sub(less.all(), Ordering::SeqCst);
        if was_held < self.max && was_held + more.all() >= self.max {
            return self.lock().press().into_iter().collect();
        }
        if less.all() > 0 { self.admit(WOKEN_AT_ONCE) } else { Vec::new() }
    }

    /// Returns the wakers that the periodic sweep is to wake.
    pub(crate) fn sweep(&self) -> Vec<Waker> {
        let waiting = if self.is_waited_for() { self.lock().for_room.len() } else { 0 };
        self.admit((waiting / SWEPT).max(WOKEN_AT_ONCE))
    }

    /// Gives up the ticket of a waiter that proceeds, and returns the waker of the next.
    #[inline]
    pub(crate) fn pass_on(&self, turn: &mut Turn) -> Vec<Waker> {
        if turn.0.take().is_some() { self.admit(1) } else { Vec::new() }
    }

    fn admit(&self, count: usize) -> Vec<Waker> {
        if !self.has_waiters.load(Ordering::SeqCst) || self.is_full() {
            return Vec::new();
        }
        let mut waiters = self.lock();
        let count = count.min(waiters.for_room.len());
        waiters.served += count as u64;
        let woken = waiters.for_room.drain(..count).collect();
        self.has_waiters.store(!waiters.for_room.is_empty(), Ordering::SeqCst);
        woken
    }

    /// Queues `waker` unless `turn` is queued already. Returns false if there is room.
    #[cold]
    pub(crate) fn wait(&self, turn: &mut Turn, waker: &Waker) -> bool {
        let own = waker.clone();
        let mut waiters = self.lock();
        self.has_waiters.store(true, Ordering::SeqCst);
        if !self.is_full() {
            self.has_waiters.store(!waiters.for_room.is_empty(), Ordering::SeqCst);
            return false;
        }
        let own = match turn.0 {
            Some(number) if number >= waiters.served => Some(own),
            _ => {
                turn.0 = Some(waiters.served + waiters.for_room.len() as u64);
                waiters.for_room.push_back(own);
                None
            }
        };
        let reaper = waiters.press();
        drop(waiters);
        drop(own);
        if let Some(reaper) = reaper {
            reaper.wake();
        }
        true
    }

    /// Waits until connections have to be checked for room.
    pub(crate) fn poll_pressed(&self, cx: &Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let mut waiters = self.lock();
        if std::mem::take(&mut waiters.is_pressed) {
            return Poll::Ready(());
        }
        let before = waiters.reaper.replace(waker);
        drop(waiters);
        drop(before);
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiters {
    fn press(&mut self) -> Option<Waker> {
        self.is_pressed = true;
        self.reaper.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: usize = 1 << 20;

    fn responses(bytes: usize) -> Held {
        Held { responses: bytes, ..Held::default() }
    }

    #[test]
    fn what_is_less_than_a_step_is_not_charged() {
        let budget = MemoryBudget::new(MEBIBYTE);
        let mut charged = Held::default();
        assert!(!responses(STEP - 1).differs(charged) && responses(STEP).differs(charged));
        budget.charge(&mut charged, responses(STEP + 1));
        assert_eq!((charged, budget.held.load(Ordering::Relaxed)), (responses(STEP), STEP));
        budget.charge(&mut charged, Held::default());
        assert_eq!((charged, budget.held.load(Ordering::Relaxed)), (Held::default(), 0));
    }

    #[test]
    fn it_is_full_of_responses_and_never_of_requests() {
        let check = |held: Held, is_full: bool, is_exhausted: bool| {
            let budget = MemoryBudget::new(MEBIBYTE);
            budget.charge(&mut Held::default(), held);
            assert_eq!((budget.is_full(), budget.is_exhausted()), (is_full, is_exhausted), "{held:?}");
        };
        check(responses(MEBIBYTE - 1), false, false);
        check(responses(MEBIBYTE), true, false);
        check(responses(MEBIBYTE + MEBIBYTE / 8), true, true);
        check(Held { requests: 9 * MEBIBYTE, responses: MEBIBYTE / 8 }, false, false);
        check(Held { requests: 9 * MEBIBYTE, responses: MEBIBYTE / 4 }, true, true);
    }

    #[test]
    fn whoever_waits_is_woken_once_when_there_is_room() {
        let budget = MemoryBudget::new(MEBIBYTE);
        let (mut charged, mut turn) = (Held::default(), Turn::default());
        assert!(!budget.wait(&mut turn, Waker::noop()), "there is room");
        assert!(!budget.is_waited_for());
        budget.charge(&mut charged, responses(2 * MEBIBYTE));
        assert!(budget.wait(&mut turn, Waker::noop()) && budget.wait(&mut turn, Waker::noop()));
        assert!(budget.charge(&mut charged, responses(MEBIBYTE)).is_empty(), "it is still full");
        assert_eq!(budget.charge(&mut charged, responses(0)).len(), 1);
        assert!(!budget.is_waited_for());
        budget.charge(&mut charged, responses(2 * MEBIBYTE));
        assert!(budget.wait(&mut turn, Waker::noop()));
        assert!(budget.is_waited_for(), "it waits again");
    }

    #[test]
    fn those_who_wait_are_woken_one_after_the_other() {
        let budget = MemoryBudget::new(MEBIBYTE);
        let mut charged = Held::default();
        let mut turns = [Turn::default(); 20];
        budget.charge(&mut charged, responses(2 * MEBIBYTE));
        assert!(turns.iter_mut().all(|turn| budget.wait(turn, Waker::noop())));
        assert_eq!(budget.charge(&mut charged, responses(0)).len(), WOKEN_AT_ONCE);
        assert_eq!(budget.pass_on(&mut turns[0]).len(), 1);
        assert_eq!(budget.pass_on(&mut turns[0]).len(), 0, "it has passed it on");
        assert_eq!(budget.sweep().len(), 17 / SWEPT);
        budget.charge(&mut charged, responses(2 * MEBIBYTE));
        assert_eq!(budget.pass_on(&mut turns[1]).len(), 0, "it is full again");
        assert!(budget.is_waited_for());
    }

    #[test]
    fn the_reaper_is_called_when_the_budget_is_reached_and_when_somebody_waits() {
        let budget = MemoryBudget::new(MEBIBYTE);
        let cx = Context::from_waker(Waker::noop());
        let (mut charged, mut turn) = (Held::default(), Turn::default());
        assert!(budget.poll_pressed(&cx).is_pending());
        budget.charge(&mut charged, responses(MEBIBYTE));
        assert!(budget.poll_pressed(&cx).is_ready() && budget.poll_pressed(&cx).is_pending());
        assert!(budget.wait(&mut turn, Waker::noop()));
        assert!(budget.poll_pressed(&cx).is_ready());
    }
}
