//! [`Body`]: a body of any type.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use crate::Status;
use crate::chain::Chain;
use crate::codec::EncodeMessages;
use crate::error::BoxError;

/// The body of a request or response, of any type.
#[derive(Debug, Default)]
pub struct Body {
    inner: Inner,
}

#[derive(Default)]
enum Inner {
    #[default]
    Empty,
    Messages(Pin<Box<dyn EncodeMessages + Send>>),
    Other(UnsyncBoxBody<Bytes, Status>),
}

impl Body {
    /// Creates an empty body.
    pub const fn empty() -> Self {
        Self { inner: Inner::Empty }
    }

    /// Wraps a body of messages, which [`poll_encode`](Self::poll_encode) can encode.
    pub(crate) fn messages(body: impl EncodeMessages + Send + 'static) -> Self {
        Self { inner: Inner::Messages(Box::pin(body)) }
    }

    /// Wraps a body. One of this type is not wrapped again, an empty one not at all.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        let mut body = Some(body);
        if let Some(body) = (&mut body as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return body.take().unwrap_or_default();
        }
        let boxed = |body: B| body.map_err(|error| Status::from_error(error.into())).boxed_unsync();
        Self { inner: body.map_or(Inner::Empty, |body| Inner::Other(boxed(body))) }
    }

    /// Encodes messages into their sender's own buffer; see [`EncodeMessages`]. `None` for other bodies, which only
    /// have frames.
    #[doc(hidden)]
    pub fn poll_encode(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Chain,
        len_max: usize,
        note: &mut dyn FnMut(usize),
    ) -> Option<Poll<()>> {
        match &mut self.inner {
            Inner::Messages(body) => Some(body.as_mut().poll_encode(cx, out, len_max, note)),
            Inner::Empty | Inner::Other(_) => None,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.inner {
            Inner::Empty => Poll::Ready(None),
            Inner::Messages(body) => body.as_mut().poll_frame(cx),
            Inner::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Messages(body) => body.size_hint(),
            Inner::Other(body) => body.size_hint(),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Empty => true,
            Inner::Messages(body) => body.is_end_stream(),
            Inner::Other(body) => body.is_end_stream(),
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Messages(_) => f.write_str("Messages"),
            Self::Other(body) => body.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use http_body_util::Full;

    use super::*;
    use crate::Code;

    #[tokio::test]
    async fn bodies_are_wrapped_once() {
        let body = Body::new(Body::new(Full::from("text")));
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(4), false));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "text");
        for empty in
            [Body::empty(), Body::default(), Body::new(Full::<Bytes>::default()), Body::new(Body::empty())]
        {
            assert!(
                matches!(empty.inner, Inner::Empty)
                    && empty.is_end_stream()
                    && empty.size_hint().exact() == Some(0)
            );
        }
        let nested = Body::new(Body::new(Body::new(Full::from("text"))));
        assert_eq!(format!("{nested:?}"), format!("{:?}", Body::new(Full::from("text"))));
    }

    #[tokio::test]
    async fn errors_become_statuses() {
        let failing = http_body_util::StreamBody::new(tokio_stream::once(Err::<Frame<Bytes>, _>("broken")));
        let status = Body::new(failing).collect().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unknown, "broken"));
    }
}
