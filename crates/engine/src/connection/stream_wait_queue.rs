//! Calls that wait for a free stream on any connection of their channel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The calls of a channel that wait for a free stream, in order of arrival.
///
/// A woken call looks for a connection with a free stream ([`StreamAdmission::may_have_free_stream`]), opens its
/// stream, and wakes the next call if there is another stream. So a burst of free streams is used up without waking
/// every call for each one. No free stream is lost: a connection opens its admission *before* it wakes the first call
/// in the queue, and a call checks the admissions *after* it has joined.
///
/// A woken call stays in the queue until it has its stream. Calls that come meanwhile find the queue occupied and join
/// it, and only calls whose turn it is look for a stream. So callers that make one call after another do not overtake
/// the others. A woken call whose task does not poll it would block the rest: [`drop_late`](Self::drop_late) ends that.
#[derive(Debug, Default)]
pub(crate) struct StreamWaitQueue {
    /// Number of calls in the queue, readable without the lock.
    len: AtomicUsize,
    waiting: Mutex<Waiting>,
    /// Whether a task calls [`drop_late`](Self::drop_late).
    is_watched: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    next_ticket: u64,
    /// Sorted by ticket.
    calls: VecDeque<WaitingCall>,
}

#[derive(Debug)]
struct WaitingCall {
    ticket: u64,
    state: CallState,
}

#[derive(Debug)]
enum CallState {
    Waiting(Waker),
    /// Woken, but not polled since.
    Woken,
    /// It was already woken the last time that late calls were looked for.
    Late,
}

impl CallState {
    /// Returns the waker of a waiting call, which counts as woken from now on.
    fn wake(&mut self) -> Option<Waker> {
        match std::mem::replace(self, Self::Woken) {
            Self::Waiting(waker) => Some(waker),
            woken => {
                *self = woken;
                None
            }
        }
    }
}

impl StreamWaitQueue {
    /// Joins the queue: at the position of `ticket`, if the call was woken before and found no stream, or else at the
    /// end. Returns whether it is the call's turn: it was woken, or no call is before it.
    pub(crate) fn wait(&self, ticket: &mut Option<u64>, waker: &Waker) -> bool {
        // The new waker is cloned and the old one dropped outside the lock.
        let state = CallState::Waiting(waker.clone());
        let is_new = ticket.is_none();
        let mut waiting = self.waiting();
        let ticket = *ticket.get_or_insert_with(|| {
            waiting.next_ticket += 1;
            waiting.next_ticket
        });
        let (index, former) = match waiting.find(ticket) {
            Ok(index) => (index, Some(std::mem::replace(&mut waiting.calls[index].state, state))),
            Err(index) => {
                waiting.calls.insert(index, WaitingCall { ticket, state });
                (index, None)
            }
        };
        self.note_len(&waiting);
        drop(waiting);
        let was_woken = former.map_or(!is_new, |state| !matches!(state, CallState::Waiting(_)));
        index == 0 || was_woken
    }

    /// Leaves the queue. Returns whether it was the call's turn, which passes to the next one.
    pub(crate) fn leave(&self, ticket: u64) -> bool {
        let mut waiting = self.waiting();
        let found = waiting.find(ticket).map(|index| (index, waiting.calls.remove(index)));
        self.note_len(&waiting);
        drop(waiting);
        match found {
            Ok((index, Some(call))) => index == 0 || !matches!(call.state, CallState::Waiting(_)),
            Ok((_, None)) | Err(_) => true,
        }
    }

    /// Returns the waker of the first call that was not woken yet.
    pub(crate) fn next(&self) -> Option<Waker> {
        if self.is_empty() {
            None
        } else {
            self.waiting().calls.iter_mut().find_map(|call| call.state.wake())
        }
    }

    pub(crate) fn wake_next(&self) {
        if let Some(waker) = self.next() {
            waker.wake();
        }
    }

    /// Wakes all calls, and empties the queue. Calls that join again keep their positions.
    pub(crate) fn wake_all(&self) {
        let mut waiting = self.waiting();
        let woken = std::mem::take(&mut waiting.calls);
        self.note_len(&waiting);
        drop(waiting);
        for mut call in woken {
            if let Some(waker) = call.state.wake() {
                waker.wake();
            }
        }
    }

    /// Removes the calls that were woken before the last call of this method and were not polled since, and wakes as
    /// many others. They keep their positions if they join again.
    pub(crate) fn drop_late(&self) {
        let mut waiting = self.waiting();
        let len = waiting.calls.len();
        waiting.calls.retain_mut(|call| match call.state {
            CallState::Waiting(_) => true,
            CallState::Woken => {
                call.state = CallState::Late;
                true
            }
            CallState::Late => false,
        });
        let dropped = len - waiting.calls.len();
        self.note_len(&waiting);
        drop(waiting);
        for _ in 0..dropped {
            self.wake_next();
        }
    }

    /// Returns whether no task watches the queue for late calls. The caller starts one, and calls
    /// [`end_watch`](Self::end_watch) at its end.
    pub(crate) fn begin_watch(&self) -> bool {
        !self.is_watched.load(Ordering::Relaxed) && !self.is_watched.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn end_watch(&self) {
        self.is_watched.store(false, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_len(&self, waiting: &Waiting) {
        self.len.store(waiting.calls.len(), Ordering::SeqCst);
    }
}

impl Waiting {
    fn find(&self, ticket: u64) -> Result<usize, usize> {
        self.calls.binary_search_by_key(&ticket, |call| call.ticket)
    }
}

/// Admission to a client's connection, checked without its lock.
#[derive(Debug)]
pub(crate) struct StreamAdmission {
    queue: Arc<StreamWaitQueue>,
    may_have_free_stream: AtomicBool,
}

impl StreamAdmission {
    pub(crate) fn new(queue: Arc<StreamWaitQueue>) -> Self {
        Self { queue, may_have_free_stream: AtomicBool::new(true) }
    }

    #[inline]
    pub(crate) fn queue(&self) -> &StreamWaitQueue {
        &self.queue
    }

    /// Returns whether a stream may be free. If not, [`admit`](Self::admit) is called when one is.
    pub(crate) fn may_have_free_stream(&self) -> bool {
        self.may_have_free_stream.load(Ordering::SeqCst)
    }

    /// Notes that a stream may be free, and returns the waker of the first waiting call.
    pub(crate) fn admit(&self) -> Option<Waker> {
        self.may_have_free_stream.store(true, Ordering::SeqCst);
        self.queue.next()
    }

    /// Notes that no stream is free. The protocol will report the next free one.
    pub(crate) fn close(&self) {
        self.may_have_free_stream.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Queues five calls, runs `happens`, and checks how often each call was woken.
    #[track_caller]
    fn check(happens: impl Fn(&StreamWaitQueue, &mut [Option<u64>], &[Waker]), expected: [u32; 5]) {
        let queue = StreamWaitQueue::default();
        let woken: [Arc<Woken>; 5] = Default::default();
        let wakers = woken.clone().map(Waker::from);
        let mut tickets = [None; 5];
        for (ticket, waker) in tickets.iter_mut().zip(&wakers) {
            queue.wait(ticket, waker);
        }
        assert_eq!(queue.len(), 5);
        happens(&queue, &mut tickets, &wakers);
        assert_eq!(woken.map(|woken| woken.0.load(Ordering::SeqCst)), expected);
    }

    #[test]
    fn waiting_calls_are_woken_in_order() {
        check(
            |queue, _, _| {
                queue.wake_next();
                queue.wake_next();
                assert_eq!(queue.len(), 5, "they stay until they leave");
            },
            [1, 1, 0, 0, 0],
        );
        check(|queue, _, _| queue.wake_all(), [1; 5]);
        check(
            |queue, tickets, wakers| {
                // The first call is woken, finds no stream, and waits again before all others.
                queue.wake_next();
                assert!(queue.wait(&mut tickets[0], &wakers[0]), "it was woken");
                queue.wake_next();
                queue.wake_next();
            },
            [2, 1, 0, 0, 0],
        );
        check(
            |queue, tickets, _| {
                assert!(!queue.leave(tickets[1].expect("it waits")));
                queue.wake_next();
                assert!(queue.leave(tickets[0].expect("it waited")), "it was woken, and must pass that on");
                queue.wake_next();
            },
            [1, 0, 1, 0, 0],
        );
    }

    #[test]
    fn only_the_first_and_woken_calls_have_a_turn() {
        check(
            |queue, tickets, wakers| {
                let is_turn =
                    |at: usize, tickets: &mut [Option<u64>]| queue.wait(&mut tickets[at], &wakers[at]);
                assert!(is_turn(0, tickets) && !is_turn(1, tickets));
                queue.wake_next();
                queue.wake_next();
                assert!(!is_turn(2, tickets) && is_turn(1, tickets) && !is_turn(1, tickets));
                let mut late = None;
                assert!(!queue.wait(&mut late, Waker::noop()), "a new call is the last");
                assert!(queue.leave(tickets[0].expect("it waited")) && is_turn(1, tickets));
                assert!(queue.leave(tickets[1].expect("it waited")), "the first passes its turn on");
            },
            [1, 1, 0, 0, 0],
        );
    }

    #[test]
    fn woken_call_that_is_not_polled_is_passed_over() {
        check(
            |queue, tickets, wakers| {
                queue.wake_next();
                queue.drop_late();
                assert_eq!(queue.len(), 5);
                queue.drop_late();
                assert_eq!(queue.len(), 4);
                assert!(queue.wait(&mut tickets[0], &wakers[0]), "it was woken");
                assert_eq!(queue.len(), 5);
                assert!(queue.leave(tickets[0].expect("it waits")));
            },
            [1, 1, 0, 0, 0],
        );
    }

    #[test]
    fn stream_admission_reports_free_streams_and_wakes_first_waiter() {
        let queue = Arc::new(StreamWaitQueue::default());
        let stream_admission = StreamAdmission::new(Arc::clone(&queue));
        assert!(stream_admission.may_have_free_stream() && stream_admission.admit().is_none());
        stream_admission.close();
        let mut ticket = None;
        assert!(queue.wait(&mut ticket, Waker::noop()), "no call is before it");
        assert!(!stream_admission.may_have_free_stream());
        assert!(stream_admission.admit().is_some() && stream_admission.may_have_free_stream());
        assert!(stream_admission.admit().is_none(), "it was woken");
        assert!(queue.leave(ticket.expect("it waits")) && queue.is_empty());
    }
}
