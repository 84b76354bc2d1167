//! Deadline of a call: [`Deadline`].

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use thalweg_engine::{Code, RequestAccounting, Status};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use crate::body::Body;

/// Instant at which a call times out; `None` for no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn after(timeout: Option<Duration>) -> Deadline {
        Deadline(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// Returns the remaining time.
    pub(crate) fn remaining(self) -> Option<Duration> {
        self.0.map(|at| at.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn timer(self) -> Option<Pin<Box<Sleep>>> {
        self.0.map(|at| Box::pin(sleep_until(at)))
    }

    /// Collects a body of at most `size_max` bytes, accounted for by `accounting`, and waits for its turn.
    ///
    /// # Errors
    /// See [`enforce`](Self::enforce) and [`Body::collect_bytes`].
    pub(crate) async fn collect_bytes(
        self,
        body: Body,
        size_max: usize,
        accounting: &mut RequestAccounting,
    ) -> Result<Bytes, Status> {
        self.enforce("the request was not complete", async {
            let bytes = body.collect_bytes(size_max, accounting).await?;
            poll_fn(|cx| accounting.poll_turn(cx)).await;
            Ok(bytes)
        })
        .await
    }

    /// Returns the output of `future` if it is ready in time.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED, with `what` in its message, if it is not.
    pub(crate) async fn enforce<T>(
        self,
        what: &str,
        future: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let Some(at) = self.0 else { return future.await };
        if at <= Instant::now() {
            return Err(deadline_exceeded("it had passed before the call"));
        }
        timeout_at(at, future).await.unwrap_or_else(|_| Err(deadline_exceeded(what)))
    }
}

#[cold]
pub(crate) fn deadline_exceeded(what: &str) -> Status {
    Status::local(Code::DeadlineExceeded, format!("deadline exceeded: {what}"))
}
