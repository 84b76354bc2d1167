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
use super::exchange::{self, LocalAnswer, LocalFuture};
use super::respond::{self, Answer, Reply};
use super::runner::{self, Codec};
use crate::connection::{Connection, Outgoing, Reader};
use crate::encode::Encode;
use crate::grpc::codec::{Envelope, Wire};
use crate::grpc::compression::Encoding;
use crate::grpc::request::RequestHead;
use crate::options::ServiceOptions;
use crate::status::Status;

/// What runs a unary method's calls.
pub trait UnaryHandler: Send + Sync + 'static {
    /// A call under way.
    type Future: Future<Output = Self::Output> + Send + 'static;
    /// What a call comes to.
    type Output: Send;

    /// Reads the request and calls the handler.
    ///
    /// # Errors
    /// The status that the call ends with, when its message can't be read.
    fn start(&self, head: &RequestHead, request: Envelope<'_>) -> Result<Self::Future, Status>;

    /// What a call's output answers.
    ///
    /// # Errors
    /// The status that the call ends with.
    fn answer(output: &Self::Output) -> Result<Answer<'_, impl Encode>, Status>;
}

impl Handler {
    /// For a method with one request and one response.
    pub fn unary(handler: impl UnaryHandler) -> Self {
        Self::new(StartsOn::Request, UnaryCalls(Arc::new(Unary(handler))))
    }
}

/// Messages of gRPC, one each way.
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
        reply: Reply,
        route: &Arc<Route>,
        request: Vec<u8>,
    ) -> CallFuture {
        let (codec, route, connection) = (Arc::clone(self), Arc::clone(route), Arc::clone(connection));
        let deferred_at = Instant::now();
        Box::pin(async move {
            match codec.read_and_run(&connection, &reply, &route, request, deferred_at).await {
                Ok(output) => respond::answer(&connection, &reply, &H::answer(&output)),
                Err(status) => respond::fail(&connection, &reply, &status),
            }
        })
    }

    #[inline]
    fn answer(batch: &mut Batch<'_>, reply: &Reply, output: &mut H::Output) -> Option<CallFuture> {
        batch.answer(reply, &H::answer(output));
        None
    }

    fn respond(connection: &Arc<Connection>, reply: &Reply, output: &mut H::Output) -> Option<CallFuture> {
        respond::answer(connection, reply, &H::answer(output));
        None
    }
}

impl<H: UnaryHandler> Unary<H> {
    /// Reads a request in its call's task, and runs the handler.
    ///
    /// # Errors
    /// The status that the call ends with, if its message can't be read.
    async fn read_and_run(
        &self,
        connection: &Connection,
        reply: &Reply,
        route: &Route,
        wire: Vec<u8>,
        deferred_at: Instant,
    ) -> Result<H::Output, Status> {
        let wire_len = wire.len();
        let size_max = route.method.options.max_decoding_message_size;
        // The semaphore is never closed. Other sockets of the thread have their turn before the next is decoded, on
        // a runtime of one thread also where four have a permit.
        let decoding = connection.decoding.acquire().await;
        tokio::task::yield_now().await;
        let mut reader = Reader::default();
        poll_fn(|cx| connection.decompression.poll_may(&mut reader, cx)).await;
        let decompressed_len = Cell::new(0);
        let request =
            Envelope::new(Wire::Gathered(wire), route.head.encoding, size_max).telling(&decompressed_len);
        let shortened;
        let head = match route.head.timeout {
            None => &route.head,
            Some(timeout) => {
                // The call has waited for its task: so much less is left.
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
            // It was compressed: the handler has more than what came.
            connection.hold_more(reply.key, decompressed_len.get() - wire_len);
        }
        // What it takes to decode says nothing of the handler: nothing is noted.
        Ok(call.await)
    }
}

pin_project! {
    /// A call that came by no connection, and whom its answer goes to.
    struct Local<H: UnaryHandler> {
        #[pin]
        future: H::Future,
        outgoing: Outgoing,
    }
}

impl<H: UnaryHandler> Future for Local<H> {
    type Output = Result<LocalAnswer, exchange::Ending>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let output = ready!(this.future.poll(cx));
        Poll::Ready(LocalAnswer::of(H::answer(&output), this.outgoing))
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
