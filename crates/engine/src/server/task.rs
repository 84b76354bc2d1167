//! Calls that run in tasks: all streaming calls, and unary calls that have to wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_http2::ErrorCode;

use super::deadline::{self, Deadline};
use super::dispatch::CallFuture;
use super::respond::{self, ResponseTarget};
use crate::connection::{Connection, End, Slot, poll_with_waker};
use crate::measure;
use crate::status::{self, Status};

/// Runs one call until its response, cancellation or deadline.
///
/// When the client cancels, the handler's future is dropped.
pub(super) struct CallTask {
    connection: Arc<Connection>,
    target: ResponseTarget,
    /// `None` once it has ended.
    future: Option<CallFuture>,
    deadline: Deadline,
    /// Waiting for room for the handler's response.
    is_waiting: bool,
}

/// Action of one poll of a task.
enum Next {
    /// The client has cancelled the call.
    Cancelled,
    /// There is no room for a response.
    Waits,
    Runs,
}

impl CallTask {
    /// Runs `future` for a call whose request has `request_len` bytes.
    pub(super) fn new(
        connection: &Arc<Connection>,
        target: ResponseTarget,
        request_len: usize,
        future: CallFuture,
    ) -> Self {
        Self::hold(Arc::clone(connection), target, request_len, Some(future))
    }

    /// Runs a call whose handler is called by `start`, which may panic.
    pub(super) fn started(
        connection: Arc<Connection>,
        target: ResponseTarget,
        start: impl FnOnce() -> CallFuture,
    ) -> Self {
        let future = catch_unwind(AssertUnwindSafe(start)).ok();
        Self::hold(connection, target, 0, future)
    }

    fn hold(
        connection: Arc<Connection>,
        target: ResponseTarget,
        request_len: usize,
        future: Option<CallFuture>,
    ) -> Self {
        let mut state = connection.lock();
        let mut deadline = None;
        if let Some(call) = state.slot(target.key).and_then(Slot::server) {
            call.task_running = true;
            call.add_buffered(request_len);
            deadline = call.deadline;
            state.note_growth(request_len);
        }
        drop(state);
        Self { connection, target, future, deadline: Deadline::at(deadline), is_waiting: false }
    }

    /// Registers the task to be woken when the client cancels, or when there is room.
    fn next(&self, cx: &Context<'_>) -> Next {
        poll_with_waker(cx, |task| {
            let mut state = self.connection.lock();
            let Some(slot) = state.slot(self.target.key) else { return Ok(Next::Cancelled) };
            if matches!(slot.end, Some(End::Lost { .. })) {
                return Ok(Next::Cancelled);
            }
            if let Some(call) = slot.server() {
                task.store_waker_in(&mut call.task)?;
            }
            if state.may_run(self.target.key) {
                return Ok(Next::Runs);
            }
            state.wait_for_room(self.target.key);
            Ok(Next::Waits)
        })
    }

    fn poll_future(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let Some(future) = &mut self.future else { return Poll::Ready(Err(status::panicked())) };
        deadline::poll_handler(future.as_mut(), &mut self.deadline, cx)
    }

    /// Lets the next waiting call run too, if there is room, after this one has waited.
    #[cold]
    fn admit_next(&mut self) {
        self.is_waiting = false;
        self.connection.lock().admit_next();
    }
}

impl Future for CallTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let polled = match this.next(cx) {
            Next::Cancelled => {
                this.future = None;
                return Poll::Ready(());
            }
            Next::Waits => {
                this.is_waiting = true;
                let too_late = |()| Err(status::deadline_exceeded_at("the response waited for memory"));
                this.deadline.poll(cx).map(too_late)
            }
            Next::Runs => {
                let polled = this.poll_future(cx);
                if this.is_waiting {
                    this.admit_next();
                }
                polled
            }
        };
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => {
                this.future = None;
                Poll::Ready(())
            }
            Poll::Ready(Err(status)) => {
                measure::drop_with_status(&status, this.future.take());
                let mut state = this.connection.lock();
                respond::end_with(&mut state, &this.target, &status);
                state.notify_driver();
                Poll::Ready(())
            }
        }
    }
}

impl Drop for CallTask {
    /// Removes the slot, and resets a call without a response.
    fn drop(&mut self) {
        self.future = None;
        if self.is_waiting {
            self.admit_next();
        }
        let mut state = self.connection.lock();
        let Some(slot) = state.remove(self.target.key) else { return };
        if !matches!(slot.end, Some(End::Lost { .. })) {
            if !slot.is_over() {
                state.failed.cut_off();
            }
            state.http2.reset(slot.stream, ErrorCode::Cancel);
            state.notify_driver();
        }
    }
}
