//! The place of a call in the queue for a free stream.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;

use super::of_channel::Endpoints;
use crate::connection::{Connection, StreamWaitQueue};
use crate::lanes::FreeStream;
use crate::status::Status;

/// A call that may have to wait until an endpoint of its channel has a free stream. Leaves the queue on drop.
pub(crate) struct WaitTicket<'a> {
    endpoints: &'a Endpoints,
    /// Position in the queue, once the call waits.
    ticket: Option<u64>,
}

impl<'a> WaitTicket<'a> {
    pub(crate) fn new(endpoints: &'a Endpoints) -> Self {
        Self { endpoints, ticket: None }
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
        if let Some(connection) = poll_fn(|cx| self.poll(cx)).await {
            return Ok(connection);
        }
        if let Some(ticket) = self.ticket {
            // The others need not wait for this call, which keeps its position for later.
            self.endpoints.queue().leave(ticket);
        }
        self.endpoints.connected(None, wait_for_ready).await
    }

    /// Returns `None` if there is no connection to wait for.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Connection>>> {
        // Joins before checking, so that a connection that gets a free stream meanwhile finds the call in the queue.
        let is_new = self.ticket.is_none();
        let queue = self.endpoints.queue();
        let is_turn = queue.wait(&mut self.ticket, cx.waker());
        if is_new && queue.len() == 1 {
            self.endpoints.note_waiting();
        }
        if is_new && !is_turn {
            watch(queue);
        }
        match self.endpoints.with_free_stream() {
            FreeStream::MaybeOn(connection) if is_turn => Poll::Ready(Some(connection)),
            FreeStream::NoLane => Poll::Ready(None),
            FreeStream::MaybeOn(_) | FreeStream::None => Poll::Pending,
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
        let queue = self.endpoints.queue();
        queue.leave(ticket);
        // The event that woke this call may have freed another stream.
        if !queue.is_empty() && matches!(self.endpoints.with_free_stream(), FreeStream::MaybeOn(_)) {
            queue.wake_next();
        }
    }
}

impl Drop for WaitTicket<'_> {
    /// Passes on a wake-up that was meant for this call.
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && self.endpoints.queue().leave(ticket)
        {
            self.endpoints.queue().wake_next();
        }
    }
}

/// Time that a woken call has to take its turn, or twice as much. Tasks are polled within milliseconds, unless they
/// wait for something else first: perhaps for a call behind in the queue.
const TURN_MAX: Duration = Duration::from_millis(500);

/// Starts a task that passes over calls which do not take their turn, unless there is one. It ends with the queue.
fn watch(queue: &Arc<StreamWaitQueue>) {
    if !queue.begin_watch() {
        return;
    }
    let watch = Watch(Arc::downgrade(queue));
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(watch.run());
    }
}

/// A watched queue. The next call that joins starts another watch after this one was dropped.
struct Watch(Weak<StreamWaitQueue>);

impl Watch {
    async fn run(self) {
        loop {
            sleep(TURN_MAX).await;
            let Some(queue) = self.0.upgrade() else { return };
            if !queue.is_empty() {
                queue.drop_late();
                continue;
            }
            queue.end_watch();
            // A call that joined before that found the queue watched.
            if queue.is_empty() || !queue.begin_watch() {
                return;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(queue) = self.0.upgrade() {
            queue.end_watch();
        }
    }
}
