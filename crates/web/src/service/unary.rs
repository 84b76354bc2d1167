//! Unary calls that are not gRPC: [`Form`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use thalweg_engine::server::{HandlerCost, LocalAnswer, LocalUnary};
use thalweg_engine::{RequestHead, RequestShare, Status};

use crate::body::Body;
use crate::deadline::Deadline;

/// A unary call in the form that the head of its request has said: how its message is read, and its answer written.
/// Requests with equal heads share it.
pub(super) trait Form: Send + Sync + 'static {
    /// How long its calls keep the processor.
    fn cost(&self) -> &HandlerCost;

    /// What the caller has said besides.
    fn asked(&self) -> &RequestHead;

    /// How long a body may be, in bytes.
    fn size_max(&self) -> usize;

    /// The message that a body is.
    ///
    /// # Errors
    /// The answer to one that can't be read.
    #[expect(clippy::result_large_err, reason = "the answer is on its way: it is no error")]
    fn read(&self, body: Bytes) -> Result<Bytes, Response<Body>>;

    /// Calls the method.
    fn call(&self, asked: &RequestHead, message: Bytes) -> LocalUnary;

    /// What the call comes to.
    fn answer(&self, outcome: Result<LocalAnswer, Status>) -> Response<Body>;

    /// The answer where the body can't be had.
    fn failure(&self, status: Status) -> Response<Body>;
}

/// A call whose request is there.
pub(super) struct Unary {
    form: Arc<dyn Form>,
    stage: Stage,
}

impl Unary {
    /// The call whose message `body` is: it begins when it is polled.
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

/// The call whose message is to come, or takes long to read.
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
            // Nobody says after how many bytes.
            share.decoded(form.size_max());
            return answer;
        }
    };
    // The handler has it as long as the call goes on.
    share.hold(message.len());
    let call = match deadline.left() {
        None => form.call(form.asked(), message),
        left => form.call(&RequestHead { timeout: left, ..form.asked().clone() }, message),
    };
    form.answer(call.await)
}
