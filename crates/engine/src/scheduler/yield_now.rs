//! Cooperative yielding.

use std::pin::pin;
use std::task::{Context, Poll};

/// Ends this poll of a task that has more to do. The runtime polls its sockets before it polls the task again: a task
/// that wakes itself would be polled 60 times more before that.
pub(crate) fn yield_now<T>(cx: &mut Context<'_>) -> Poll<T> {
    // Polled once, this has the runtime wake the task then.
    let _ = pin!(tokio::task::yield_now()).poll(cx);
    Poll::Pending
}
