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
use tonic::Status;
use tower::util::Oneshot;
use tower::{Service, ServiceExt};

use super::connect_info::Told;
use super::http1::OverHttp1;
use crate::transport::error::BoxError;

/// Routes all calls of a connection to its service.
pub(super) struct Calls {
    method: Arc<ServerMethod>,
    /// Serves the connection over HTTP/1.1, if allowed.
    http1: Option<Arc<dyn Http1>>,
}

impl Calls {
    pub(super) fn new<S>(service: S, told: Told, accepts_http1: bool) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
            + Clone
            + Send
            + 'static,
    {
        let http1 = accepts_http1
            .then(|| Arc::new(OverHttp1::new(service.clone(), Arc::clone(&told))) as Arc<dyn Http1>);
        let handler = Handler::raw(Answering { service: Mutex::new(service), told });
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

struct Answering<S> {
    service: Mutex<S>,
    told: Told,
}

/// Future of a service's response, including services that are not ready.
type Answer<S> = AnswerFuture<<S as Service<Request<Body>>>::Future, Oneshot<S, Request<Body>>>;

impl<S> RawHandler for Answering<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
{
    type Head = ();
    type RequestBody = Body;
    type Body = Body;
    type Future = Answer<S>;

    fn read_head(&self, _: &RawHead<'_>) {}

    fn start(&self, head: &RawHead<'_>, (): &(), body: Body) -> Self::Future {
        let mut request = head.to_request(body);
        *request.extensions_mut() = (self.told)(head.connection);
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // `oneshot` waits for a service that is not ready.
        match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => AnswerFuture::Called { future: service.call(request) },
            _ => AnswerFuture::Waits { future: service.oneshot(request) },
        }
    }
}

pin_project! {
    #[project = AnswerProjection]
    pub(super) enum AnswerFuture<F, W> {
        Called { #[pin] future: F },
        Waits { #[pin] future: W },
    }
}

impl<F, W> Future for AnswerFuture<F, W>
where
    F: Future<Output = Result<Response<Body>, BoxError>>,
    W: Future<Output = Result<Response<Body>, BoxError>>,
{
    type Output = Response<Body>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match self.project() {
            AnswerProjection::Called { future } => ready!(future.poll(cx)),
            AnswerProjection::Waits { future } => ready!(future.poll(cx)),
        };
        Poll::Ready(match outcome {
            Ok(response) => response,
            // Errors that represent a status have already become responses.
            Err(error) => Response::new(Body::failed(Status::from_error(error))),
        })
    }
}
