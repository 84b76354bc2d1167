//! Where a call stands among those that wait for a free stream.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::set::{FreeStream, LaneSet};
use super::ticker::Tended;
use crate::connection::Connection;
use crate::status::Status;

/// A call that may have to wait until some lane of its channel has a stream for it. Dropped, it leaves the queue.
pub(crate) struct WaitTicket<'a> {
    lanes: &'a LaneSet,
    /// Once it waits: since when, in the order of those who do.
    ticket: Option<u64>,
}

impl<'a> WaitTicket<'a> {
    pub(crate) fn new(lanes: &'a LaneSet) -> Self {
        Self { lanes, ticket: None }
    }

    /// It has waited: those who are in the queue now are behind it.
    #[inline]
    pub(crate) fn has_waited(&self) -> bool {
        self.ticket.is_some()
    }

    /// Waits for a connection on which a stream may be free. In between others may take it: then it waits again, where
    /// it was.
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
        // First it joins, then it looks: a connection that gets a free stream from now on finds it in the queue.
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

    /// It has its stream. Call without any connection's lock.
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
        // What woke this call may have left another stream free.
        if !queue.is_empty() && matches!(self.lanes.with_free_stream(), FreeStream::MaybeOn(_)) {
            queue.wake_next();
        }
    }
}

impl Drop for WaitTicket<'_> {
    /// A wake-up that was meant for this call goes to the next.
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && self.lanes.queue().leave(ticket)
        {
            self.lanes.queue().wake_next();
        }
    }
}
