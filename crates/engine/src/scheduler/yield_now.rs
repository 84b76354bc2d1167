//! Cooperative yielding.

use std::pin::pin;
use std::task::{Context, Poll};

/// Ends this poll of a task that has more to do. The runtime polls its sockets before it polls the task again. A task
/// that wakes itself would first be polled 60 times more.
pub(crate) fn yield_now<T>(cx: &mut Context<'_>) -> Poll<T> {
    // Polled once, it makes the runtime wake the task at that time.
    let _ = pin!(tokio::task::yield_now()).poll(cx);
    Poll::Pending
}
