//! Calls that run as tasks of their own: all streaming ones, and unary ones that have to wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thalweg_http2::ErrorCode;

use super::deadline::{self, Deadline};
use super::dispatch::CallFuture;
use super::respond::{self, Reply};
use crate::connection::{Connection, End, Slot, look};
use crate::measure;
use crate::status::Status;

/// Runs one call until it is answered, cancelled, or out of time.
///
/// When the client cancels, the handler's future is dropped where it stands.
pub(super) struct CallTask {
    connection: Arc<Connection>,
    reply: Reply,
    /// None once it has ended.
    future: Option<CallFuture>,
    deadline: Deadline,
    /// It may not go on before there is room for what its handler makes.
    is_waiting: bool,
}

/// Action of one poll of a task.
enum Next {
    /// The client has given the call up.
    Cancelled,
    /// There is no room for a response.
    Waits,
    Runs,
}

impl CallTask {
    /// Runs `future` to its end, of a call whose request has `request_len` bytes.
    pub(super) fn new(
        connection: &Arc<Connection>,
        reply: Reply,
        request_len: usize,
        future: CallFuture,
    ) -> Self {
        Self::hold(Arc::clone(connection), reply, request_len, Some(future))
    }

    /// `start` calls the handler, which may panic before it has a future.
    pub(super) fn started(
        connection: Arc<Connection>,
        reply: Reply,
        start: impl FnOnce() -> CallFuture,
    ) -> Self {
        let future = catch_unwind(AssertUnwindSafe(start)).ok();
        Self::hold(connection, reply, 0, future)
    }

    fn hold(
        connection: Arc<Connection>,
        reply: Reply,
        request_len: usize,
        future: Option<CallFuture>,
    ) -> Self {
        let mut state = connection.lock();
        let mut deadline = None;
        if let Some(call) = state.slot(reply.key).and_then(Slot::server) {
            call.task_running = true;
            call.hold(request_len);
            deadline = call.deadline;
            state.note_growth(request_len);
        }
        drop(state);
        Self { connection, reply, future, deadline: Deadline::at(deadline), is_waiting: false }
    }

    /// The task is woken when the client gives the call up, or when there is room.
    fn next(&self, cx: &Context<'_>) -> Next {
        look(cx, |sleeper| {
            let mut state = self.connection.lock();
            let Some(slot) = state.slot(self.reply.key) else { return Ok(Next::Cancelled) };
            if matches!(slot.end, Some(End::Lost { .. })) {
                return Ok(Next::Cancelled);
            }
            if let Some(call) = slot.server() {
                sleeper.keep_in(&mut call.task)?;
            }
            if state.may_go_on(self.reply.key) {
                return Ok(Next::Runs);
            }
            state.wait_for_room(self.reply.key);
            Ok(Next::Waits)
        })
    }

    fn poll_future(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let Some(future) = &mut self.future else { return Poll::Ready(Err(Status::panicked())) };
        deadline::poll_handler(future.as_mut(), &mut self.deadline, cx)
    }

    /// It may go on, after it has waited: so may the next, if there is room for it as well.
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
                let too_late = |()| Err(Status::too_late("the response waited for memory"));
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
                measure::ending_with(&status, this.future.take());
                let mut state = this.connection.lock();
                respond::end_with(&mut state, &this.reply, &status);
                state.notify_driver();
                Poll::Ready(())
            }
        }
    }
}

impl Drop for CallTask {
    /// Whatever ended the task, the slot goes with it; a call without an answer is reset.
    fn drop(&mut self) {
        self.future = None;
        if self.is_waiting {
            self.admit_next();
        }
        let mut state = self.connection.lock();
        let Some(slot) = state.remove(self.reply.key) else { return };
        if !matches!(slot.end, Some(End::Lost { .. })) {
            if !slot.is_over() {
                state.failed.cut_off();
            }
            state.http2.reset(slot.stream, ErrorCode::Cancel);
            state.notify_driver();
        }
    }
}
