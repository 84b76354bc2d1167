//! How a task that has more to do lets others have their turn.

use std::pin::pin;
use std::task::{Context, Poll};

/// Ends this poll of a task that goes on, for others to have their turn: behind the runtime's own poll, since one that
/// wakes itself is polled 60 times more before other sockets are looked at.
pub(crate) fn give_way<T>(cx: &mut Context<'_>) -> Poll<T> {
    // Polled once, this has the runtime wake the task then.
    let _ = pin!(tokio::task::yield_now()).poll(cx);
    Poll::Pending
}
