//! Traced handlers: [`Traced`].
//!
//! They wrap other handlers, so untraced ones need no branch. Spans start and end where the handler runs, outside of
//! the connection's lock.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::dispatch::StreamingHandler;
use super::exchange::StreamingCall;
use super::respond::MessageResponse;
use super::traced_message::TracedMessage;
use super::unary::UnaryHandler;
use crate::encode::Encode;
use crate::grpc::codec::Envelope;
use crate::grpc::request::RequestHead;
use crate::measure::{ServerTrace, Traces};
use crate::status::{self, Status};

/// Wraps a handler in a span per call, whose context is current while the handler runs.
pub struct Traced<H> {
    handler: H,
    traces: Traces,
    /// Name of the spans.
    name: String,
}

impl<H> Traced<H> {
    /// Wraps the handler of the method at `path`, `/package.Service/Method`.
    pub fn new(handler: H, traces: Traces, path: &str) -> Self {
        Self { handler, traces, name: ServerTrace::name(path) }
    }

    fn begin(&self, head: &RequestHead) -> Arc<ServerTrace> {
        Arc::new(ServerTrace::begin(&self.traces, &self.name, &head.metadata))
    }
}

impl<H> UnaryHandler for Traced<H>
where
    H: UnaryHandler<Future: Unpin>,
{
    type Future = TracedFuture<H::Future>;
    type Output = TracedOutput<H::Output>;

    fn start(&self, head: &RequestHead, request: Envelope<'_>) -> Result<Self::Future, Status> {
        let trace = EndSpanOnDrop(self.begin(head));
        let request = request.decompressed(|wire, plain| trace.0.received(plain, wire));
        let started = trace.run(|| self.handler.start(head, request));
        let future = started.inspect_err(|status| trace.0.note_outcome(Err(status)))?;
        Ok(TracedFuture { future: Some(future), trace: Some(trace) })
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        let trace = &output.trace.0;
        let response = H::response(&output.output);
        trace.note_outcome(response.as_ref().map(|_| ()));
        Ok(response?.map(|message| TracedMessage::new(message, trace)))
    }
}

impl<H: StreamingHandler> StreamingHandler for Traced<H> {
    fn start(&self, head: &RequestHead, mut call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let trace = EndSpanOnDrop(self.begin(head));
        call.measure = call.measure.traced(&trace.0);
        let future = trace.run(|| self.handler.start(head, call));
        let traced = TracedFuture { future: Some(future), trace: Some(trace) };
        Box::pin(async move { drop(traced.await) })
    }
}

/// Ends the span when the call is dropped.
struct EndSpanOnDrop(Arc<ServerTrace>);

impl EndSpanOnDrop {
    /// Runs handler code in the call's context.
    fn run<R>(&self, run: impl FnOnce() -> R) -> R {
        let current = self.0.attach();
        let outcome = catch_unwind(AssertUnwindSafe(run));
        drop(current);
        outcome.unwrap_or_else(|panic| {
            self.0.note_outcome(Err(&status::panicked()));
            resume_unwind(panic)
        })
    }
}

impl Drop for EndSpanOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A handler's future, polled and dropped in the call's context.
pub struct TracedFuture<F> {
    /// `None` once completed.
    future: Option<F>,
    trace: Option<EndSpanOnDrop>,
}

/// Output of a traced handler. The span ends when this is dropped, after the response.
pub struct TracedOutput<T> {
    output: T,
    trace: EndSpanOnDrop,
}

impl<F: Future + Unpin> Future for TracedFuture<F> {
    type Output = TracedOutput<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(trace) = &this.trace else { return Poll::Pending };
        let polled = trace.run(|| {
            let Some(future) = &mut this.future else { return Poll::Pending };
            let polled = Pin::new(future).poll(cx);
            if polled.is_ready() {
                this.future = None;
            }
            polled
        });
        match (polled, this.trace.take()) {
            (Poll::Ready(output), Some(trace)) => Poll::Ready(TracedOutput { output, trace }),
            (_, trace) => {
                this.trace = trace;
                Poll::Pending
            }
        }
    }
}

impl<F> Drop for TracedFuture<F> {
    fn drop(&mut self) {
        let _current = self.trace.as_ref().map(|trace| trace.0.attach());
        self.future = None;
    }
}
