//! What a server's connection holds for its peer, in one sum. It is charged to the server's
//! [`MemoryBudget`], and says whether calls have to wait before they make a response.
//!
//! Whatever grows says so ([`State::note_growth`], [`State::note_response`]); what is held is then counted where it
//! lies: now and then, and when the driver goes to sleep, if a [`STEP`] may have come.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::memory_account::MemoryAccount;
use super::shared::Connection;
use super::slot::{Slot, SlotKey};
use super::state::State;
use crate::memory_budget::{Held, MemoryBudget, STEP, Turn};

/// Responses up to so many bytes are small: a connection that has had no others may go on when the server's budget is
/// used up, as far as its reserve goes.
const SMALL_RESPONSE_MAX: usize = 64 << 10;

/// Requests are counted again when so many bytes may have come for each call, so that many calls cost no more.
const COUNTED_PER_CALL: usize = 2 << 10;

/// Where calls of a connection wait for room.
pub(super) enum Room {
    /// There is some.
    Some,
    /// Some of the connection's responses have to leave.
    OfConnection,
    /// The server's budget is used up.
    OfServer(Arc<MemoryBudget>),
}

impl State {
    /// What is held of requests may have grown by `len` bytes.
    #[inline]
    pub(crate) fn note_growth(&mut self, len: usize) {
        self.memory.requests_uncounted += len;
        // Counting them is a look at each call. When the driver goes to sleep, most have been answered.
        if self.memory.requests_uncounted >= STEP.max(COUNTED_PER_CALL * self.slots.len()) {
            self.count_memory();
        }
    }

    /// A response of `len` bytes, or a part of one, was queued that is not small.
    pub(crate) fn note_response(&mut self, len: usize) {
        self.memory.largest_response = self.memory.largest_response.max(len);
        self.memory.responses_uncounted += len;
        if self.memory.responses_uncounted >= SMALL_RESPONSE_MAX {
            self.count_responses();
        }
    }

    /// Counts what is held, and charges it.
    #[cold]
    pub(crate) fn count_memory(&mut self) {
        self.memory.requests_uncounted = 0;
        self.memory.responses_uncounted = 0;
        if self.memory.budget.is_some() {
            self.charge(self.held());
        }
    }

    /// Counts what is held of responses, which is known without a look at each of them, and charges it.
    pub(crate) fn count_responses(&mut self) {
        self.memory.responses_uncounted = 0;
        if self.memory.budget.is_some() {
            self.charge(Held { responses: self.held_responses(), ..self.memory.charged });
        }
    }

    /// The driver goes to sleep.
    #[inline]
    pub(super) fn settle_memory(&mut self) {
        let MemoryAccount { charged, requests_uncounted, responses_uncounted, .. } = self.memory;
        if charged.requests > 0 || requests_uncounted >= STEP {
            self.count_memory();
        } else if charged.responses > 0 || responses_uncounted >= STEP {
            self.count_responses();
        }
    }

    fn charge(&mut self, held: Held) {
        let MemoryAccount { budget: Some(budget), charged, .. } = &mut self.memory else { return };
        if !held.differs(*charged) {
            return;
        }
        let wakers = budget.charge(charged, held);
        if !wakers.is_empty() {
            for waker in wakers {
                self.deferred.wake(Some(waker));
            }
        }
    }

    /// What is held for the peer.
    pub(crate) fn held(&self) -> Held {
        let gathered = self.foreign.as_ref().map_or(0, |foreign| foreign.held);
        Held {
            requests: self.http2.held() + self.held_by_calls() + gathered,
            responses: self.held_responses(),
        }
    }

    fn held_responses(&self) -> usize {
        let unsent = self.foreign.as_ref().map_or(0, |foreign| foreign.unsent);
        self.http2.unsent_memory() + self.memory.writing + unsent
    }

    /// The connection is over: nothing is held any more.
    pub(crate) fn release_memory(&mut self) {
        self.charge(Held::default());
        self.memory.budget = None;
    }

    /// What the driver has written, and what the socket did not take.
    #[inline]
    pub(super) fn note_written(&mut self, written: usize, writing: usize) {
        self.memory.written += written as u64;
        if writing != self.memory.writing {
            self.memory.writing = writing;
            self.count_responses();
        }
    }

    /// Another protocol has `unsent` bytes of responses that its client has not taken, and has sent `sent` more.
    pub(crate) fn note_foreign(&mut self, unsent: usize, sent: usize) {
        self.memory.largest_response = self.memory.largest_response.max(unsent);
        self.memory.written += sent as u64;
        let Some(foreign) = &mut self.foreign else { return };
        foreign.unsent = unsent;
        if unsent <= SMALL_RESPONSE_MAX {
            self.deferred.wake(foreign.admission.take());
        }
        self.count_responses();
    }

    /// Whether no call may make a response before some of what is held has left.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.http2.is_full() || self.lacks_room()
    }

    /// Whether the server has no room for a response of this connection.
    #[inline]
    pub(crate) fn lacks_room(&self) -> bool {
        self.memory.budget.as_ref().is_some_and(|budget| budget.is_full() && self.lacks_reserve(budget))
    }

    #[cold]
    fn lacks_reserve(&self, budget: &MemoryBudget) -> bool {
        let under_way = self.foreign.as_ref().map_or(self.slots.len(), |foreign| foreign.requests) as u64;
        let is_small = self.memory.largest_response <= SMALL_RESPONSE_MAX
            && self.memory.charged.responses == 0
            && self.generation > under_way;
        !is_small || budget.is_exhausted()
    }

    /// Whether the call of this slot may go on: what its handler does next may make a response, or another part of one.
    ///
    /// Where the connection alone is full, a stream of which nothing waits goes on up to twice that, and [one of
    /// them](Self::admit_beyond) beyond it: its reader may be the one that the others of the connection wait for.
    #[inline]
    pub(crate) fn may_go_on(&mut self, key: SlotKey) -> bool {
        !self.is_full() || self.may_go_on_beyond(key)
    }

    #[cold]
    fn may_go_on_beyond(&mut self, key: SlotKey) -> bool {
        let is_far_beyond = self.http2.queued_memory() > self.http2.held_max().saturating_mul(2);
        let Some(slot) = self.slot(key) else { return false };
        let Some(call) = slot.server_ref() else { return false };
        let may_exceed = call.admission.may_exceed || (call.head_sent && !is_far_beyond);
        let stream = slot.stream;
        may_exceed && self.http2.queued(stream) == 0 && !self.lacks_room()
    }

    /// Has the call's task be woken when there is room.
    #[cold]
    pub(crate) fn wait_for_room(&mut self, key: SlotKey) {
        let Some(call) = self.slot(key).and_then(Slot::server) else { return };
        if std::mem::replace(&mut call.admission.waits, true) {
            return;
        }
        self.memory.waiting.push_back(key);
        // It waits for the server's budget, too.
        self.notify_driver();
    }

    /// Lets the call go on that has waited for the longest time, if there is room.
    #[cold]
    pub(crate) fn admit_next(&mut self) {
        while self.memory.has_waiting() && !self.is_full() {
            let Some(key) = self.memory.waiting.pop_front() else { return };
            if self.let_go_on(key) {
                return;
            }
        }
    }

    /// Whether the call was there to be woken.
    fn let_go_on(&mut self, key: SlotKey) -> bool {
        let Some(call) = self.slot(key).and_then(Slot::server) else { return false };
        call.admission.waits = false;
        let task = call.task.take();
        self.deferred.wake(task);
        true
    }

    /// The connection is full, and of streams that wait nothing may be queued any more: those may go on.
    #[cold]
    fn admit_beyond_full(&mut self) {
        for _ in 0..self.memory.waiting.len() {
            let Some(key) = self.memory.waiting.pop_front() else { return };
            if self.may_go_on_beyond(key) {
                self.let_go_on(key);
            } else if self.slot(key).is_some() {
                self.memory.waiting.push_back(key);
            }
        }
    }

    /// The connection was full for a while, and nothing of what it holds has left: one more call may go on, of a stream
    /// of which nothing waits. The peer may need its response before it reads the others, and streams are to be
    /// independent of each other.
    #[cold]
    pub(crate) fn admit_beyond(&mut self) {
        if self.lacks_room() {
            return;
        }
        for at in 0..self.memory.waiting.len() {
            let key = self.memory.waiting[at];
            let Some(stream) = self.slot(key).map(|slot| slot.stream) else { continue };
            if self.http2.queued(stream) == 0
                && let Some(call) = self.slot(key).and_then(Slot::server)
            {
                call.admission.may_exceed = true;
                self.memory.waiting.remove(at);
                self.let_go_on(key);
                return;
            }
        }
        self.memory.may_exceed = true;
        self.notify_driver();
    }

    /// Whether calls that are ready to run have to be postponed.
    pub(crate) fn postpones(&mut self) -> bool {
        self.is_full() && !std::mem::take(&mut self.memory.may_exceed)
    }

    /// Its calls go on, or wait for something else than the server's budget: so may those of other connections.
    #[cold]
    pub(super) fn pass_on(&mut self, turn: &mut Turn) {
        let Some(budget) = &self.memory.budget else { return };
        budget.pass_on(turn).into_iter().for_each(|waker| self.deferred.wake(Some(waker)));
    }

    /// For a driver that would sleep while calls wait for room.
    #[cold]
    pub(super) fn room(&mut self) -> Room {
        if self.http2.is_closed() {
            return Room::OfConnection;
        }
        if self.lacks_room() {
            return self.memory.budget.clone().map_or(Room::Some, Room::OfServer);
        }
        if self.http2.is_full() {
            self.admit_beyond_full();
            return if self.memory.may_exceed { Room::Some } else { Room::OfConnection };
        }
        self.admit_next();
        Room::Some
    }
}

impl Connection {
    /// For a connection that another protocol has: ready while no more than `unsent_max` bytes wait for its client, and
    /// the server has room.
    pub(crate) fn poll_admission(&self, turn: &mut Turn, unsent_max: usize, cx: &Context<'_>) -> Poll<()> {
        let state = self.lock();
        let is_held_up = state.foreign.as_ref().is_some_and(|foreign| foreign.unsent > unsent_max);
        if !is_held_up && !state.lacks_room() {
            let budget = turn.waits().then(|| state.memory.budget.clone()).flatten();
            drop(state);
            if let Some(budget) = budget {
                budget.pass_on(turn).into_iter().for_each(Waker::wake);
            }
            return Poll::Ready(());
        }
        drop(state);
        let waker = cx.waker().clone();
        let mut state = self.lock();
        if let Some(foreign) = &mut state.foreign
            && foreign.unsent > unsent_max
        {
            let before = foreign.admission.replace(waker);
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        let Some(budget) = state.memory.budget.clone() else { return Poll::Ready(()) };
        drop(state);
        if budget.wait(turn, &waker) { Poll::Pending } else { Poll::Ready(()) }
    }
}
