//! The place of a call in the queue for a free stream.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::set::{FreeStream, LaneSet};
use super::ticker::Tended;
use crate::connection::Connection;
use crate::status::Status;

/// A call that may have to wait until a lane of its channel has a free stream. Dropping it leaves the queue.
pub(crate) struct WaitTicket<'a> {
    lanes: &'a LaneSet,
    /// Its number in the queue. `None` until it waits.
    ticket: Option<u64>,
    has_yielded: bool,
}

impl<'a> WaitTicket<'a> {
    pub(crate) fn new(lanes: &'a LaneSet) -> Self {
        Self { lanes, ticket: None, has_yielded: false }
    }

    /// Whether the call has waited: those who are in the queue now are behind it.
    #[inline]
    pub(crate) fn has_waited(&self) -> bool {
        self.ticket.is_some()
    }

    /// Waits for a connection on which a stream may be free. If another call takes that stream first, wait again: the
    /// call keeps its place.
    ///
    /// # Errors
    /// UNAVAILABLE when there is no connection any more, and none can be made.
    pub(crate) async fn wait(&mut self, wait_for_ready: bool) -> Result<Arc<Connection>, Status> {
        match poll_fn(|cx| self.poll(cx)).await {
            Some(connection) => Ok(connection),
            None => self.lanes.connected(wait_for_ready).await,
        }
    }

    /// `None` when there is no connection to wait for.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Connection>>> {
        let queue = self.lanes.queue();
        let is_new = self.ticket.is_none();
        // Woken calls go first. A new call waits one turn of its runtime for them, and no longer: a woken call whose
        // future is not polled would otherwise hold up a channel with free streams.
        if is_new && !self.has_yielded && queue.has_woken() {
            self.has_yielded = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Join, then check: a connection that gets a free stream from now on finds the call in the queue.
        let is_its_turn = queue.wait(&mut self.ticket, cx.waker());
        if is_new && queue.len() == 1 {
            self.lanes.note_waiting();
        }
        match self.lanes.with_free_stream() {
            FreeStream::MaybeOn(connection) if is_its_turn => Poll::Ready(Some(connection)),
            FreeStream::MaybeOn(_) | FreeStream::None => Poll::Pending,
            FreeStream::NoLane => Poll::Ready(None),
        }
    }

    /// Leaves the queue with a stream. Call without any connection's lock.
    #[inline]
    pub(crate) fn served(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.leave(ticket);
        }
    }

    #[cold]
    fn leave(&self, ticket: u64) {
        let queue = self.lanes.queue();
        queue.leave(ticket);
        // The wake-up of this call may have left another stream free, or its lane was the last.
        if !queue.is_empty() && !matches!(self.lanes.with_free_stream(), FreeStream::None) {
            queue.wake_next();
        }
    }
}

impl Drop for WaitTicket<'_> {
    fn drop(&mut self) {
        self.served();
    }
}
