//! [`RecoverError`]: errors of a service become responses.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::Status;
use crate::error::BoxError;

/// A layer that adds [`RecoverError`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecoverErrorLayer;

impl RecoverErrorLayer {
    /// Creates the layer.
    pub fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for RecoverErrorLayer {
    type Service = RecoverError<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RecoverError::new(inner)
    }
}

/// A service whose errors that [stand for a status](Status::try_from_error) become responses with that status. Others
/// remain errors.
#[derive(Clone, Debug)]
pub struct RecoverError<S> {
    inner: S,
}

impl<S> RecoverError<S> {
    /// Wraps a service.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, R, ResBody> Service<R> for RecoverError<S>
where
    S: Service<R, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        ResponseFuture { future: self.inner.call(request) }
    }
}

pin_project! {
    /// The response of a [`RecoverError`].
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<F, E, ResBody> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<ResBody>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<ResponseBody<ResBody>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.project().future.poll(cx)) {
            Ok(response) => Ok(response.map(|body| ResponseBody { inner: Some(body) })),
            Err(error) => Status::try_from_error(error.into())
                .map(|status| status.into_http::<()>().map(|()| ResponseBody { inner: None })),
        })
    }
}

pin_project! {
    /// The body of a response, or none after an error.
    pub struct ResponseBody<B> {
        #[pin]
        inner: Option<B>,
    }
}

impl<B> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

impl<B: Body> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().inner.as_pin_mut().map_or(Poll::Ready(None), |body| body.poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;
    use crate::service::testing::{Echo, Failing};
    use crate::{Code, TimeoutExpired};

    fn request() -> http::Request<Full<bytes::Bytes>> {
        http::Request::new(Full::from("body"))
    }

    #[tokio::test]
    async fn errors_with_a_status_become_responses() {
        let layer = RecoverErrorLayer::new();
        let response = layer.layer(Failing(|| Box::new(TimeoutExpired(())))).call(request()).await.unwrap();
        assert_eq!(Status::from_header_map(response.headers()).unwrap().code(), Code::Cancelled);
        assert!(response.body().is_end_stream() && response.body().size_hint().exact() == Some(0));
        let error = layer.layer(Failing(|| "other".into())).call(request()).await.unwrap_err();
        assert_eq!(error.to_string(), "other");
        let response = layer.layer(Echo).call(request()).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "body");
    }
}
