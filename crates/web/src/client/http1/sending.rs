//! Request bodies on HTTP/1.1 connections, and their progress.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use thalweg_engine::Status;

use crate::body::Body;

/// Progress of a request body.
#[derive(Debug, Default)]
pub(super) struct SendProgress {
    is_complete: AtomicBool,
    failure: Mutex<Option<Status>>,
}

impl SendProgress {
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }

    /// The error of the body itself, if it failed.
    pub(super) fn failure(&self) -> Option<Status> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A request body that records its progress.
pub(super) struct SendingBody {
    body: Body,
    sent: Arc<SendProgress>,
}

impl SendingBody {
    pub(super) fn new(body: Body, sent: Arc<SendProgress>) -> SendingBody {
        let sending = SendingBody { body, sent };
        sending.record();
        sending
    }

    fn record(&self) {
        if self.body.is_end_stream() {
            self.sent.is_complete.store(true, Ordering::Relaxed);
        }
    }
}

impl http_body::Body for SendingBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            None => self.sent.is_complete.store(true, Ordering::Relaxed),
            Some(Ok(_)) => self.record(),
            Some(Err(status)) => {
                *self.sent.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
