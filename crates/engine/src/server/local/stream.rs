//! In-process streaming calls: [`LocalStream`].

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;

use super::run;
use crate::grpc::codec;
use crate::grpc::request::RequestHead;
use crate::measure::{self, CallMeasure};
use crate::server::deadline::{self, Deadline};
use crate::server::dispatch::{CallFuture, ServerMethod};
use crate::server::exchange::{
    LocalExchange, LocalFuture, LocalOutcome, LocalResponder, Next, RequestStream, StreamingCall,
};
use crate::status::{self, Code, Status};

/// An in-process streaming call. Read the initial metadata ([`headers`](Self::headers)), the [`Stream`] of responses,
/// and then the [trailing metadata](Self::take_trailers); a status may replace each.
///
/// The handler runs while this is polled and no response waits. It may send up to about 64 KiB ahead. Dropping this
/// cancels the handler. A call with a deadline must be polled within a tokio runtime.
#[must_use = "the handler only runs when polled"]
pub struct LocalStream {
    /// Dropped before the exchange is closed.
    running: Running,
    exchange: Arc<LocalExchange>,
    deadline: Deadline,
    is_waiting: bool,
    has_headers: bool,
    is_finished: bool,
    trailers: Option<HeaderMap>,
}

enum Running {
    Handler(CallFuture),
    /// Handler of a unary method.
    Unary(LocalFuture),
    /// Waiting for the request of a unary method.
    Gathering(Box<Gathering>),
    Over,
}

struct Gathering {
    method: Arc<ServerMethod>,
    head: RequestHead,
    requests: RequestStream,
    message: Option<Bytes>,
}

impl LocalStream {
    /// Calls `method`, if it was found.
    pub(super) fn start(
        method: Result<Arc<ServerMethod>, Status>,
        head: RequestHead,
        requests: RequestStream,
        measure: CallMeasure,
    ) -> Self {
        let deadline = Deadline::after(head.timeout);
        let exchange = Arc::new(LocalExchange::new(measure));
        let running = match method {
            Err(status) => {
                exchange.end(Err(status));
                Running::Over
            }
            Ok(method) if method.is_streaming() => {
                exchange.set_requests(requests);
                let responder = LocalResponder::new(Arc::clone(&exchange), &method.options);
                let call = StreamingCall::local(responder, exchange.measure.clone());
                let start = || method.handler.calls.start_local_stream(&head, call);
                if let Ok(future) = catch_unwind(AssertUnwindSafe(start)) {
                    Running::Handler(future)
                } else {
                    exchange.end(Err(status::panicked()));
                    Running::Over
                }
            }
            Ok(method) => Running::Gathering(Box::new(Gathering { method, head, requests, message: None })),
        };
        Self {
            running,
            exchange,
            deadline,
            is_waiting: false,
            has_headers: false,
            is_finished: false,
            trailers: None,
        }
    }

    /// Returns the initial metadata. Call it once, before reading messages.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// Returns the status if the call failed without a response. There are no messages then.
    pub async fn headers(&mut self) -> Result<HeaderMap, Status> {
        poll_fn(|cx| self.poll_headers(cx)).await
    }

    /// Polls for [`headers`](Self::headers).
    pub fn poll_headers(&mut self, cx: &mut Context<'_>) -> Poll<Result<HeaderMap, Status>> {
        if self.has_headers || self.is_finished {
            return Poll::Ready(Ok(HeaderMap::new()));
        }
        self.poll(LocalExchange::take_headers, cx).map(|headers| {
            self.has_headers = true;
            if headers.is_err() {
                self.finish();
            }
            headers
        })
    }

    /// Returns the next response, or `None` after the last.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// Returns the status of the call.
    pub async fn message(&mut self) -> Result<Option<Bytes>, Status> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await.transpose()
    }

    /// Takes the trailing metadata, available after the last response.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    /// Takes an available item, or else runs the handler.
    fn poll<T>(&mut self, take: fn(&LocalExchange) -> Option<T>, cx: &mut Context<'_>) -> Poll<T> {
        if std::mem::take(&mut self.is_waiting) {
            self.exchange.stop_waiting();
        }
        if let Some(taken) = take(&self.exchange) {
            return Poll::Ready(taken);
        }
        self.run(cx);
        if let Some(taken) = take(&self.exchange) {
            return Poll::Ready(taken);
        }
        // A task to which the handler moved the call may respond meanwhile.
        self.is_waiting = true;
        self.exchange.wait(cx);
        take(&self.exchange).map_or(Poll::Pending, Poll::Ready)
    }

    fn run(&mut self, cx: &mut Context<'_>) {
        if let Running::Gathering(gathering) = &mut self.running {
            let Poll::Ready(started) = gathering.poll(&self.exchange.measure, &mut self.deadline, cx) else {
                return;
            };
            match started {
                Ok(future) => self.running = Running::Unary(future),
                Err(outcome) => self.exchange.end(outcome),
            }
        }
        let ended = match &mut self.running {
            Running::Handler(future) => {
                deadline::poll_handler(future.as_mut(), &mut self.deadline, cx).map_ok(|()| None)
            }
            Running::Unary(future) => {
                deadline::poll_handler(future.as_mut(), &mut self.deadline, cx).map_ok(Some)
            }
            Running::Gathering(_) | Running::Over => Poll::Ready(Ok(None)),
        };
        match ended {
            Poll::Pending if self.exchange.has_ended() => self.running = Running::Over,
            Poll::Pending => {}
            Poll::Ready(Ok(outcome)) => {
                self.running = Running::Over;
                match outcome {
                    Some(Ok(response)) => self.exchange.respond(response),
                    Some(Err(outcome)) => self.exchange.end(outcome),
                    None => self.exchange.end(Err(no_response())),
                }
            }
            Poll::Ready(Err(status)) => {
                measure::drop_with_status(&status, std::mem::replace(&mut self.running, Running::Over));
                self.exchange.end(Err(status));
            }
        }
    }

    /// Ends the call after its outcome was returned.
    fn finish(&mut self) {
        self.is_finished = true;
        self.running = Running::Over;
        self.exchange.close();
    }
}

/// Returns the status of a call dropped by its handler.
fn no_response() -> Status {
    Status::new(Code::Cancelled, "the handler dropped the call without a response")
}

impl Gathering {
    /// Reads the only request and calls the handler.
    fn poll(
        &mut self,
        measure: &CallMeasure,
        deadline: &mut Deadline,
        cx: &mut Context<'_>,
    ) -> Poll<Result<LocalFuture, LocalOutcome>> {
        let refused = loop {
            match self.requests.as_mut().poll_next(cx) {
                Poll::Ready(None) => {
                    let Some(message) = self.message.take() else { break codec::no_message() };
                    return Poll::Ready(run::start_unary(&self.method, &self.head, message, measure));
                }
                Poll::Ready(Some(Ok(message))) => {
                    if self.message.replace(message).is_some() {
                        break codec::more_than_one_message();
                    }
                }
                Poll::Ready(Some(Err(status))) => break status,
                Poll::Pending => match deadline.poll(cx) {
                    Poll::Ready(()) => break status::deadline_exceeded_at("the request was not complete"),
                    Poll::Pending => return Poll::Pending,
                },
            }
        };
        measure.refused(&refused);
        Poll::Ready(Err(Err(refused)))
    }
}

impl Stream for LocalStream {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_finished {
            return Poll::Ready(None);
        }
        this.poll(LocalExchange::take_next, cx).map(|next| match next {
            Next::Message(message) => Some(Ok(message)),
            Next::Ended(ended) => {
                this.finish();
                match ended {
                    Ok(trailers) => {
                        this.trailers = Some(trailers);
                        None
                    }
                    Err(status) => Some(Err(status)),
                }
            }
        })
    }
}

impl Drop for LocalStream {
    fn drop(&mut self) {
        if !self.is_finished {
            self.finish();
        }
    }
}

impl fmt::Debug for LocalStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStream").field("is_finished", &self.is_finished).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Source;
    use crate::grpc::testing::Plain;
    use crate::options::ServiceOptions;
    use crate::server::dispatch::{Handler, StreamingHandler};

    const MESSAGE: &[u8] = &[7; 1024];

    /// A number of messages.
    struct Messages(usize);

    impl Stream for Messages {
        type Item = Result<Plain<'static>, Status>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let left = self.0.checked_sub(1);
            self.0 = left.unwrap_or_default();
            Poll::Ready(left.map(|_| Ok(Plain(MESSAGE))))
        }
    }

    impl Source for Messages {
        type Message = Plain<'static>;
    }

    /// Moves its call to another task, which sends this number of messages, or drops the call if 0.
    struct HandsCallToTask(usize);

    impl StreamingHandler for HandsCallToTask {
        fn start(&self, _: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let messages = Messages(self.0);
            let responding = tokio::spawn(async move {
                if messages.0 > 0 {
                    call.respond_stream(&HeaderMap::new(), messages, None).await;
                }
            });
            Box::pin(async move {
                responding.await.expect("no panic");
            })
        }
    }

    fn call(messages: usize) -> LocalStream {
        let handler = Handler::streaming(HandsCallToTask(messages));
        let method = Arc::new(ServerMethod::new("test.A/B", ServiceOptions::default(), handler));
        let head = RequestHead::new(HeaderMap::new(), None, None);
        let requests: RequestStream = Box::pin(NoRequests);
        LocalStream::start(Ok(method), head, requests, CallMeasure::default())
    }

    struct NoRequests;

    impl Stream for NoRequests {
        type Item = Result<Bytes, Status>;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(None)
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn another_task_may_respond() {
        let mut stream = call(10_000);
        stream.headers().await.unwrap();
        let mut count = 0;
        while let Some(message) = stream.message().await.unwrap() {
            assert_eq!(message, MESSAGE);
            count += 1;
        }
        assert_eq!(count, 10_000);
    }

    #[tokio::test]
    async fn call_without_response_is_cancelled() {
        let status = call(0).headers().await.unwrap_err();
        assert_eq!(status.code(), Code::Cancelled);
        assert_eq!(status.message(), "the handler dropped the call without a response");
    }
}
