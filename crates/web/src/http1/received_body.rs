//! Request bodies for the service: [`ReceivedBody`].

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use thalweg_engine::{Code, RequestAccounting, Status};

use super::progress::{CloseReason, Progress};

/// A request body received over HTTP/1.1.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    /// `None` after its end.
    body: Option<Incoming>,
    number: u64,
    progress: Progress,
}

impl ReceivedBody {
    pub(super) fn new(body: Incoming, number: u64, progress: Progress) -> Self {
        Self { body: Some(body), number, progress }
    }

    /// See [`Body::expect_part`](crate::body::Body). The time includes pauses between chunks.
    pub(crate) fn expect_part(&self, part: Option<u64>) {
        self.progress.expect_part(self.number, part);
    }

    /// See [`Body::memory_accounting`](crate::body::Body).
    pub(crate) fn memory_accounting(&self) -> RequestAccounting {
        self.progress.memory_accounting()
    }
}

impl Drop for ReceivedBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            self.progress.body_dropped(body);
        }
    }
}

impl http_body::Body for ReceivedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        if frame.is_none() || body.is_end_stream() {
            self.body = None;
            self.progress.body_read(self.number);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|error| status_of(&error, &self.progress))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

/// Returns the status of a failed body, from the byte stream or for hyper's error.
#[cold]
fn status_of(error: &hyper::Error, progress: &Progress) -> Status {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    if let Some(status) = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref::<Status>()) {
        return status.clone();
    }
    tracing::debug!(%error, cause = io.map(tracing::field::display), "rejected an HTTP/1.1 body");
    progress.close(CloseReason::BadBody);
    bad_body()
}

#[cold]
pub(super) fn bad_body() -> Status {
    Status::new(Code::InvalidArgument, "malformed HTTP/1.1 body")
}
