//! An engine channel as a service of HTTP requests.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use thalweg_engine::{self as engine, CallOptions, RawBody};
use tonic::Status;
use tower::Service;

use crate::body::{Body, to_tonic};

/// A channel of the engine.
#[derive(Clone, Debug)]
pub(super) struct Connection(pub(super) engine::Channel);

type EngineCall = Pin<Box<dyn Future<Output = Result<Response<RawBody>, engine::Status>> + Send>>;

/// A pending response.
pub(super) struct CallFuture(EngineCall);

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = Status;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> CallFuture {
        CallFuture(Box::pin(self.0.raw(request, &CallOptions::default())))
    }
}

impl Future for CallFuture {
    type Output = Result<Response<Body>, Status>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(response)) => Poll::Ready(Ok(response.map(Body::from))),
            Poll::Ready(Err(status)) => Poll::Ready(Err(to_tonic(status))),
        }
    }
}
