//! Unary non-gRPC calls: [`UnaryAdapter`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use thalweg_engine::server::{HandlerCost, LocalResponse, LocalUnary};
use thalweg_engine::{RequestAccounting, RequestHead, Status};

use crate::body::Body;
use crate::deadline::Deadline;

/// A unary call as described by its request headers: reads the message and writes the response. Requests with identical
/// header blocks share it.
pub(super) trait UnaryAdapter: Send + Sync + 'static {
    /// Returns the CPU time of its calls.
    fn cost(&self) -> &HandlerCost;

    /// Returns the metadata, timeout and connection of the request.
    fn request_head(&self) -> &RequestHead;

    /// Returns the maximum size of a body, in bytes.
    fn size_max(&self) -> usize;

    /// Decodes the message in a body.
    ///
    /// # Errors
    /// The response to a malformed body.
    #[expect(clippy::result_large_err, reason = "the `Err` is a finished response")]
    fn read(&self, body: Bytes) -> Result<Bytes, Response<Body>>;

    fn call(&self, request_head: &RequestHead, message: Bytes) -> LocalUnary;

    /// Returns the response for the outcome of the call.
    fn response(&self, outcome: Result<LocalResponse, Status>) -> Response<Body>;

    /// Returns the response if the body cannot be received.
    fn failure(&self, status: Status) -> Response<Body>;
}

/// A call whose request is complete.
pub(super) struct Unary {
    adapter: Arc<dyn UnaryAdapter>,
    stage: Stage,
}

impl Unary {
    /// Creates a call with the message `body`. It starts when polled.
    pub(super) fn new(adapter: Arc<dyn UnaryAdapter>, body: Bytes) -> Unary {
        Unary { adapter, stage: Stage::Sent(body) }
    }
}

enum Stage {
    Sent(Bytes),
    Called(LocalUnary),
}

impl Future for Unary {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<Body>> {
        let Unary { adapter, stage } = &mut *self;
        if let Stage::Sent(body) = stage {
            match adapter.read(std::mem::take(body)) {
                Ok(message) => *stage = Stage::Called(adapter.call(adapter.request_head(), message)),
                Err(response) => return Poll::Ready(response),
            }
        }
        let Stage::Called(call) = stage else { return Poll::Pending };
        let outcome = ready!(Pin::new(call).poll(cx));
        Poll::Ready(adapter.response(outcome))
    }
}

/// Makes a call whose message is incomplete or slow to read.
pub(super) async fn collect_and_call(
    adapter: Arc<dyn UnaryAdapter>,
    body: Body,
    mut accounting: RequestAccounting,
) -> Response<Body> {
    let deadline = Deadline::after(adapter.request_head().timeout);
    let read = match deadline.collect_bytes(body, adapter.size_max(), &mut accounting).await {
        Ok(bytes) => {
            let len = bytes.len();
            adapter.read(bytes).inspect(|message| accounting.decoded(len.max(message.len())))
        }
        Err(status) => return adapter.failure(status),
    };
    let message = match read {
        Ok(message) => message,
        Err(response) => {
            // The position of the error is unknown, so the maximum is counted.
            accounting.decoded(adapter.size_max());
            return response;
        }
    };
    // The handler holds it during the call.
    accounting.set_bytes(message.len());
    let call = match deadline.remaining() {
        None => adapter.call(adapter.request_head(), message),
        left => adapter.call(&RequestHead { timeout: left, ..adapter.request_head().clone() }, message),
    };
    adapter.response(call.await)
}
