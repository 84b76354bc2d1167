//! When a call that is served must have ended: [`Deadline`].

use std::time::Duration;

use tokio::time::Instant;
use tonic::{Extensions, Request, Status};

/// When a call must have ended, as its client has it (`grpc-timeout`). At a server it is in the extensions of requests
/// that have one.
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
    /// A deadline of one's own.
    pub fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// That of a request which is served.
    pub fn of<T>(request: &Request<T>) -> Option<Self> {
        Self::in_extensions(request.extensions())
    }

    /// That of a request with these extensions.
    pub fn in_extensions(extensions: &Extensions) -> Option<Self> {
        extensions.get().copied()
    }

    /// When it is.
    pub fn instant(self) -> Instant {
        self.0
    }

    /// The time that is left; zero behind it.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// The time that is left.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED, if that is none: what nobody waits for need not be begun.
    pub fn check(self) -> Result<Duration, Status> {
        match self.remaining() {
            Duration::ZERO => Err(Status::deadline_exceeded("the deadline of the call has passed")),
            left => Ok(left),
        }
    }
}

/// The extensions of a request whose client waits so long from now.
#[cold]
pub(crate) fn extensions(timeout: Duration) -> Extensions {
    let mut extensions = Extensions::default();
    // One that no clock can show is none.
    if let Some(deadline) = Instant::now().checked_add(timeout) {
        extensions.insert(Deadline(deadline));
    }
    extensions
}
