//! An engine channel as a service of HTTP requests.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use thalweg_engine::{self as engine, RawBody};
use tower::Service;
use vocabulary::Status;

use super::wait_for_ready::WaitForReady;
use crate::body::Body;
use crate::status::to_tonic;
use crate::transport::timeout::SentTo;

/// A channel of the engine.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) engine: engine::Channel,
    /// Number of waiting calls from which it is not ready for more.
    waiting_max: usize,
    /// Identifies this handle while it is not ready.
    ticket: Option<u64>,
}

impl Connection {
    pub(super) fn new(engine: engine::Channel, waiting_max: usize) -> Self {
        Self { engine, waiting_max: waiting_max.max(1), ticket: None }
    }
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self::new(self.engine.clone(), self.waiting_max)
    }
}

type EngineCall = Pin<Box<dyn Future<Output = Result<Response<RawBody>, engine::Status>> + Send>>;

/// A pending response.
pub(super) struct CallFuture(EngineCall);

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = Status;
    type Future = CallFuture;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let Self { engine, waiting_max, ticket } = self;
        engine.poll_ready(*waiting_max, ticket, cx).map(Ok)
    }

    fn call(&mut self, request: Request<Body>) -> CallFuture {
        let options = self.engine.call_options();
        let extensions = request.extensions();
        let (waits, peer) = (extensions.get::<WaitForReady>(), extensions.get::<SentTo>());
        if waits.is_none() && peer.is_none() {
            return CallFuture(Box::pin(self.engine.raw(request, options)));
        }
        let mut options = options.clone();
        options.wait_for_ready = waits.map_or(options.wait_for_ready, |WaitForReady(waits)| Some(*waits));
        options.peer = peer.map(|SentTo(peer)| peer.clone());
        CallFuture(Box::pin(self.engine.raw(request, &options)))
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
