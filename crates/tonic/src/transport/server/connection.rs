//! The calls of one connection, from the engine to a service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use crate::body::Body;
use http::{Request, Response};
use pin_project_lite::pin_project;
use thalweg_engine::server::{Handler, RawHandler, Router, ServerMethod};
use thalweg_engine::{self as engine, ConnectionInfo, RawBody, ServiceOptions};
use tonic::Status;
use tower::util::Oneshot;
use tower::{Service, ServiceExt};

use super::connect_info::Told;
use crate::transport::error::BoxError;
use crate::transport::wire::Sent;

/// What the calls of one connection go to.
pub(super) struct Calls {
    method: Arc<ServerMethod>,
}

impl Calls {
    pub(super) fn new<S>(service: S, told: Told) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
            + Clone
            + Send
            + 'static,
    {
        let handler = Answering { service: Mutex::new(service), told };
        Self { method: Arc::new(ServerMethod::new("", ServiceOptions::default(), Handler::raw(handler))) }
    }
}

impl Router for Calls {
    fn find(&self, _: &[u8]) -> Result<Arc<ServerMethod>, engine::Status> {
        Ok(Arc::clone(&self.method))
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

impl<S> RawHandler for Answering<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
{
    type Body = Sent;
    type Future = AnswerFuture<Oneshot<S, Request<Body>>>;

    fn start(&self, request: Request<RawBody>, connection: Option<&Arc<ConnectionInfo>>) -> Self::Future {
        let mut request = request.map(Body::received);
        (self.told)(request.extensions_mut(), connection);
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        AnswerFuture { future: service.oneshot(request) }
    }
}

pin_project! {
    pub(super) struct AnswerFuture<F> {
        #[pin]
        future: F,
    }
}

impl<F> Future for AnswerFuture<F>
where
    F: Future<Output = Result<Response<Body>, BoxError>>,
{
    type Output = Response<Sent>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.project().future.poll(cx)) {
            Ok(response) => response.map(Sent::Body),
            // What stands for a status is a response by now.
            Err(error) => Response::new(Sent::Failed(Some(Status::from_error(error)))),
        })
    }
}
