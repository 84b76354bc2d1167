//! Calls of a channel of the engine's, as requests and responses of HTTP.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::Service;

/// A channel of the engine's.
#[derive(Clone, Debug)]
pub(super) struct Connection(
    #[expect(dead_code, reason = "what carries a request of HTTP over it is not there yet")]
    pub(super)  thalweg_engine::Channel,
);

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Ready<Result<Response<Body>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Err(Status::unimplemented("thalweg-tonic does not carry calls yet")))
    }
}
