//! The outcome of a call: a code with a message, details and metadata.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::Instant;

pub use thalweg_core::Code;

/// Status of a call that failed. The code is OK only if a handler failed with OK.
///
/// Boxed to keep results small.
#[derive(Clone)]
pub struct Status(Box<StatusData>);

#[derive(Clone)]
struct StatusData {
    parts: StatusParts,
    /// Made on this side of the call, and still without the call's context.
    is_local: bool,
}

/// The parts of a [`Status`].
#[derive(Clone, Debug)]
pub struct StatusParts {
    /// The status code.
    pub code: Code,
    /// A description for humans.
    pub message: Cow<'static, str>,
    /// Details for programs: `grpc-status-details-bin`, decoded.
    pub details: Bytes,
    /// The metadata sent or received with it. Values of `-bin` fields are Base64.
    pub metadata: HeaderMap,
}

impl Status {
    /// Creates a status without details or metadata.
    #[cold]
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self::from(StatusParts {
            code,
            message: message.into(),
            details: Bytes::new(),
            metadata: HeaderMap::new(),
        })
    }

    /// Creates a status for a failure detected on this side of a call, not reported by the peer. A client adds the call
    /// and its phase to the message.
    #[cold]
    pub fn local(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        let mut status = Self::new(code, message);
        status.0.is_local = true;
        status
    }

    /// Returns the status code.
    pub fn code(&self) -> Code {
        self.0.parts.code
    }

    /// Returns the description for humans.
    pub fn message(&self) -> &str {
        &self.0.parts.message
    }

    /// Returns the details for programs.
    pub fn details(&self) -> &[u8] {
        &self.0.parts.details
    }

    /// Returns the metadata sent or received with it.
    pub fn metadata(&self) -> &HeaderMap {
        &self.0.parts.metadata
    }

    /// Prepends the metadata of the response headers: a failure has one place for headers and trailers.
    #[cold]
    #[must_use]
    pub fn prepend_metadata(mut self, headers: &HeaderMap) -> Self {
        if !headers.is_empty() {
            let mut all = headers.clone();
            for (name, value) in &self.0.parts.metadata {
                all.append(name, value.clone());
            }
            self.0.parts.metadata = all;
        }
        self
    }

    /// Returns all parts.
    pub fn into_parts(self) -> StatusParts {
        self.0.parts
    }

    pub(crate) fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(Code::Unavailable, message)
    }

    pub(crate) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(Code::Internal, message)
    }

    pub(crate) fn unimplemented(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(Code::Unimplemented, message)
    }

    pub(crate) fn unknown(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(Code::Unknown, message)
    }

    pub(crate) fn resource_exhausted(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(Code::ResourceExhausted, message)
    }

    pub(crate) fn deadline_exceeded() -> Self {
        Self::local(Code::DeadlineExceeded, "deadline exceeded")
    }

    /// Creates a DEADLINE_EXCEEDED status that names the incomplete step.
    #[cold]
    pub(crate) fn deadline_exceeded_at(step: impl fmt::Display) -> Self {
        Self::local(Code::DeadlineExceeded, format!("deadline exceeded: {step}"))
    }

    /// Returns whether it was made on this side and has no call context yet.
    pub(crate) fn is_local(&self) -> bool {
        self.0.is_local
    }

    /// Appends `more` to the message.
    #[cold]
    pub(crate) fn with_detail(mut self, more: Option<impl fmt::Display>) -> Self {
        if let Some(more) = more {
            self.0.parts.message = format!("{}; {more}", self.message()).into();
        }
        self
    }

    /// Appends the call's context to the message, if the status was made on this side and has none yet.
    #[cold]
    pub(crate) fn with_call_context(mut self, call: impl fmt::Display) -> Self {
        if std::mem::take(&mut self.0.is_local) {
            self.0.parts.message = format!("{} [{call}]", self.message()).into();
        }
        self
    }

    /// Converts CANCELLED to DEADLINE_EXCEEDED if `deadline` has passed. When a server's own timer fires first, it
    /// resets the stream. The reset may reach the client before the client's timer fires, although nothing cancelled
    /// the call.
    #[cold]
    pub(crate) fn cancelled_by_deadline(self, deadline: Instant) -> Self {
        if self.code() == Code::Cancelled && Instant::now() >= deadline {
            Self::deadline_exceeded()
        } else {
            self
        }
    }

    pub(crate) fn panicked() -> Self {
        Self::internal("the handler panicked")
    }
}

impl From<StatusParts> for Status {
    fn from(parts: StatusParts) -> Self {
        Self(Box::new(StatusData { parts, is_local: false }))
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.parts.fmt(f)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code(), self.message())
    }
}

impl std::error::Error for Status {}
