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
#[derive(Debug, Default)]
pub(crate) struct StreamWaitQueue {
    /// Number of waiting calls, readable without the lock.
    len: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next_ticket: u64,
    /// Sorted by ticket.
    calls: VecDeque<(u64, Waker)>,
}

impl StreamWaitQueue {
    /// Joins the queue: at the position of `ticket`, if the call was woken before and found no stream, or else at the
    /// end.
    pub(crate) fn wait(&self, ticket: &mut Option<u64>, waker: &Waker) {
        // The new waker is cloned and the old one dropped outside the lock.
        let mut waker = waker.clone();
        let mut waiting = self.waiting();
        let number = *ticket.get_or_insert_with(|| {
            waiting.next_ticket += 1;
            waiting.next_ticket
        });
        match waiting.find(number) {
            Ok(index) => std::mem::swap(&mut waiting.calls[index].1, &mut waker),
            Err(index) => waiting.calls.insert(index, (number, waker)),
        }
        self.note_len(&waiting);
    }

    /// Leaves the queue. Returns whether the call had already been woken.
    pub(crate) fn leave(&self, ticket: u64) -> bool {
        let mut waiting = self.waiting();
        let found = waiting.find(ticket).map(|index| waiting.calls.remove(index));
        self.note_len(&waiting);
        drop(waiting);
        found.is_err()
    }

    /// Removes the first call from the queue and returns its waker.
    pub(crate) fn next(&self) -> Option<Waker> {
        if self.is_empty() {
            return None;
        }
        let mut waiting = self.waiting();
        let next = waiting.calls.pop_front();
        self.note_len(&waiting);
        drop(waiting);
        next.map(|(_, waker)| waker)
    }

    pub(crate) fn wake_next(&self) {
        if let Some(waker) = self.next() {
            waker.wake();
        }
    }

    pub(crate) fn wake_all(&self) {
        let mut waiting = self.waiting();
        let woken = std::mem::take(&mut waiting.calls);
        self.note_len(&waiting);
        drop(waiting);
        for (_, waker) in woken {
            waker.wake();
        }
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
        self.calls.binary_search_by_key(&ticket, |(other, _)| *other)
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
                assert_eq!(queue.len(), 3);
            },
            [1, 1, 0, 0, 0],
        );
        check(|queue, _, _| queue.wake_all(), [1; 5]);
        check(
            |queue, tickets, wakers| {
                // The first call is woken, finds no stream, and joins again before all others.
                queue.wake_next();
                queue.wait(&mut tickets[0], &wakers[0]);
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
    fn stream_admission_reports_free_streams_and_wakes_first_waiter() {
        let queue = Arc::new(StreamWaitQueue::default());
        let stream_admission = StreamAdmission::new(Arc::clone(&queue));
        assert!(stream_admission.may_have_free_stream() && stream_admission.admit().is_none());
        stream_admission.close();
        let mut ticket = None;
        queue.wait(&mut ticket, Waker::noop());
        assert!(!stream_admission.may_have_free_stream());
        assert!(
            stream_admission.admit().is_some() && stream_admission.may_have_free_stream() && queue.is_empty()
        );
    }
}
