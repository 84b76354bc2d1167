//! The end of a call that takes too long.

use thalweg_engine::{Code, Status};
use tokio::time::{Instant, timeout_at};

/// What `call` gives, if that is there in time.
pub(super) async fn within<T>(
    deadline: Option<Instant>,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match deadline {
        None => call.await,
        Some(deadline) => {
            let outcome = timeout_at(deadline, call).await;
            outcome.unwrap_or_else(|_| Err(too_late("no answer had come")))
        }
    }
}

#[cold]
pub(super) fn too_late(what: &str) -> Status {
    Status::local(Code::DeadlineExceeded, format!("the deadline of the call has passed: {what}"))
}
