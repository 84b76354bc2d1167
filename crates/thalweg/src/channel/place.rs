//! A call's place among those that wait for a free stream.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::Status;

use super::lane_set::{LaneSet, Room};
use crate::connection::Connection;

/// A call that may have to wait until some lane of its channel has a stream for it. Dropped, it leaves the line.
pub(super) struct Place<'a> {
    lanes: &'a LaneSet,
    /// Once it waits: since when, in the order of those who do.
    ticket: Option<u64>,
}

impl<'a> Place<'a> {
    pub(super) fn new(lanes: &'a LaneSet) -> Self {
        Self { lanes, ticket: None }
    }

    /// It has waited: those who stand in line now are behind it.
    #[inline]
    pub(super) fn is_in_line(&self) -> bool {
        self.ticket.is_some()
    }

    /// Waits for a connection on which a stream may be free. In between others may take it: then it waits again, where it was.
    ///
    /// # Errors
    /// UNAVAILABLE when there is no connection any more, and none can be made.
    pub(super) async fn wait(&mut self, wait_for_ready: bool) -> Result<Arc<Connection>, Status> {
        match poll_fn(|cx| self.poll(cx)).await {
            Some(connection) => Ok(connection),
            None => self.lanes.connected(wait_for_ready).await,
        }
    }

    /// `None` when there is no connection to wait for.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Connection>>> {
        // First it takes its place, then it looks: whoever has room from now on finds it in the line.
        let is_new = self.ticket.is_none();
        self.lanes.line().wait(&mut self.ticket, cx.waker());
        if is_new && self.lanes.line().len() == 1 {
            self.lanes.note_waiting();
        }
        match self.lanes.with_room() {
            Room::Some(connection) => Poll::Ready(Some(connection)),
            Room::NoLane => Poll::Ready(None),
            Room::None => Poll::Pending,
        }
    }

    /// It has its stream. Call without any connection's lock.
    #[inline]
    pub(super) fn served(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.leave_served(ticket);
        }
    }

    #[cold]
    fn leave_served(&self, ticket: u64) {
        let line = self.lanes.line();
        line.leave(ticket);
        // What woke this call may have left room for more.
        if !line.is_empty() && matches!(self.lanes.with_room(), Room::Some(_)) {
            line.wake_next();
        }
    }
}

impl Drop for Place<'_> {
    /// A wake-up that was meant for this call goes to the next.
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && self.lanes.line().leave(ticket)
        {
            self.lanes.line().wake_next();
        }
    }
}
