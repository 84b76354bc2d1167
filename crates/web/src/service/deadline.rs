//! The time that a call has, while its request is still on its way: [`Deadline`].

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use thalweg_engine::{Code, RequestShare, Status};
use tokio::time::{Instant, timeout_at};

use crate::body::Body;

/// When a call has had its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    pub(super) fn after(timeout: Option<Duration>) -> Deadline {
        Deadline(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// What is left of it.
    pub(super) fn left(self) -> Option<Duration> {
        self.0.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// A whole body of at most `size_max` bytes, which `share` holds, once it is its turn to be read.
    ///
    /// # Errors
    /// See [`hold`](Self::hold) and [`Body::gather`].
    pub(super) async fn gather(
        self,
        body: Body,
        size_max: usize,
        share: &mut RequestShare,
    ) -> Result<Bytes, Status> {
        self.hold(async {
            let whole = body.gather(size_max, share).await?;
            poll_fn(|cx| share.poll_turn(cx)).await;
            Ok(whole)
        })
        .await
    }

    /// What comes of `request`, if that is in time.
    pub(super) async fn hold<T>(self, request: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let Some(at) = self.0 else { return request.await };
        timeout_at(at, request).await.unwrap_or_else(|_| {
            let why = "the deadline of the call has passed: its request came too late";
            Err(Status::local(Code::DeadlineExceeded, why))
        })
    }
}
