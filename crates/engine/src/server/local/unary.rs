//! In-process calls with one message each way: [`LocalUnary`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;

use super::run;
use super::stream::LocalStream;
use crate::grpc::codec;
use crate::grpc::request::RequestHead;
use crate::measure::{self, CallMeasure};
use crate::server::deadline::{self, Deadline};
use crate::server::dispatch::ServerMethod;
use crate::server::exchange::{self, LocalFuture, LocalResponse};
use crate::status::{Code, Status};

/// An in-process call, as a future of its response. The handler runs where this is polled. With a deadline it must be
/// polled within a tokio runtime. Dropping it cancels the handler.
#[must_use = "the handler only runs when polled"]
pub struct LocalUnary(Running);

enum Running {
    Handler {
        future: LocalFuture,
        deadline: Deadline,
        measure: CallMeasure,
    },
    /// A method that sends or receives a stream.
    Stream(Box<SingleResponse>),
    Failed(Status),
    Over,
}

impl LocalUnary {
    pub(super) fn start(
        method: &Arc<ServerMethod>,
        head: &RequestHead,
        message: Bytes,
        measure: CallMeasure,
    ) -> Self {
        if method.is_streaming() {
            let requests = Box::pin(SingleMessage(Some(message)));
            let stream = LocalStream::start(Ok(Arc::clone(method)), head.clone(), requests, measure);
            return Self(Running::Stream(Box::new(SingleResponse::of(stream))));
        }
        let deadline = Deadline::after(head.timeout);
        match run::start_unary(method, head, message, &measure) {
            Ok(future) => Self(Running::Handler { future, deadline, measure }),
            Err(outcome) => Self::failed(exchange::failure(outcome), &measure),
        }
    }

    /// Creates a call that fails before its handler starts.
    pub(super) fn failed(status: Status, measure: &CallMeasure) -> Self {
        measure.end(status.code());
        Self(Running::Failed(status))
    }
}

impl Future for LocalUnary {
    type Output = Result<LocalResponse, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match &mut this.0 {
            Running::Handler { future, deadline, measure } => {
                let outcome = match ready!(deadline::poll_handler(future.as_mut(), deadline, cx)) {
                    Ok(outcome) => outcome.map_err(exchange::failure),
                    Err(status) => {
                        let measure = std::mem::take(measure);
                        measure::drop_with_status(&status, std::mem::replace(&mut this.0, Running::Over));
                        measure.end(status.code());
                        return Poll::Ready(Err(status));
                    }
                };
                match &outcome {
                    Ok(response) => {
                        measure.sent(response.message.len());
                        measure.end(Code::Ok);
                    }
                    Err(status) => measure.end(status.code()),
                }
                this.0 = Running::Over;
                Poll::Ready(outcome)
            }
            Running::Stream(single) => {
                let response = ready!(single.poll(cx));
                this.0 = Running::Over;
                Poll::Ready(response)
            }
            running => match std::mem::replace(running, Running::Over) {
                Running::Failed(status) => Poll::Ready(Err(status)),
                // The response has already been returned.
                _ => Poll::Pending,
            },
        }
    }
}

impl fmt::Debug for LocalUnary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalUnary").finish_non_exhaustive()
    }
}

/// Reads the only message of a stream of responses.
struct SingleResponse {
    stream: LocalStream,
    response: LocalResponse,
    has_headers: bool,
    message: Option<Bytes>,
}

impl SingleResponse {
    fn of(stream: LocalStream) -> Self {
        Self { stream, response: LocalResponse::default(), has_headers: false, message: None }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<LocalResponse, Status>> {
        if !self.has_headers {
            self.response.metadata = ready!(self.stream.poll_headers(cx))?;
            self.has_headers = true;
        }
        while let Some(message) = ready!(Pin::new(&mut self.stream).poll_next(cx)?) {
            if self.message.replace(message).is_some() {
                return Poll::Ready(Err(codec::more_than_one_message()));
            }
        }
        let mut response = std::mem::take(&mut self.response);
        response.trailers = self.stream.take_trailers().unwrap_or_default();
        response.message = self.message.take().ok_or_else(codec::no_message)?;
        Poll::Ready(Ok(response))
    }
}

/// A stream of one message.
struct SingleMessage(Option<Bytes>);

impl Stream for SingleMessage {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
