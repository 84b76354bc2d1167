//! Unary methods: one request, one response.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::dispatch::{Batch, Body, CallFuture, Handler, Route, RunCalls, ServerMethod, StartsOn};
use super::exchange::{self, LocalFuture, LocalResponse};
use super::respond::{self, MessageResponse, ResponseTarget};
use super::runner::{self, Codec};
use crate::connection::{Connection, DecompressionReader, Outgoing};
use crate::encode::Encode;
use crate::grpc::codec::{Envelope, Wire};
use crate::grpc::compression::Encoding;
use crate::grpc::request::RequestHead;
use crate::options::ServiceOptions;
use crate::status::Status;

/// Runs the calls of a unary method.
pub trait UnaryHandler: Send + Sync + 'static {
    /// A running call.
    type Future: Future<Output = Self::Output> + Send + 'static;
    /// The output of a call.
    type Output: Send;

    /// Decodes the request and calls the handler.
    ///
    /// # Errors
    /// Returns the status that ends the call if its message is invalid.
    fn start(&self, head: &RequestHead, request: Envelope<'_>) -> Result<Self::Future, Status>;

    /// Converts a call's output to its response.
    ///
    /// # Errors
    /// Returns the status that ends the call.
    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status>;
}

impl Handler {
    /// Creates the handler of a unary method.
    pub fn unary(handler: impl UnaryHandler) -> Self {
        Self::new(StartsOn::Request, UnaryCalls(Arc::new(Unary(handler))))
    }
}

/// Codec of gRPC messages, one each way.
struct Unary<H>(H);

impl<H: UnaryHandler> Codec for Unary<H> {
    type Future = H::Future;
    type Output = H::Output;

    #[inline]
    fn takes_long(_: &Route, body: &Body, buffer: &[u8]) -> bool {
        body.takes_long(buffer)
    }

    #[inline]
    fn start(&self, route: &Route, body: Body, buffer: &[u8]) -> Result<H::Future, Status> {
        let size_max = route.method.options.max_decoding_message_size;
        self.0.start(&route.head, Envelope::new(body.wire(buffer), route.head.encoding, size_max))
    }

    #[cold]
    fn deferred(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        target: ResponseTarget,
        route: &Arc<Route>,
        request: Vec<u8>,
    ) -> CallFuture {
        let (codec, route, connection) = (Arc::clone(self), Arc::clone(route), Arc::clone(connection));
        let deferred_at = Instant::now();
        Box::pin(async move {
            match codec.read_and_run(&connection, &target, &route, request, deferred_at).await {
                Ok(output) => respond::send(&connection, &target, &H::response(&output)),
                Err(status) => respond::fail(&connection, &target, &status),
            }
        })
    }

    #[inline]
    fn respond_in_batch(
        batch: &mut Batch<'_>,
        target: &ResponseTarget,
        output: &mut H::Output,
    ) -> Option<CallFuture> {
        batch.respond(target, &H::response(output));
        None
    }

    fn respond(
        connection: &Arc<Connection>,
        target: &ResponseTarget,
        output: &mut H::Output,
    ) -> Option<CallFuture> {
        respond::send(connection, target, &H::response(output));
        None
    }
}

impl<H: UnaryHandler> Unary<H> {
    /// Decodes a request in its call's task and runs the handler.
    ///
    /// # Errors
    /// Returns the status that ends the call if its message is invalid.
    async fn read_and_run(
        &self,
        connection: &Connection,
        target: &ResponseTarget,
        route: &Route,
        wire: Vec<u8>,
        deferred_at: Instant,
    ) -> Result<H::Output, Status> {
        let wire_len = wire.len();
        let size_max = route.method.options.max_decoding_message_size;
        // The semaphore is never closed. Yielding lets other sockets of the thread run before the next request is
        // decoded, even if four permits are held on a single-threaded runtime.
        let decoding = connection.decoding.acquire().await;
        tokio::task::yield_now().await;
        let mut reader = DecompressionReader::default();
        poll_fn(|cx| connection.decompression.poll_turn(&mut reader, cx)).await;
        let decompressed_len = Cell::new(0);
        let request = Envelope::new(Wire::Gathered(wire), route.head.encoding, size_max)
            .with_decompressed_len(&decompressed_len);
        let shortened;
        let head = match route.head.timeout {
            None => &route.head,
            Some(timeout) => {
                // The time spent waiting for the task is deducted.
                let timeout = Some(timeout.saturating_sub(deferred_at.elapsed()));
                shortened = RequestHead { timeout, ..route.head.clone() };
                &shortened
            }
        };
        let call = self.0.start(head, request);
        let decoded_len = call.is_ok().then(|| decompressed_len.get().max(wire_len));
        connection.decompression.note(&mut reader, decoded_len);
        drop(decoding);
        let call = call?;
        if decompressed_len.get() > wire_len {
            // The request was compressed: the handler holds more than was received.
            connection.add_request_bytes(target.key, decompressed_len.get() - wire_len);
        }
        // Not recorded, because the time of decoding says nothing about the handler.
        Ok(call.await)
    }
}

pin_project! {
    /// An in-process call with the settings of its response.
    struct Local<H: UnaryHandler> {
        #[pin]
        future: H::Future,
        outgoing: Outgoing,
    }
}

impl<H: UnaryHandler> Future for Local<H> {
    type Output = Result<LocalResponse, exchange::LocalOutcome>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let output = ready!(this.future.poll(cx));
        Poll::Ready(LocalResponse::of(H::response(&output), this.outgoing))
    }
}

/// Runs the calls of a unary method.
struct UnaryCalls<H>(Arc<Unary<H>>);

impl<H: UnaryHandler> RunCalls for UnaryCalls<H> {
    fn run(&self, method: &ServerMethod, batch: &mut Batch<'_>) {
        runner::run(&self.0, method, batch);
    }

    fn start_local(
        &self,
        head: &RequestHead,
        mut message: Bytes,
        options: &ServiceOptions,
    ) -> Result<LocalFuture, Status> {
        let size_max = options.max_decoding_message_size;
        let request = Envelope::new(Wire::Bare(&mut message), Encoding::Identity, size_max);
        let future = self.0.0.start(head, request)?;
        let outgoing = exchange::outgoing(options);
        Ok(Box::pin(Local::<H> { future, outgoing }))
    }
}
