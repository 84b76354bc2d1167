//! Dispatch of a connection's calls from the engine to a service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use crate::body::Body;
use http::{Request, Response};
use pin_project_lite::pin_project;
use thalweg_engine::raw::RawHead;
use thalweg_engine::server::{Handler, Http1, RawHandler, Router, ServerMethod};
use thalweg_engine::{self as engine, ServiceOptions};
use tower::util::Oneshot;
use tower::{Service, ServiceExt};
use vocabulary::Status;

use super::connect_info::RequestExtensions;
use super::http1::Http1Service;
use crate::transport::error::BoxError;

/// Routes all calls of a connection to its service.
pub(super) struct Calls {
    method: Arc<ServerMethod>,
    /// Serves the connection over HTTP/1.1, if allowed.
    http1: Option<Arc<dyn Http1>>,
}

impl Calls {
    pub(super) fn new<S>(service: S, extensions: RequestExtensions, accepts_http1: bool) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
            + Clone
            + Send
            + 'static,
    {
        let http1 = accepts_http1
            .then(|| Arc::new(Http1Service::new(service.clone(), Arc::clone(&extensions))) as Arc<dyn Http1>);
        let handler = Handler::raw(ServiceHandler { service: Mutex::new(service), extensions });
        Self { method: Arc::new(ServerMethod::new("", ServiceOptions::default(), handler)), http1 }
    }
}

impl Router for Calls {
    fn find(&self, _: &[u8]) -> Result<Arc<ServerMethod>, engine::Status> {
        Ok(Arc::clone(&self.method))
    }

    fn accepts_http1(&self) -> bool {
        self.http1.is_some()
    }

    fn http1(&self) -> Option<Arc<dyn Http1>> {
        self.http1.clone()
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}

struct ServiceHandler<S> {
    service: Mutex<S>,
    extensions: RequestExtensions,
}

/// Future of a service's response, including services that are not ready.
type ServiceFuture<S> =
    ServiceResponseFuture<<S as Service<Request<Body>>>::Future, Oneshot<S, Request<Body>>>;

impl<S> RawHandler for ServiceHandler<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
{
    type Head = ();
    type RequestBody = Body;
    type Body = Body;
    type Future = ServiceFuture<S>;

    fn read_head(&self, _: &RawHead<'_>) {}

    fn start(&self, head: &RawHead<'_>, (): &(), body: Body) -> Self::Future {
        let mut request = head.to_request(body);
        *request.extensions_mut() = (self.extensions)(head.connection);
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // `oneshot` waits for a service that is not ready.
        match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => ServiceResponseFuture::Called { future: service.call(request) },
            _ => ServiceResponseFuture::WhenReady { future: service.oneshot(request) },
        }
    }
}

pin_project! {
    #[project = ServiceResponseProjection]
    pub(super) enum ServiceResponseFuture<F, W> {
        Called { #[pin] future: F },
        WhenReady { #[pin] future: W },
    }
}

impl<F, W> Future for ServiceResponseFuture<F, W>
where
    F: Future<Output = Result<Response<Body>, BoxError>>,
    W: Future<Output = Result<Response<Body>, BoxError>>,
{
    type Output = Response<Body>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match self.project() {
            ServiceResponseProjection::Called { future } => ready!(future.poll(cx)),
            ServiceResponseProjection::WhenReady { future } => ready!(future.poll(cx)),
        };
        Poll::Ready(match outcome {
            Ok(response) => response,
            // Errors that represent a status have already become responses.
            Err(error) => Response::new(Body::failed(Status::from_error(error))),
        })
    }
}
