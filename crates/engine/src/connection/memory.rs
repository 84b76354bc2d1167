//! Memory accounting of a server's connection: one sum, charged to the server's [`MemoryBudget`]. It decides whether a
//! call has to wait before its handler makes a response.
//!
//! Code that buffers bytes reports the growth ([`State::note_growth`], [`State::note_response`]). The connection then
//! recounts its buffers from time to time, and before its driver sleeps if they may have grown by a [`STEP`].

use std::sync::Arc;
use std::task::{Context, Poll};

use super::memory_account::MemoryAccount;
use super::shared::Connection;
use super::slot::{Slot, SlotKey};
use super::state::State;
use crate::memory_budget::{BufferedBytes, MemoryBudget, STEP, Turn};

/// Largest response that counts as small, in bytes. A connection with small responses alone may use the reserve of an
/// exhausted budget.
const SMALL_RESPONSE_MAX: usize = 64 << 10;

/// Growth that triggers a recount of the responses, in bytes. The driver recounts before it sleeps, so no more than
/// this is uncounted on each thread.
const RESPONSES_COUNTED: usize = 256 << 10;

/// Growth per open call that triggers a recount of the requests, in bytes. A recount visits every call, so its cost per
/// byte does not depend on their number.
const COUNTED_PER_CALL: usize = 2 << 10;

/// The budget that calls of a connection wait for.
pub(super) enum Room {
    /// None: there is room.
    Some,
    /// The connection's: some of its responses have to leave first.
    OfConnection,
    /// The server's.
    OfServer(Arc<MemoryBudget>),
}

impl State {
    /// Reports that a request buffers `now` bytes in place of `before`: that of a call, or without a key the request of
    /// an HTTP/1.1 connection.
    pub(crate) fn replace_request_bytes(&mut self, key: Option<SlotKey>, before: usize, now: usize) {
        let Some(key) = key else {
            if let Some(http1) = &mut self.http1 {
                http1.buffered = http1.buffered.saturating_sub(before) + now;
            }
            self.note_growth(before.abs_diff(now));
            return;
        };
        if let Some(call) = self.slot(key).and_then(Slot::server) {
            call.remove_buffered(before);
            call.add_buffered(now);
            self.note_growth(before.abs_diff(now));
        }
    }

    /// Reports that buffered requests may have grown by `len` bytes.
    #[inline]
    pub(crate) fn note_growth(&mut self, len: usize) {
        self.memory.requests_uncounted += len;
        // A recount visits every call. By the time the driver sleeps, most of them have ended.
        if self.memory.requests_uncounted >= STEP.max(COUNTED_PER_CALL * self.slots.len()) {
            self.count_memory();
        }
    }

    /// Reports that `len` bytes of a response were queued.
    pub(crate) fn note_response(&mut self, len: usize) {
        self.memory.largest_response = self.memory.largest_response.max(len);
        self.memory.responses_uncounted += len;
        if self.memory.responses_uncounted >= RESPONSES_COUNTED {
            self.count_responses();
        }
    }

    /// Recounts requests and responses, and charges the budget.
    #[cold]
    pub(crate) fn count_memory(&mut self) {
        self.memory.requests_uncounted = 0;
        self.memory.responses_uncounted = 0;
        if self.memory.budget.is_some() {
            self.charge(self.buffered());
        }
    }

    /// Recounts responses, which does not visit each call, and charges the budget.
    pub(crate) fn count_responses(&mut self) {
        self.memory.responses_uncounted = 0;
        if self.memory.budget.is_some() {
            self.charge(BufferedBytes { responses: self.buffered_responses(), ..self.memory.charged });
        }
    }

    /// Recounts before the driver sleeps, if the buffers may have changed by a [`STEP`].
    #[inline]
    pub(super) fn settle_memory(&mut self) {
        let MemoryAccount { charged, requests_uncounted, responses_uncounted, .. } = self.memory;
        if charged.requests > 0 || requests_uncounted >= STEP {
            self.count_memory();
        } else if charged.responses > 0 || responses_uncounted >= STEP {
            self.count_responses();
        }
    }

    fn charge(&mut self, buffered: BufferedBytes) {
        let MemoryAccount { budget: Some(budget), charged, .. } = &mut self.memory else { return };
        if !buffered.differs(*charged) {
            return;
        }
        // A connection that is closed drops its responses.
        let waker = if self.http2.is_closed() && buffered.charged() == BufferedBytes::default() {
            budget.release(charged)
        } else {
            budget.charge(charged, buffered)
        };
        self.deferred.wake(waker);
    }

    /// Returns the bytes buffered for the peer.
    pub(crate) fn buffered(&self) -> BufferedBytes {
        let gathered = self.http1.as_ref().map_or(0, |http1| http1.buffered);
        BufferedBytes {
            requests: self.http2.buffered_bytes() + self.buffered_by_calls() + gathered,
            responses: self.buffered_responses(),
        }
    }

    /// Returns the bytes of all calls' metadata, and of the requests that handlers have.
    fn buffered_by_calls(&self) -> usize {
        let calls = self.slots.iter().filter_map(|(_, slot)| Some(slot.server_ref()?.buffered as usize));
        calls.sum()
    }

    fn buffered_responses(&self) -> usize {
        let unsent = self.http1.as_ref().map_or(0, |http1| http1.unsent);
        self.http2.unsent_memory() + self.memory.writing + unsent
    }

    /// Returns everything to the budget when the connection has ended.
    pub(crate) fn release_memory(&mut self) {
        if let Some(budget) = self.memory.budget.take() {
            let waker = budget.release(&mut self.memory.charged);
            self.deferred.wake(waker);
        }
    }

    /// Reports how many bytes the driver has written, and how many the socket has not taken.
    #[inline]
    pub(super) fn note_written(&mut self, written: usize, writing: usize) {
        self.memory.written += written as u64;
        if writing != self.memory.writing {
            self.memory.writing = writing;
            self.count_responses();
        }
    }

    /// Reports that an HTTP/1.1 connection buffers `unsent` bytes of responses, and has sent `sent` more.
    pub(crate) fn note_http1_responses(&mut self, unsent: usize, sent: usize) {
        self.memory.largest_response = self.memory.largest_response.max(unsent);
        self.memory.written += sent as u64;
        let Some(http1) = &mut self.http1 else { return };
        http1.unsent = unsent;
        if unsent <= SMALL_RESPONSE_MAX {
            self.deferred.wake(http1.admission.take());
        }
        self.count_responses();
    }

    /// Returns whether responses have to wait until some of those before them have left.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.http2.is_full() || self.lacks_room()
    }

    /// Returns whether the server's budget has no room for a response of this connection.
    #[inline]
    pub(crate) fn lacks_room(&self) -> bool {
        self.memory.budget.as_ref().is_some_and(|budget| budget.is_full() && self.lacks_reserve(budget))
    }

    #[cold]
    fn lacks_reserve(&self, budget: &MemoryBudget) -> bool {
        let under_way = self.http1.as_ref().map_or(self.slots.len(), |http1| http1.requests) as u64;
        let is_small = self.memory.largest_response <= SMALL_RESPONSE_MAX
            && self.memory.charged.responses == 0
            && self.generation > under_way;
        !is_small || budget.is_exhausted()
    }

    /// Returns whether the call's handler may run, which may make a response or another part of one.
    ///
    /// On a full connection, streams with nothing queued may still run: all of them up to twice its budget, and beyond
    /// that those that [`admit_beyond`](Self::admit_beyond) has let through. The peer may read their responses first.
    #[inline]
    pub(crate) fn may_run(&mut self, key: SlotKey) -> bool {
        !self.is_full() || self.may_run_beyond(key)
    }

    #[cold]
    fn may_run_beyond(&mut self, key: SlotKey) -> bool {
        let is_far_beyond = self.http2.queued_memory() > self.http2.buffer_budget().saturating_mul(2);
        let Some(slot) = self.slot(key) else { return false };
        let Some(call) = slot.server_ref() else { return false };
        let may_exceed = call.admission.may_exceed || (call.headers_sent && !is_far_beyond);
        let stream = slot.stream;
        may_exceed && self.http2.queued(stream) == 0 && !self.lacks_room()
    }

    /// Queues the call, so that its task is woken when there is room.
    #[cold]
    pub(crate) fn wait_for_room(&mut self, key: SlotKey) {
        let Some(call) = self.slot(key).and_then(Slot::server) else { return };
        if std::mem::replace(&mut call.admission.waits, true) {
            return;
        }
        self.memory.waiting.push_back(key);
        // The driver waits for the server's budget on behalf of its calls.
        self.notify_driver();
    }

    /// Wakes the call that has waited longest, if there is room.
    #[cold]
    pub(crate) fn admit_next(&mut self) {
        while self.memory.has_waiting() && !self.is_full() {
            let Some(key) = self.memory.waiting.pop_front() else { return };
            if self.wake_waiting(key) {
                return;
            }
        }
    }

    /// Wakes a call that waits. Returns whether it still exists.
    fn wake_waiting(&mut self, key: SlotKey) -> bool {
        let Some(call) = self.slot(key).and_then(Slot::server) else { return false };
        call.admission.waits = false;
        let task = call.task.take();
        self.deferred.wake(task);
        true
    }

    /// Wakes the calls of a full connection whose queued data has left.
    #[cold]
    fn admit_beyond_full(&mut self) {
        for _ in 0..self.memory.waiting.len() {
            let Some(key) = self.memory.waiting.pop_front() else { return };
            if self.may_run_beyond(key) {
                self.wake_waiting(key);
            } else if self.slot(key).is_some() {
                self.memory.waiting.push_back(key);
            }
        }
    }

    /// Lets one more call run on a full connection from which nothing has left for a while. Streams are independent of
    /// each other: the peer may need this response before it reads the others.
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
                self.wake_waiting(key);
                return;
            }
        }
        self.memory.may_exceed = true;
        self.notify_driver();
    }

    /// Returns whether ready calls have to be postponed.
    pub(crate) fn postpones(&mut self) -> bool {
        self.is_full() && !std::mem::take(&mut self.memory.may_exceed)
    }

    /// Returns the budget that calls wait for, when the driver is about to sleep.
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
    /// Waits, on an HTTP/1.1 connection, until at most `unsent_max` bytes are unsent and the server has room.
    pub(crate) fn poll_admission(&self, turn: &mut Turn, unsent_max: usize, cx: &Context<'_>) -> Poll<()> {
        let state = self.lock();
        let has_unsent = state.http1.as_ref().is_some_and(|http1| http1.unsent > unsent_max);
        if !has_unsent && !state.lacks_room() {
            return Poll::Ready(());
        }
        drop(state);
        let waker = cx.waker().clone();
        let mut state = self.lock();
        if let Some(http1) = &mut state.http1
            && http1.unsent > unsent_max
        {
            let before = http1.admission.replace(waker);
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        let Some(budget) = state.memory.budget.clone() else { return Poll::Ready(()) };
        drop(state);
        if budget.wait(turn, &waker) { Poll::Pending } else { Poll::Ready(()) }
    }
}
