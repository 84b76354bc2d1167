//! Handlers of calls in this process, begun and polled: their panics and the deadline are statuses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use crate::grpc::envelope;
use crate::grpc::request::RequestHead;
use crate::measure::CallMeasure;
use crate::server::dispatch::ServerMethod;
use crate::server::exchange::{self, Ending, LocalFuture};
use crate::status::Status;

/// Calls the handler of a unary method.
///
/// # Errors
/// How the call ends instead.
pub(super) fn start_unary(
    method: &ServerMethod,
    head: &RequestHead,
    message: Bytes,
    measure: &CallMeasure,
) -> Result<LocalFuture, Ending> {
    if let Err(error) = envelope::permit(message.len(), method.options.max_decoding_message_size) {
        let status = Status::from(error);
        measure.refused(&status);
        return Err(Err(status));
    }
    measure.begun(message.len());
    let start = || method.handler.calls.start_local(head, message, &method.options);
    let started = catch_unwind(AssertUnwindSafe(start)).unwrap_or_else(|_| Err(Status::panicked()));
    started.map_err(|status| exchange::ending(Err(&status)))
}

/// Polls a handler's future, and the deadline where it has to wait.
///
/// # Errors
/// The status that the call ends with although the handler did not.
pub(super) fn poll<F: Future + ?Sized>(
    future: Pin<&mut F>,
    deadline: &mut Deadline,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, Status>> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
        Err(_) => Poll::Ready(Err(Status::panicked())),
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Ok(Poll::Pending) => deadline.poll(cx).map(|()| Err(Status::too_late("its handler was at work"))),
    }
}

/// When a call has had its time. The timer is made when somebody waits: most calls are over by then.
pub(super) struct Deadline {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(super) fn after(timeout: Option<Duration>) -> Self {
        Self { at: timeout.and_then(|timeout| Instant::now().checked_add(timeout)), sleep: None }
    }

    /// Ready when it has passed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        sleep.as_mut().poll(cx)
    }
}
