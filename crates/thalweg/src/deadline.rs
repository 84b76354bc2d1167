//! Deadlines of calls that a server handles: [`Deadline`].

use std::time::Duration;

use thalweg_core::{Extensions, Request, Status};
use tokio::time::Instant;

/// Time by which a call must have finished, as set by its client (`grpc-timeout`). On a server it is in the extensions
/// of requests that have one.
///
/// ```
/// # use thalweg::{Deadline, Request};
/// # fn handle(request: Request<()>) {
/// match Deadline::of(&request) {
///     Some(deadline) => println!("{:?} are left", deadline.remaining()),
///     None => println!("the client waits for ever"),
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// Creates a deadline at `instant`.
    pub fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// Returns the deadline of a request that a server handles.
    pub fn of<T>(request: &Request<T>) -> Option<Self> {
        Self::in_extensions(request.extensions())
    }

    /// Returns the deadline in a request's extensions.
    pub fn in_extensions(extensions: &Extensions) -> Option<Self> {
        extensions.get().copied()
    }

    /// Returns the time of the deadline.
    pub fn instant(self) -> Instant {
        self.0
    }

    /// Returns the time left; zero after the deadline.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Returns the time left.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED if no time is left: no one waits for the result.
    pub fn check(self) -> Result<Duration, Status> {
        match self.remaining() {
            Duration::ZERO => Err(Status::deadline_exceeded("deadline exceeded")),
            remaining => Ok(remaining),
        }
    }
}

/// Returns extensions with the deadline of a request whose client waits this long from now.
#[cold]
pub(crate) fn extensions(timeout: Duration) -> Extensions {
    let mut extensions = Extensions::default();
    // A deadline beyond the clock's range is no deadline.
    if let Some(deadline) = Instant::now().checked_add(timeout) {
        extensions.insert(Deadline(deadline));
    }
    extensions
}
