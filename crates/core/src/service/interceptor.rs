//! [`Interceptor`]: sees the metadata and extensions of each request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::server::NamedService;
use crate::{Request, Status};

/// Sees each request before the service, and may change its metadata and extensions or end the call.
///
/// ```
/// use thalweg_core::service::Interceptor;
/// use thalweg_core::{Request, Status};
///
/// fn check_token(request: Request<()>) -> Result<Request<()>, Status> {
///     match request.metadata().get("authorization") {
///         Some(token) if token == "Bearer secret" => Ok(request),
///         _ => Err(Status::unauthenticated("no valid token")),
///     }
/// }
///
/// let status = { check_token }.call(Request::new(())).unwrap_err();
/// assert_eq!(status.message(), "no valid token");
/// ```
///
/// It sees neither messages nor responses; for these, write a tower layer.
pub trait Interceptor {
    /// Returns the request as it continues, or the status with which the call ends.
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status>;
}

impl<F: FnMut(Request<()>) -> Result<Request<()>, Status>> Interceptor for F {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        self(request)
    }
}

/// A layer that adds an interceptor to a service.
#[derive(Clone, Copy, Debug)]
pub struct InterceptorLayer<I> {
    interceptor: I,
}

impl<I> InterceptorLayer<I> {
    /// Creates the layer.
    pub fn new(interceptor: I) -> Self {
        Self { interceptor }
    }
}

impl<S, I: Clone> Layer<S> for InterceptorLayer<I> {
    type Service = InterceptedService<S, I>;

    fn layer(&self, service: S) -> Self::Service {
        InterceptedService::new(service, self.interceptor.clone())
    }
}

/// A service with an interceptor.
#[derive(Clone, Copy)]
pub struct InterceptedService<S, I> {
    inner: S,
    interceptor: I,
}

impl<S, I> InterceptedService<S, I> {
    /// Adds an interceptor to a service.
    pub fn new(service: S, interceptor: I) -> Self {
        Self { inner: service, interceptor }
    }
}

impl<S: fmt::Debug, I> fmt::Debug for InterceptedService<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterceptedService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S: NamedService, I> NamedService for InterceptedService<S, I> {
    const NAME: &'static str = S::NAME;
}

impl<S, I, ReqBody, ResBody> Service<http::Request<ReqBody>> for InterceptedService<S, I>
where
    S: Service<http::Request<ReqBody>, Response = http::Response<ResBody>>,
    I: Interceptor,
{
    type Response = http::Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<ReqBody>) -> Self::Future {
        let (head, body) = request.into_parts();
        let (method, uri, version) = (head.method.clone(), head.uri.clone(), head.version);
        match self.interceptor.call(Request::from_http_parts(head, ())) {
            Ok(request) => {
                let request = request.into_http(uri, method, version, false).map(|()| body);
                ResponseFuture::Called { future: self.inner.call(request) }
            }
            Err(status) => ResponseFuture::Ended { status: Some(status) },
        }
    }
}

pin_project! {
    /// The response of an [`InterceptedService`].
    #[derive(Debug)]
    #[project = ResponseFutureProjection]
    pub enum ResponseFuture<F> {
        /// The service is called.
        #[doc(hidden)]
        Called {
            #[pin]
            future: F,
        },
        /// The interceptor ended the call.
        #[doc(hidden)]
        Ended {
            status: Option<Status>,
        },
    }
}

impl<F, E, B> Future for ResponseFuture<F>
where
    F: Future<Output = Result<http::Response<B>, E>>,
{
    type Output = Result<http::Response<ResponseBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            ResponseFutureProjection::Called { future } => {
                let response = ready!(future.poll(cx))?;
                Poll::Ready(Ok(response.map(|body| ResponseBody { inner: Some(body) })))
            }
            ResponseFutureProjection::Ended { status } => {
                let status = status.take().expect("polled after completion");
                Poll::Ready(Ok(status.into_http::<()>().map(|()| ResponseBody { inner: None })))
            }
        }
    }
}

pin_project! {
    /// The body of a response, or none if the interceptor ended the call.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        inner: Option<B>,
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

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;
    use crate::Code;
    use crate::service::testing::Echo;

    fn interceptor(mut request: Request<()>) -> Result<Request<()>, Status> {
        if request.metadata().get("token").is_none() {
            return Err(Status::unauthenticated("no token"));
        }
        request.metadata_mut().insert("seen", "yes".parse().unwrap());
        request.extensions_mut().insert(5_u8);
        Ok(request)
    }

    fn request() -> http::Request<Full<bytes::Bytes>> {
        let builder = http::Request::builder().uri("/s/m").method("POST").version(http::Version::HTTP_2);
        builder.header("user-agent", "a/1").extension("kept").body(Full::from("body")).unwrap()
    }

    #[tokio::test]
    async fn request_keeps_all_that_the_interceptor_leaves() {
        let mut service = InterceptorLayer::new(interceptor).layer(Echo);
        let mut request = request();
        request.headers_mut().insert("token", "t".parse().unwrap());
        let response = service.call(request).await.unwrap();
        let (head, body) = response.into_parts();
        assert!(["token", "seen", "user-agent"].iter().all(|name| head.headers.contains_key(*name)));
        assert_eq!((head.extensions.get(), head.extensions.get()), (Some(&5_u8), Some(&"kept")));
        assert_eq!(head.headers["echo"], "POST /s/m HTTP/2.0");
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(4), false));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "body");
    }

    #[tokio::test]
    async fn refused_call_ends_with_the_status() {
        let mut service = InterceptedService::new(Echo, interceptor);
        assert_eq!(format!("{service:?}"), "InterceptedService { inner: Echo, .. }");
        let response = service.call(request()).await.unwrap();
        assert_eq!(Status::from_header_map(response.headers()).unwrap().code(), Code::Unauthenticated);
        let body = response.into_body();
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
        assert!(body.collect().await.unwrap().to_bytes().is_empty());
    }

    #[test]
    fn name_is_that_of_the_service() {
        fn name<S: NamedService>(_: &S) -> &'static str {
            S::NAME
        }
        assert_eq!(name(&InterceptedService::new(Echo, interceptor)), "echo.Echo");
    }
}
