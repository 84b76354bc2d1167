//! Unary non-gRPC calls: [`Form`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use thalweg_engine::server::{HandlerCost, LocalResponse, LocalUnary};
use thalweg_engine::{RequestHead, RequestShare, Status};

use crate::body::Body;
use crate::deadline::Deadline;

/// A unary call as described by its request headers: reads the message and writes the response. Requests with identical
/// header blocks share it.
pub(super) trait Form: Send + Sync + 'static {
    /// Returns the CPU time of its calls.
    fn cost(&self) -> &HandlerCost;

    /// Returns the metadata, timeout and connection of the request.
    fn asked(&self) -> &RequestHead;

    /// Returns the maximum size of a body, in bytes.
    fn size_max(&self) -> usize;

    /// Decodes the message in a body.
    ///
    /// # Errors
    /// The response to a malformed body.
    #[expect(clippy::result_large_err, reason = "the answer is on its way: it is no error")]
    fn read(&self, body: Bytes) -> Result<Bytes, Response<Body>>;

    fn call(&self, asked: &RequestHead, message: Bytes) -> LocalUnary;

    /// Returns the response for the outcome of the call.
    fn answer(&self, outcome: Result<LocalResponse, Status>) -> Response<Body>;

    /// Returns the response if the body cannot be received.
    fn failure(&self, status: Status) -> Response<Body>;
}

/// A call whose request is complete.
pub(super) struct Unary {
    form: Arc<dyn Form>,
    stage: Stage,
}

impl Unary {
    /// Creates a call with the message `body`. It starts when polled.
    pub(super) fn new(form: Arc<dyn Form>, body: Bytes) -> Unary {
        Unary { form, stage: Stage::Sent(body) }
    }
}

enum Stage {
    Sent(Bytes),
    Called(LocalUnary),
}

impl Future for Unary {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<Body>> {
        let Unary { form, stage } = &mut *self;
        if let Stage::Sent(body) = stage {
            match form.read(std::mem::take(body)) {
                Ok(message) => *stage = Stage::Called(form.call(form.asked(), message)),
                Err(answer) => return Poll::Ready(answer),
            }
        }
        let Stage::Called(call) = stage else { return Poll::Pending };
        let outcome = ready!(Pin::new(call).poll(cx));
        Poll::Ready(form.answer(outcome))
    }
}

/// Makes a call whose message is incomplete or slow to read.
pub(super) async fn gather(form: Arc<dyn Form>, body: Body, mut share: RequestShare) -> Response<Body> {
    let deadline = Deadline::after(form.asked().timeout);
    let read = match deadline.gather(body, form.size_max(), &mut share).await {
        Ok(whole) => {
            let len = whole.len();
            form.read(whole).inspect(|message| share.decoded(len.max(message.len())))
        }
        Err(status) => return form.failure(status),
    };
    let message = match read {
        Ok(message) => message,
        Err(answer) => {
            // The position of the error is unknown, so the maximum is counted.
            share.decoded(form.size_max());
            return answer;
        }
    };
    // The handler holds it during the call.
    share.hold(message.len());
    let call = match deadline.left() {
        None => form.call(form.asked(), message),
        left => form.call(&RequestHead { timeout: left, ..form.asked().clone() }, message),
    };
    form.answer(call.await)
}
