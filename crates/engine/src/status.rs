//! The outcome of a failed call, and failures that arise at several places.

use std::fmt;

use tokio::time::Instant;

pub use thalweg_core::{Code, Status};

pub(crate) fn deadline_exceeded() -> Status {
    Status::local(Code::DeadlineExceeded, "deadline exceeded")
}

/// Creates a DEADLINE_EXCEEDED status that names the incomplete step.
#[cold]
pub(crate) fn deadline_exceeded_at(step: impl fmt::Display) -> Status {
    Status::local(Code::DeadlineExceeded, format!("deadline exceeded: {step}"))
}

/// Converts CANCELLED to DEADLINE_EXCEEDED if `deadline` has passed. When a server's own timer fires first, it resets
/// the stream. The reset may reach the client before the client's timer fires, although nothing cancelled the call.
#[cold]
pub(crate) fn cancelled_by_deadline(status: Status, deadline: Instant) -> Status {
    if status.code() == Code::Cancelled && Instant::now() >= deadline { deadline_exceeded() } else { status }
}

pub(crate) fn panicked() -> Status {
    Status::local(Code::Internal, "the handler panicked")
}
