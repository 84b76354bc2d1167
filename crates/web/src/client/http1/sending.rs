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
pub(super) struct Sent {
    is_whole: AtomicBool,
    failure: Mutex<Option<Status>>,
}

impl Sent {
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Relaxed)
    }

    /// The error of the body itself, if it failed.
    pub(super) fn failure(&self) -> Option<Status> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A request body that records its progress.
pub(super) struct Sending {
    body: Body,
    sent: Arc<Sent>,
}

impl Sending {
    pub(super) fn new(body: Body, sent: Arc<Sent>) -> Sending {
        let sending = Sending { body, sent };
        sending.note();
        sending
    }

    fn note(&self) {
        if self.body.is_end_stream() {
            self.sent.is_whole.store(true, Ordering::Relaxed);
        }
    }
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            None => self.sent.is_whole.store(true, Ordering::Relaxed),
            Some(Ok(_)) => self.note(),
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
