//! Request and response bodies: [`Body`].

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use thalweg_engine::raw::{OutgoingBody, Piece, Trailers};
use thalweg_engine::{Code, RawBody, RequestAccounting, Status, compact};

use crate::compression::too_large;
use crate::http1::received_body::ReceivedBody;
use crate::timed::TimedBody;

/// Body of a request or a response, independent of the HTTP version.
pub struct Body(BodySource);

enum BodySource {
    /// A complete body, or one received over HTTP/2.
    Raw(RawBody),
    /// A body received over HTTP/2 with a time limit.
    Timed(Box<TimedBody>),
    /// A body received over HTTP/1.1.
    Http1(ReceivedBody),
    Other(Pin<Box<dyn http_body::Body<Data = Bytes, Error = Status> + Send>>),
}

/// Error of an external body type.
type BoxError = Box<dyn Error + Send + Sync>;

impl Body {
    /// Returns an empty body.
    pub fn empty() -> Self {
        RawBody::default().into()
    }

    /// Returns a body of these bytes, without trailers.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::with_trailers(bytes.into(), Trailers::None)
    }

    pub(crate) fn with_trailers(bytes: Bytes, trailers: Trailers) -> Self {
        RawBody::complete(bytes, trailers).into()
    }

    /// Wraps any body. Its errors should be a [`Status`] or have one as a source; others become INTERNAL.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self::streaming(body.map_err(|error| to_status(&*error.into())))
    }

    pub(crate) fn streaming<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes, Error = Status> + Send + 'static,
    {
        Self(BodySource::Other(Box::pin(body)))
    }

    pub(crate) fn received(body: ReceivedBody) -> Self {
        Self(BodySource::Http1(body))
    }

    /// Limits the time to receive the body, unless the byte stream does that itself. `has_length` returns whether the
    /// headers declare the body's length.
    pub(crate) fn with_time_limit(self, time: Option<Duration>, has_length: impl FnOnce() -> bool) -> Self {
        match (self.0, time) {
            // A complete body needs no limit.
            (BodySource::Raw(body), Some(time)) if http_body::Body::size_hint(&body).exact().is_none() => {
                Self(BodySource::Timed(Box::new(TimedBody::new(body, time, has_length()))))
            }
            (kind, _) => Self(kind),
        }
    }

    /// Limits the total time for the rest of the part with this index, which is needed to make progress. `None`:
    /// nothing of the next part has arrived, so there is no limit.
    pub(crate) fn expect_part(&mut self, part: Option<u64>) {
        match &mut self.0 {
            BodySource::Timed(body) => body.expect_part(part),
            BodySource::Http1(body) => body.expect_part(part),
            BodySource::Raw(_) | BodySource::Other(_) => {}
        }
    }

    /// Takes the whole body if it is complete, leaving an empty one.
    pub(crate) fn take_whole(&mut self) -> Option<(Bytes, Trailers)> {
        match &mut self.0 {
            BodySource::Raw(body) => body.take_complete(),
            BodySource::Timed(_) | BodySource::Http1(_) | BodySource::Other(_) => None,
        }
    }

    /// Returns the request's memory accounting. A small body that is complete counts as nothing.
    pub(crate) fn memory_accounting(&self) -> RequestAccounting {
        match &self.0 {
            BodySource::Raw(body) => body.accounting(),
            BodySource::Timed(body) => body.body().accounting(),
            BodySource::Http1(body) => body.memory_accounting(),
            BodySource::Other(_) => RequestAccounting::default(),
        }
    }

    /// Collects the whole body; `accounting` accounts for the buffered bytes.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED as soon as the body has, or announces, more than `size_max` bytes; otherwise the error of
    /// reading it.
    pub(crate) async fn collect_bytes(
        mut self,
        size_max: usize,
        accounting: &mut RequestAccounting,
    ) -> Result<Bytes, Status> {
        let declared = http_body::Body::size_hint(&self).lower();
        if let Some(size) = usize::try_from(declared).ok().filter(|size| *size > size_max) {
            return Err(too_large(size, size_max));
        }
        self.expect_part(Some(0));
        let mut first = Bytes::new();
        let mut collected = Vec::new();
        while let Some(frame) = self.frame().await {
            let Ok(piece) = frame?.into_data() else { continue };
            let size = first.len() + collected.len() + piece.len();
            if size > size_max {
                return Err(too_large(size, size_max));
            }
            accounting.set_bytes(size);
            if first.is_empty() && collected.is_empty() {
                first = piece;
                continue;
            }
            if collected.is_empty() {
                collected = Vec::from(std::mem::take(&mut first));
            }
            collected.extend_from_slice(&piece);
        }
        Ok(if collected.is_empty() { first } else { compact(collected) })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.0 {
            BodySource::Raw(body) => Pin::new(body).poll_frame(cx),
            BodySource::Timed(body) => body.poll_frame(cx),
            BodySource::Http1(body) => Pin::new(body).poll_frame(cx),
            BodySource::Other(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodySource::Raw(body) => body.is_end_stream(),
            BodySource::Timed(body) => http_body::Body::is_end_stream(body.body()),
            BodySource::Http1(body) => body.is_end_stream(),
            BodySource::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodySource::Raw(body) => body.size_hint(),
            BodySource::Timed(body) => http_body::Body::size_hint(body.body()),
            BodySource::Http1(body) => body.size_hint(),
            BodySource::Other(body) => body.size_hint(),
        }
    }
}

impl OutgoingBody for Body {
    fn status(error: Status) -> Status {
        error
    }

    fn take_complete(&mut self) -> Option<(Piece, Trailers)> {
        self.take_whole().map(|(bytes, trailers)| (bytes.into(), trailers))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::full(bytes)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::full(text)
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<RawBody> for Body {
    fn from(body: RawBody) -> Self {
        Self(BodySource::Raw(body))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BodySource::Raw(body) => write!(f, "Body({body:?})"),
            BodySource::Timed(_) | BodySource::Http1(_) | BodySource::Other(_) => {
                f.write_str("Body(it comes)")
            }
        }
    }
}

#[cold]
fn to_status(error: &(dyn Error + Send + Sync + 'static)) -> Status {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(status) = error.downcast_ref::<Status>() {
            return status.clone();
        }
        source = error.source();
    }
    Status::new(Code::Internal, error.to_string())
}
