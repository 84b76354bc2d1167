//! The body of a request or an answer: [`Body`].

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use thalweg_engine::raw::{OutgoingBody, Trailers};
use thalweg_engine::{Code, RawBody, RequestShare, Status, compact};

use crate::compression::too_large;
use crate::http1::received_body::ReceivedBody;
use crate::timed::Timed;

/// The body of a request or an answer, whatever it is made of and whichever version of HTTP carries it.
pub struct Body(Kind);

enum Kind {
    /// Whole, or from a connection of HTTP/2.
    Raw(RawBody),
    /// From one of HTTP/2, within a time.
    Timed(Box<Timed>),
    /// From one of HTTP/1.1.
    Http1(ReceivedBody),
    Other(Pin<Box<dyn http_body::Body<Data = Bytes, Error = Status> + Send>>),
}

/// What an error of another's body is.
type BoxError = Box<dyn Error + Send + Sync>;

impl Body {
    /// One without anything.
    pub fn empty() -> Self {
        RawBody::default().into()
    }

    /// Bytes, and nothing behind them.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::with_trailers(bytes.into(), Trailers::None)
    }

    /// Bytes, and what follows them.
    pub(crate) fn with_trailers(bytes: Bytes, trailers: Trailers) -> Self {
        RawBody::whole(bytes, trailers).into()
    }

    /// Any body as one of this type. An error of it is a [`Status`] if it is one, or has one as its source; else it is
    /// INTERNAL.
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

    /// A body that is made as it is sent.
    pub(crate) fn streaming<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes, Error = Status> + Send + 'static,
    {
        Self(Kind::Other(Box::pin(body)))
    }

    pub(crate) fn received(body: ReceivedBody) -> Self {
        Self(Kind::Http1(body))
    }

    /// Has what comes of it come in its time, where that is not the byte stream's business. `has_length`: its head has
    /// said how long it is.
    pub(crate) fn within(self, time: Option<Duration>, has_length: impl FnOnce() -> bool) -> Self {
        match (self.0, time) {
            // What is there is in time.
            (Kind::Raw(body), Some(time)) if http_body::Body::size_hint(&body).exact().is_none() => {
                Self(Kind::Timed(Box::new(Timed::new(body, time, has_length()))))
            }
            (kind, _) => Self(kind),
        }
    }

    /// Nothing is done before the rest of a part of the body is there, the how manieth is said: that has its time, all
    /// of it together. `None`: nothing of the next part is there, and it may come whenever it does.
    pub(crate) fn awaits(&mut self, part: Option<u64>) {
        match &mut self.0 {
            Kind::Timed(body) => body.awaits(part),
            Kind::Http1(body) => body.awaits(part),
            Kind::Raw(_) | Kind::Other(_) => {}
        }
    }

    /// All of it, where it is known to be there; it is empty then.
    pub(crate) fn take_whole(&mut self) -> Option<(Bytes, Trailers)> {
        match &mut self.0 {
            Kind::Raw(body) => body.take_whole(),
            Kind::Timed(_) | Kind::Http1(_) | Kind::Other(_) => None,
        }
    }

    /// What a request takes of its connection: nothing, where its body is there whole and small.
    pub(crate) fn share(&self) -> RequestShare {
        match &self.0 {
            Kind::Raw(body) => body.share(),
            Kind::Timed(body) => body.body().share(),
            Kind::Http1(body) => body.share(),
            Kind::Other(_) => RequestShare::default(),
        }
    }

    /// All of it, as it comes; what is there of it is held by `share`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED as soon as it has more than `size_max` bytes, or says that it will have; else what keeps it
    /// from being read.
    pub(crate) async fn gather(mut self, size_max: usize, share: &mut RequestShare) -> Result<Bytes, Status> {
        let announced = http_body::Body::size_hint(&self).lower();
        if let Some(size) = usize::try_from(announced).ok().filter(|size| *size > size_max) {
            return Err(too_large(size, size_max));
        }
        self.awaits(Some(0));
        let mut first = Bytes::new();
        let mut all = Vec::new();
        while let Some(frame) = self.frame().await {
            let Ok(piece) = frame?.into_data() else { continue };
            let size = first.len() + all.len() + piece.len();
            if size > size_max {
                return Err(too_large(size, size_max));
            }
            share.hold(size);
            if first.is_empty() && all.is_empty() {
                first = piece;
                continue;
            }
            if all.is_empty() {
                all = Vec::from(std::mem::take(&mut first));
            }
            all.extend_from_slice(&piece);
        }
        Ok(if all.is_empty() { first } else { compact(all) })
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
            Kind::Raw(body) => Pin::new(body).poll_frame(cx),
            Kind::Timed(body) => body.poll_frame(cx),
            Kind::Http1(body) => Pin::new(body).poll_frame(cx),
            Kind::Other(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Raw(body) => body.is_end_stream(),
            Kind::Timed(body) => http_body::Body::is_end_stream(body.body()),
            Kind::Http1(body) => body.is_end_stream(),
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Raw(body) => body.size_hint(),
            Kind::Timed(body) => http_body::Body::size_hint(body.body()),
            Kind::Http1(body) => body.size_hint(),
            Kind::Other(body) => body.size_hint(),
        }
    }
}

impl OutgoingBody for Body {
    fn status(error: Status) -> Status {
        error
    }

    fn take_whole(&mut self) -> Option<(Bytes, Trailers)> {
        self.take_whole()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::whole(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::whole(bytes)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::whole(text)
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<RawBody> for Body {
    fn from(body: RawBody) -> Self {
        Self(Kind::Raw(body))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Raw(body) => write!(f, "Body({body:?})"),
            Kind::Timed(_) | Kind::Http1(_) | Kind::Other(_) => f.write_str("Body(it comes)"),
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
