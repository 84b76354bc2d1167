//! The place of a call in the queue for a free stream.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::policy_task::LaneControl;
use super::set::{FreeStream, LaneSet};
use crate::connection::Connection;
use crate::status::Status;

/// A call that may have to wait until a lane of its channel has a free stream. Leaves the queue on drop.
pub(crate) struct WaitTicket<'a> {
    lanes: &'a LaneSet,
    /// Position in the queue, once the call waits.
    ticket: Option<u64>,
}

impl<'a> WaitTicket<'a> {
    pub(crate) fn new(lanes: &'a LaneSet) -> Self {
        Self { lanes, ticket: None }
    }

    /// Returns whether the call has waited, and so precedes the calls in the queue.
    #[inline]
    pub(crate) fn has_waited(&self) -> bool {
        self.ticket.is_some()
    }

    /// Waits for a connection that may have a free stream. If another call takes the stream, call this again: the
    /// position in the queue is kept.
    ///
    /// # Errors
    /// UNAVAILABLE if there is no connection any more, and none can be made.
    pub(crate) async fn wait(&mut self, wait_for_ready: bool) -> Result<Arc<Connection>, Status> {
        match poll_fn(|cx| self.poll(cx)).await {
            Some(connection) => Ok(connection),
            None => self.lanes.connected(wait_for_ready).await,
        }
    }

    /// Returns `None` if there is no connection to wait for.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Connection>>> {
        // Joins before checking, so that a connection that gets a free stream meanwhile finds the call in the queue.
        let is_new = self.ticket.is_none();
        self.lanes.queue().wait(&mut self.ticket, cx.waker());
        if is_new && self.lanes.queue().len() == 1 {
            self.lanes.note_waiting();
        }
        match self.lanes.with_free_stream() {
            FreeStream::MaybeOn(connection) => Poll::Ready(Some(connection)),
            FreeStream::NoLane => Poll::Ready(None),
            FreeStream::None => Poll::Pending,
        }
    }

    /// Leaves the queue: the call has its stream. Must be called without any connection's lock.
    #[inline]
    pub(crate) fn served(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.leave_served(ticket);
        }
    }

    #[cold]
    fn leave_served(&self, ticket: u64) {
        let queue = self.lanes.queue();
        queue.leave(ticket);
        // The event that woke this call may have freed another stream.
        if !queue.is_empty() && matches!(self.lanes.with_free_stream(), FreeStream::MaybeOn(_)) {
            queue.wake_next();
        }
    }
}

impl Drop for WaitTicket<'_> {
    /// Passes on a wake-up that was meant for this call.
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && self.lanes.queue().leave(ticket)
        {
            self.lanes.queue().wake_next();
        }
    }
}
