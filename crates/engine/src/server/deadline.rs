//! Deadlines of active calls, and polling of handlers with a deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::status::{self, Status};

/// Polls a handler's future, and the deadline while the future is pending.
///
/// # Errors
/// Returns the status that ends the call in place of the handler's result.
pub(super) fn poll_handler<F: Future + ?Sized>(
    future: Pin<&mut F>,
    deadline: &mut Deadline,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, Status>> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
        Err(_) => Poll::Ready(Err(status::panicked())),
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Ok(Poll::Pending) => {
            deadline.poll(cx).map(|()| Err(status::deadline_exceeded_at("the handler was still running")))
        }
    }
}

/// Deadline of a call. The timer is created on the first wait; most calls finish without one.
pub(super) struct Deadline {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(super) fn at(at: Option<Instant>) -> Self {
        Self { at, sleep: None }
    }

    pub(super) fn after(timeout: Option<Duration>) -> Self {
        Self::at(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// Completes when the deadline has passed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        sleep.as_mut().poll(cx)
    }
}
