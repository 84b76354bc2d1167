//! [`Body`]: a body of any type.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use crate::Status;
use crate::error::BoxError;

/// The body of a request or response, of any type.
#[derive(Debug, Default)]
pub struct Body {
    inner: Option<UnsyncBoxBody<Bytes, Status>>,
}

impl Body {
    /// Creates an empty body.
    pub const fn empty() -> Self {
        Self { inner: None }
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
        let inner = body.map(|body| body.map_err(|error| Status::from_error(error.into())).boxed_unsync());
        Self { inner }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.inner.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(cx))
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or(SizeHint::with_exact(0), http_body::Body::size_hint)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(http_body::Body::is_end_stream)
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
            assert!(empty.inner.is_none() && empty.is_end_stream() && empty.size_hint().exact() == Some(0));
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
