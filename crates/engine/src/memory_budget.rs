//! Memory budget of a server, shared by its connections: [`MemoryBudget`].
//!
//! Each connection sums up its own buffers and charges the budget in steps of [`STEP`], so small calls never touch the
//! shared atomics.

use std::collections::VecDeque;
use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Granularity of charges, in bytes. The remainder of a step is not charged.
pub(crate) const STEP: usize = 16 << 10;
/// Inverse of the minimum fraction of the budget that responses take before calls wait. Running handlers free requests,
/// so handlers that waited for requests to leave would deadlock.
const RESPONSES_MIN: usize = 4;
/// Inverse of the fraction of the budget, on top of it, reserved for connections with small responses.
const RESERVE: usize = 8;
/// Growth of responses after which calls wait until the runtime has polled its sockets, in bytes. A core takes some
/// 10 ms to build as much JSON and to copy it to a socket. Without this limit, connections that become ready together
/// would fill the whole budget before the runtime polls any other socket.
const BURST_MAX: usize = 4 << 20;

/// Buffered bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferedBytes {
    /// Requests: received bytes that are not consumed, and decoded messages.
    pub(crate) requests: usize,
    /// Responses that peers have not received.
    pub(crate) responses: usize,
}

impl BufferedBytes {
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

impl Add for BufferedBytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, responses: self.responses + other.responses }
    }
}

impl Sub for BufferedBytes {
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
    total: AtomicUsize,
    /// Bytes charged for responses.
    responses: AtomicUsize,
    /// Bytes charged for responses at which the burst is over: [`BURST_MAX`] more than the least since the sockets were
    /// last polled. Connections that end do not make the least smaller.
    burst_ends: AtomicUsize,
    has_waiters: AtomicBool,
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    /// Waiters, the oldest first.
    for_room: VecDeque<Waker>,
    /// Number of waiters woken so far, which is the ticket of the oldest.
    served: u64,
    /// Calls the task that ends connections to make room.
    reaper: Signal,
    /// Calls the task that wakes waiters.
    pacer: Signal,
}

/// Notifies one task that it has work to do.
#[derive(Debug, Default)]
struct Signal {
    is_set: bool,
    waker: Option<Waker>,
}

impl Signal {
    /// Sets the signal. Returns the waker to wake, outside of any lock.
    fn set(&mut self) -> Option<Waker> {
        self.is_set = true;
        self.waker.take()
    }

    /// Clears the signal and returns true if it is set. Otherwise swaps `waker` into its place.
    fn take(&mut self, waker: &mut Option<Waker>) -> bool {
        if std::mem::take(&mut self.is_set) {
            return true;
        }
        std::mem::swap(&mut self.waker, waker);
        false
    }
}

/// The ticket of a waiter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn(Option<u64>);

impl MemoryBudget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            total: AtomicUsize::new(0),
            responses: AtomicUsize::new(0),
            burst_ends: AtomicUsize::new(BURST_MAX),
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
        self.is_used_up() || self.is_burst_over()
    }

    #[inline]
    fn is_used_up(&self) -> bool {
        self.total.load(Ordering::Relaxed) >= self.max && self.are_responses_many()
    }

    #[inline]
    fn is_burst_over(&self) -> bool {
        self.responses.load(Ordering::Relaxed) >= self.burst_ends.load(Ordering::Relaxed)
    }

    /// Returns whether even the reserve is used up.
    #[cold]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.total.load(Ordering::Relaxed) >= self.max + self.max / RESERVE && self.are_responses_many()
    }

    #[cold]
    fn are_responses_many(&self) -> bool {
        self.responses.load(Ordering::Relaxed) >= (self.max / RESPONSES_MIN).max(1)
    }

    /// Returns whether anyone waits for room.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.has_waiters.load(Ordering::Relaxed)
    }

    /// Replaces the charge `charged` by that of `buffered`. Returns a waker to wake, outside of any lock.
    #[cold]
    pub(crate) fn charge(&self, charged: &mut BufferedBytes, buffered: BufferedBytes) -> Option<Waker> {
        let before = std::mem::replace(charged, buffered.charged());
        let (more, less) = (*charged - before, before - *charged);
        if more.responses > 0 {
            self.responses.fetch_add(more.responses, Ordering::SeqCst);
        } else if less.responses > 0 {
            let responses = self.responses.fetch_sub(less.responses, Ordering::SeqCst) - less.responses;
            self.burst_ends.fetch_min(responses + BURST_MAX, Ordering::SeqCst);
        }
        let woken = self.adjust_total(more.all(), less.all());
        // A driver that polls busily does not wait here, so the next burst starts without a waiter.
        if woken.is_none() && self.is_burst_over() { self.lock().pacer.set() } else { woken }
    }

    /// Releases the charge of a connection that ends. Its responses took their time, so the burst goes on.
    #[cold]
    pub(crate) fn release(&self, charged: &mut BufferedBytes) -> Option<Waker> {
        let less = std::mem::take(charged);
        let lower = |ends: usize| Some(ends.saturating_sub(less.responses));
        let _ = self.burst_ends.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lower);
        self.responses.fetch_sub(less.responses, Ordering::SeqCst);
        self.adjust_total(0, less.all())
    }

    fn adjust_total(&self, more: usize, less: usize) -> Option<Waker> {
        let before = self.total.fetch_add(more, Ordering::SeqCst);
        self.total.fetch_sub(less, Ordering::SeqCst);
        if before < self.max && before + more >= self.max {
            return self.lock().reaper.set();
        }
        if less > 0 && self.has_waiters.load(Ordering::SeqCst) && !self.is_used_up() {
            return self.lock().pacer.set();
        }
        None
    }

    /// Starts the next burst. Returns the first waiter to wake, unless there is no room. It is one at a time. Woken all
    /// at once, they would build their responses before other tasks run, and before the first of them is charged.
    pub(crate) fn start_burst(&self) -> Option<Waker> {
        self.burst_ends.store(self.responses.load(Ordering::SeqCst) + BURST_MAX, Ordering::SeqCst);
        if !self.has_waiters.load(Ordering::SeqCst) || self.is_full() {
            return None;
        }
        let mut waiters = self.lock();
        let woken = waiters.for_room.pop_front();
        waiters.served += u64::from(woken.is_some());
        self.has_waiters.store(!waiters.for_room.is_empty(), Ordering::SeqCst);
        woken
    }

    /// Queues `waker` unless `turn` is queued already. Returns false if there is room.
    #[cold]
    pub(crate) fn wait(&self, turn: &mut Turn, waker: &Waker) -> bool {
        let queued_waker = waker.clone();
        let mut waiters = self.lock();
        self.has_waiters.store(true, Ordering::SeqCst);
        // Pairs with `charge`, which gives room back and then loads the flag: one of the two sees the other's write.
        fence(Ordering::SeqCst);
        if !self.is_full() {
            self.has_waiters.store(!waiters.for_room.is_empty(), Ordering::SeqCst);
            return false;
        }
        let queued_waker = match turn.0 {
            Some(number) if number >= waiters.served => Some(queued_waker),
            _ => {
                turn.0 = Some(waiters.served + waiters.for_room.len() as u64);
                waiters.for_room.push_back(queued_waker);
                None
            }
        };
        let woken = if self.is_used_up() { waiters.reaper.set() } else { waiters.pacer.set() };
        drop(waiters);
        drop(queued_waker);
        if let Some(woken) = woken {
            woken.wake();
        }
        true
    }

    /// Waits until connections have to be checked for room.
    pub(crate) fn poll_pressed(&self, cx: &Context<'_>) -> Poll<()> {
        self.poll_signal(cx, |waiters| &mut waiters.reaper)
    }

    /// Waits until a burst is over, or waiters may be woken. The next burst has to be [started](Self::start_burst)
    /// after the runtime's poll of its sockets.
    pub(crate) fn poll_paced(&self, cx: &Context<'_>) -> Poll<()> {
        self.poll_signal(cx, |waiters| &mut waiters.pacer)
    }

    fn poll_signal(&self, cx: &Context<'_>, signal: fn(&mut Waiters) -> &mut Signal) -> Poll<()> {
        // Wakers are cloned and dropped outside of the lock.
        let mut waker = Some(cx.waker().clone());
        if signal(&mut self.lock()).take(&mut waker) { Poll::Ready(()) } else { Poll::Pending }
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: usize = 1 << 20;

    fn responses(bytes: usize) -> BufferedBytes {
        BufferedBytes { responses: bytes, ..BufferedBytes::default() }
    }

    #[test]
    fn less_than_a_step_is_not_charged() {
        let budget = MemoryBudget::new(MEBIBYTE);
        let mut charged = BufferedBytes::default();
        assert!(!responses(STEP - 1).differs(charged) && responses(STEP).differs(charged));
        budget.charge(&mut charged, responses(STEP + 1));
        assert_eq!((charged, budget.total.load(Ordering::Relaxed)), (responses(STEP), STEP));
        budget.charge(&mut charged, BufferedBytes::default());
        assert_eq!((charged, budget.total.load(Ordering::Relaxed)), (BufferedBytes::default(), 0));
    }

    #[test]
    fn budget_is_full_of_responses_never_of_requests() {
        let check = |buffered: BufferedBytes, is_full: bool, is_exhausted: bool| {
            let budget = MemoryBudget::new(MEBIBYTE);
            budget.charge(&mut BufferedBytes::default(), buffered);
            assert_eq!((budget.is_full(), budget.is_exhausted()), (is_full, is_exhausted), "{buffered:?}");
        };
        check(responses(MEBIBYTE - 1), false, false);
        check(responses(MEBIBYTE), true, false);
        check(responses(MEBIBYTE + MEBIBYTE / 8), true, true);
        check(BufferedBytes { requests: 9 * MEBIBYTE, responses: MEBIBYTE / 8 }, false, false);
        check(BufferedBytes { requests: 9 * MEBIBYTE, responses: MEBIBYTE / 4 }, true, true);
    }

    #[test]
    fn waiter_is_woken_once_when_there_is_room() {
        let budget = MemoryBudget::new(MEBIBYTE);
        let (mut charged, mut turn) = (BufferedBytes::default(), Turn::default());
        assert!(!budget.wait(&mut turn, Waker::noop()), "there is room");
        assert!(!budget.is_waited_for());
        budget.charge(&mut charged, responses(2 * MEBIBYTE));
        assert!(budget.wait(&mut turn, Waker::noop()) && budget.wait(&mut turn, Waker::noop()));
        budget.charge(&mut charged, responses(MEBIBYTE));
        assert!(budget.start_burst().is_none(), "it is still full");
        budget.charge(&mut charged, responses(0));
        assert!(budget.start_burst().is_some());
        assert!(!budget.is_waited_for());
        budget.charge(&mut charged, responses(2 * MEBIBYTE));
        assert!(budget.wait(&mut turn, Waker::noop()));
        assert!(budget.is_waited_for(), "it waits again");
    }

    #[test]
    fn waiters_are_woken_one_at_a_time() {
        let budget = MemoryBudget::new(MEBIBYTE);
        let cx = Context::from_waker(Waker::noop());
        let mut charged = BufferedBytes::default();
        let mut turns = [Turn::default(); 2];
        budget.charge(&mut charged, responses(2 * MEBIBYTE));
        assert!(turns.iter_mut().all(|turn| budget.wait(turn, Waker::noop())));
        assert!(budget.poll_paced(&cx).is_pending());
        budget.charge(&mut charged, responses(0));
        assert!(budget.poll_paced(&cx).is_ready());
        assert_eq!([(); 3].map(|()| budget.start_burst().is_some()), [true, true, false]);
        assert!(!budget.is_waited_for());
    }

    #[test]
    fn burst_of_responses_ends_until_sockets_are_polled() {
        let budget = MemoryBudget::new(100 * MEBIBYTE);
        let cx = Context::from_waker(Waker::noop());
        let (mut charged, mut turn) = (BufferedBytes::default(), Turn::default());
        budget.charge(&mut charged, responses(50 * MEBIBYTE));
        assert!(budget.poll_paced(&cx).is_ready());
        budget.start_burst();
        budget.charge(&mut charged, responses(50 * MEBIBYTE + BURST_MAX - STEP));
        assert!(!budget.is_full() && budget.poll_paced(&cx).is_pending());
        budget.charge(&mut charged, responses(50 * MEBIBYTE + BURST_MAX));
        assert!(budget.is_full() && !budget.is_exhausted());
        assert!(budget.poll_paced(&cx).is_ready(), "also without a waiter");
        assert!(budget.wait(&mut turn, Waker::noop()) && budget.poll_paced(&cx).is_ready());
        assert!(budget.start_burst().is_some());
        assert!(!budget.is_full());
        budget.charge(&mut charged, responses(10 * MEBIBYTE));
        budget.charge(&mut charged, responses(10 * MEBIBYTE + BURST_MAX));
        assert!(budget.is_full(), "it grew from the least");
    }

    #[test]
    fn connections_that_end_do_not_lengthen_the_burst() {
        let budget = MemoryBudget::new(100 * MEBIBYTE);
        let [mut first, mut second, mut third] = [BufferedBytes::default(); 3];
        budget.charge(&mut first, responses(20 * MEBIBYTE));
        budget.start_burst();
        budget.charge(&mut second, responses(BURST_MAX - STEP));
        budget.release(&mut first);
        assert!(!budget.is_full());
        budget.charge(&mut third, responses(STEP));
        assert!(budget.is_full());
        budget.release(&mut second);
        budget.release(&mut third);
        assert!(budget.is_full(), "what they held took its time");
        budget.start_burst();
        assert!(!budget.is_full());
    }

    #[test]
    fn reaper_is_called_when_budget_is_reached_or_somebody_waits() {
        let budget = MemoryBudget::new(MEBIBYTE);
        let cx = Context::from_waker(Waker::noop());
        let (mut charged, mut turn) = (BufferedBytes::default(), Turn::default());
        assert!(budget.poll_pressed(&cx).is_pending());
        budget.charge(&mut charged, responses(MEBIBYTE));
        assert!(budget.poll_pressed(&cx).is_ready() && budget.poll_pressed(&cx).is_pending());
        assert!(budget.wait(&mut turn, Waker::noop()));
        assert!(budget.poll_pressed(&cx).is_ready());
    }
}
