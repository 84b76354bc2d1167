//! Calls of clients from crates that use tonic itself, and so its own body.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower::Service;

use super::handle::{Channel, ResponseFuture};
use crate::body::Body;
use crate::transport::error::Error;

impl Service<Request<vocabulary::body::Body>> for Channel {
    type Response = Response<vocabulary::body::Body>;
    type Error = Error;
    type Future = TonicsResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Service::<Request<Body>>::poll_ready(self, cx)
    }

    fn call(&mut self, request: Request<vocabulary::body::Body>) -> TonicsResponseFuture {
        TonicsResponseFuture { future: self.call(request.map(Body::new)) }
    }
}

pin_project! {
    /// Like [`ResponseFuture`], with tonic's own body type.
    pub struct TonicsResponseFuture {
        #[pin]
        future: ResponseFuture,
    }
}

impl Future for TonicsResponseFuture {
    type Output = Result<Response<vocabulary::body::Body>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().future.poll(cx).map_ok(|response| response.map(Into::into))
    }
}
