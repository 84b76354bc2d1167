//! Calls of a channel of the engine's, as requests and responses of HTTP.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::body::Body;
use http::{Request, Response};
use thalweg_engine::CallOptions;
use tonic::Status;
use tower::Service;

use crate::body::to_tonic;
use crate::transport::wire::Sent;

/// A channel of the engine's.
#[derive(Clone, Debug)]
pub(super) struct Connection(pub(super) thalweg_engine::Channel);

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let channel = self.0.clone();
        Box::pin(async move {
            let answer = channel.raw(request.map(Sent::Body), &CallOptions::default()).await;
            answer.map(|response| response.map(Body::received)).map_err(to_tonic)
        })
    }
}
