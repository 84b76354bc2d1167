//! Calls that wait for a free stream, on whichever connection of their channel that comes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The line of a channel, in the order of the calls' coming.
///
/// Who is woken looks for a connection with room ([`Gate::has_room`]) and, having opened its stream, wakes the next if there
/// is more: a burst of free streams is used up without waking everyone for each. No room is forgotten: a connection that gets some says
/// so at its gate *before* it wakes the first in line, and who joins the line looks at the gates *after* it has joined.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// How many wait, readable without the lock.
    len: AtomicUsize,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    next_ticket: u64,
    /// Sorted by ticket.
    waiting: VecDeque<(u64, Waker)>,
}

impl Line {
    /// Takes a place: the one that `ticket` names, also after a wake-up in vain, or the last.
    pub(crate) fn wait(&self, ticket: &mut Option<u64>, waker: &Waker) {
        let mut places = self.places();
        let number = *ticket.get_or_insert_with(|| {
            places.next_ticket += 1;
            places.next_ticket
        });
        match places.find(number) {
            Ok(place) => places.waiting[place].1.clone_from(waker),
            Err(place) => places.waiting.insert(place, (number, waker.clone())),
        }
        self.note_len(&places);
    }

    /// Gives the place up; whether it had already been woken.
    pub(crate) fn leave(&self, ticket: u64) -> bool {
        let mut places = self.places();
        let found = places.find(ticket).map(|place| places.waiting.remove(place));
        self.note_len(&places);
        found.is_err()
    }

    /// The first in line, who leaves it for now.
    pub(crate) fn next(&self) -> Option<Waker> {
        if self.is_empty() {
            return None;
        }
        let mut places = self.places();
        let next = places.waiting.pop_front();
        self.note_len(&places);
        next.map(|(_, waker)| waker)
    }

    pub(crate) fn wake_next(&self) {
        if let Some(waker) = self.next() {
            waker.wake();
        }
    }

    pub(crate) fn wake_all(&self) {
        let mut places = self.places();
        let woken = std::mem::take(&mut places.waiting);
        self.note_len(&places);
        drop(places);
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

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_len(&self, places: &Places) {
        self.len.store(places.waiting.len(), Ordering::SeqCst);
    }
}

impl Places {
    fn find(&self, ticket: u64) -> Result<usize, usize> {
        self.waiting.binary_search_by_key(&ticket, |(other, _)| *other)
    }
}

/// Where calls come in to a client's connection, seen without its lock.
#[derive(Debug)]
pub(crate) struct Gate {
    line: Arc<Line>,
    has_room: AtomicBool,
}

impl Gate {
    pub(crate) fn new(line: Arc<Line>) -> Self {
        Self { line, has_room: AtomicBool::new(true) }
    }

    #[inline]
    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    /// Whether a stream may be free. If not, [`admit`](Self::admit) will be called when one is.
    pub(crate) fn has_room(&self) -> bool {
        self.has_room.load(Ordering::SeqCst)
    }

    /// There may be a free stream: whom to wake, if anybody waits.
    pub(crate) fn admit(&self) -> Option<Waker> {
        self.has_room.store(true, Ordering::SeqCst);
        self.line.next()
    }

    /// A call found no stream free, and the protocol was asked to tell of the next.
    pub(crate) fn close(&self) {
        self.has_room.store(false, Ordering::SeqCst);
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

    /// Five who wait, then what happens in the line, then how often each was woken.
    #[track_caller]
    fn check(happens: impl Fn(&Line, &mut [Option<u64>], &[Waker]), expected: [u32; 5]) {
        let line = Line::default();
        let woken: [Arc<Woken>; 5] = Default::default();
        let wakers = woken.clone().map(Waker::from);
        let mut tickets = [None; 5];
        for (ticket, waker) in tickets.iter_mut().zip(&wakers) {
            line.wait(ticket, waker);
        }
        assert_eq!(line.len(), 5);
        happens(&line, &mut tickets, &wakers);
        assert_eq!(woken.map(|woken| woken.0.load(Ordering::SeqCst)), expected);
    }

    #[test]
    fn the_first_comes_first() {
        check(
            |line, _, _| {
                line.wake_next();
                line.wake_next();
                assert_eq!(line.len(), 3);
            },
            [1, 1, 0, 0, 0],
        );
        check(|line, _, _| line.wake_all(), [1; 5]);
        check(
            |line, tickets, wakers| {
                // The first is woken in vain and has its place again, before all the others.
                line.wake_next();
                line.wait(&mut tickets[0], &wakers[0]);
                line.wake_next();
                line.wake_next();
            },
            [2, 1, 0, 0, 0],
        );
        check(
            |line, tickets, _| {
                assert!(!line.leave(tickets[1].expect("it waits")));
                line.wake_next();
                assert!(line.leave(tickets[0].expect("it waited")), "it was woken, and must pass that on");
                line.wake_next();
            },
            [1, 0, 1, 0, 0],
        );
    }

    #[test]
    fn a_gate_tells_of_room_and_wakes_the_first() {
        let line = Arc::new(Line::default());
        let gate = Gate::new(Arc::clone(&line));
        assert!(gate.has_room() && gate.admit().is_none());
        gate.close();
        let mut ticket = None;
        line.wait(&mut ticket, Waker::noop());
        assert!(!gate.has_room());
        assert!(gate.admit().is_some() && gate.has_room() && line.is_empty());
    }
}
