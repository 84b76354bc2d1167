//! Between bodies and statuses of tonic's and those of the engine.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use thalweg_engine::raw::OutgoingBody;
use thalweg_engine::{self as engine, RawBody};
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

/// A body that came, as its reader takes it.
pub(super) struct Received(RawBody);

/// What came, for those who take any body.
pub(super) fn received(body: RawBody) -> Body {
    Body::new(Received(body))
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.0).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(to_tonic)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

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

impl OutgoingBody for Sent {}

/// The engine's status, as an application sees it.
#[cold]
pub(super) fn to_tonic(status: engine::Status) -> Status {
    let engine::StatusParts { code, message, details, metadata } = status.into_parts();
    let metadata = MetadataMap::from_headers(metadata);
    let code = Code::from_i32(i32::from(code.number()));
    Status::with_details_and_metadata(code, message, details, metadata)
}

/// An application's status, as the engine sends it.
#[cold]
pub(super) fn to_engine(status: &Status) -> engine::Status {
    engine::Status::from(engine::StatusParts {
        code: engine::Code::from_number(status.code() as u32),
        message: status.message().to_owned().into(),
        details: status.details().to_vec().into(),
        metadata: status.metadata().as_ref().clone(),
    })
}
