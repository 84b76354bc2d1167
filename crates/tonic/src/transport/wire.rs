//! Bodies, as the engine sends them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use thalweg_engine as engine;
use thalweg_engine::raw::{OutgoingBody, Trailers};
use tonic::Status;

use crate::body::{Body, to_engine};

/// A body that is sent.
pub(super) enum Sent {
    Body(Body),
    /// It is not to be had.
    Failed(Option<Status>),
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = engine::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, engine::Status>>> {
        let frame = match &mut *self {
            Self::Body(body) => ready!(Pin::new(body).poll_frame(cx)),
            Self::Failed(status) => status.take().map(Err),
        };
        Poll::Ready(frame.map(|frame| frame.map_err(|status| to_engine(&status))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Body(body) => body.is_end_stream(),
            Self::Failed(status) => status.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Body(body) => body.size_hint(),
            Self::Failed(_) => SizeHint::default(),
        }
    }
}

impl OutgoingBody for Sent {
    fn take_whole(&mut self) -> Option<(Bytes, Trailers)> {
        match self {
            Self::Body(body) => body.take_whole(),
            Self::Failed(_) => None,
        }
    }
}
