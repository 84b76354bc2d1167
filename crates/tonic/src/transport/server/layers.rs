//! Layers around the calls of a connection: timeouts and limits that the engine does not have, and spans.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{Service, ServiceBuilder};
use tracing::Span;
use vocabulary::Status;

use super::connect_info::RequestExtensions;
use super::connection::Calls;
use crate::transport::error::BoxError;
use crate::transport::timeout::Timeout;

pub(super) type TraceFn = dyn Fn(&Request<()>) -> Span + Send + Sync;

/// A server's settings for calls.
#[derive(Clone, Default)]
pub(super) struct CallSettings {
    pub(super) concurrency: Option<usize>,
    pub(super) load_shed: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) trace: Option<Arc<TraceFn>>,
    pub(super) accepts_http1: bool,
}

impl CallSettings {
    /// Wraps a connection's `service` in the layers and puts `extensions` into the extensions of its requests. Errors
    /// that represent a status become responses.
    pub(super) fn calls<S, B>(&self, service: S, extensions: RequestExtensions) -> Calls
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<BoxError> + Send + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if self.concurrency.is_none() && !self.load_shed {
            // The common case avoids the cost of the other layers.
            let service = Timeout::new(service, self.timeout);
            let service = Traced { service, trace: self.trace.clone() };
            return Calls::new(service, extensions, self.accepts_http1);
        }
        Calls::new(self.service(service), extensions, self.accepts_http1)
    }

    /// Wraps `service` in all layers.
    fn service<S, B>(
        &self,
        service: S,
    ) -> impl Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
    + Clone
    + Send
    + 'static
    + use<S, B>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<BoxError> + Send + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = ServiceBuilder::new()
            .option_layer(self.load_shed.then(LoadShedLayer::new))
            .option_layer(self.concurrency.map(ConcurrencyLimitLayer::new))
            .service(Timeout::new(service, self.timeout));
        Traced { service, trace: self.trace.clone() }
    }
}

impl fmt::Debug for CallSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { concurrency, load_shed, timeout, trace, accepts_http1 } = self;
        let fields = (concurrency, load_shed, timeout, trace.is_some(), accepts_http1);
        f.debug_tuple("CallSettings").field(&fields).finish()
    }
}

/// Handles calls in spans created by `trace`.
#[derive(Clone)]
struct Traced<S> {
    service: S,
    trace: Option<Arc<TraceFn>>,
}

impl<S, B> Service<Request<Body>> for Traced<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = TracedFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(trace) = &self.trace else {
            return TracedFuture { future: self.service.call(request), span: Span::none() };
        };
        let (parts, body) = request.into_parts();
        let bodiless = Request::from_parts(parts, ());
        let span = trace(&bodiless);
        let (parts, ()) = bodiless.into_parts();
        let entered = span.enter();
        let future = self.service.call(Request::from_parts(parts, body));
        drop(entered);
        TracedFuture { future, span }
    }
}

pin_project! {
    struct TracedFuture<F> {
        #[pin]
        future: F,
        span: Span,
    }
}

impl<F, B> Future for TracedFuture<F>
where
    F: Future<Output = Result<Response<B>, BoxError>>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<Body>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let _entered = this.span.enter();
        this.future.poll(cx).map(|outcome| match outcome {
            Ok(response) => Ok(response.map(Body::new)),
            // Errors that represent a status become responses.
            Err(error) => Status::try_from_error(error).map(Status::into_http),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt, service_fn};
    use vocabulary::{Code, Status};

    use super::*;

    /// Makes `calls` concurrent calls of a handler that takes a second. Returns their codes and the duration in
    /// seconds.
    async fn run(settings: CallSettings, calls: usize) -> (Vec<Code>, u64) {
        let handler = service_fn(async |_: Request<Body>| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let started = tokio::time::Instant::now();
        let service = settings.service(handler);
        let calling: Vec<_> =
            (0..calls).map(|_| tokio::spawn(service.clone().oneshot(Request::new(Body::empty())))).collect();
        let mut codes = Vec::new();
        for call in calling {
            let response = call.await.unwrap().expect("failures are responses, too");
            codes.push(Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code()));
        }
        (codes, started.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn limits_and_timeout_apply() {
        let none = CallSettings::default;
        assert_eq!(run(none(), 3).await, (vec![Code::Ok; 3], 1));
        assert_eq!(run(CallSettings { concurrency: Some(1), ..none() }, 3).await, (vec![Code::Ok; 3], 3));
        let sheds = CallSettings { concurrency: Some(1), load_shed: true, ..none() };
        let (mut codes, seconds) = run(sheds, 3).await;
        codes.sort_by_key(|code| i32::from(*code));
        assert_eq!((codes, seconds), (vec![Code::Ok, Code::ResourceExhausted, Code::ResourceExhausted], 1));
        let timeout = Some(Duration::from_millis(500));
        assert_eq!(run(CallSettings { timeout, ..none() }, 2).await, (vec![Code::Cancelled; 2], 0));
    }

    #[tokio::test]
    async fn non_status_error_ends_call() {
        let fails = service_fn(async |_: Request<Body>| Err::<Response<Body>, _>(BoxError::from("broken")));
        let outcome = CallSettings::default().service(fails).oneshot(Request::new(Body::empty())).await;
        assert_eq!(outcome.unwrap_err().to_string(), "broken");
    }

    #[tokio::test]
    async fn span_is_created_from_headers() {
        let recorded = Arc::new(std::sync::Mutex::new(Vec::new()));
        let recorder = Arc::clone(&recorded);
        let trace: Arc<TraceFn> = Arc::new(move |bodiless: &Request<()>| {
            recorder.lock().unwrap().push((bodiless.uri().to_string(), bodiless.headers().len()));
            Span::none()
        });
        let handler = service_fn(async |request: Request<Body>| {
            assert_eq!((request.uri().path(), request.headers().len()), ("/shop.Shop/Buy", 1));
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let request = Request::builder().uri("/shop.Shop/Buy").header("te", "trailers");
        let request = request.body(Body::empty()).unwrap();
        let settings = CallSettings { trace: Some(trace), ..CallSettings::default() };
        settings.service(handler).oneshot(request).await.unwrap();
        assert_eq!(*recorded.lock().unwrap(), [("/shop.Shop/Buy".to_owned(), 1)]);
    }
}
