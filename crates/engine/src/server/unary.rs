//! Unary calls: run where they stand in their batch, on the connection's own task, when they are quick.
//!
//! A handler is polled at once, and its answer encoded straight into the connection's output.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::dispatch::{Batch, Handler, HandlerKind, ReadyCall, Route, Run, RunUnary, ServerMethod};
use super::handler_cost::Stopwatch;
use super::local::{self, LocalAnswer, LocalFuture};
use super::respond::{self, Answer, Reply};
use super::task::CallTask;
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
        Self(HandlerKind::Unary(Box::new(Runner(Arc::new(handler)))))
    }
}

struct Runner<H>(Arc<H>);

impl<H: UnaryHandler> Runner<H> {
    /// Takes one call as far as it goes at once: to its `output`, or to its future in `place`.
    ///
    /// # Errors
    /// The status that the call ends with, when its message can't be read.
    fn attempt(
        &self,
        route: &Route,
        wire: Wire<'_>,
        place: &mut Pin<Box<Option<H::Future>>>,
        watch: &mut Stopwatch,
        has_next: bool,
        output: &mut Option<H::Output>,
    ) -> Result<(), Status> {
        let cost = &route.method.cost;
        cost.begin(watch);
        let size_max = route.method.options.max_decoding_message_size;
        place.set(Some(self.0.start(&route.head, Envelope::new(wire, route.head.encoding, size_max))?));
        if !cost.is_quick() {
            return Ok(());
        }
        // The waker does nothing: if the handler has to wait, its task polls it again with one that does.
        let mut cx = Context::from_waker(Waker::noop());
        if let Some(future) = place.as_mut().as_pin_mut()
            && let Poll::Ready(ready) = future.poll(&mut cx)
        {
            // Handed over in place: outputs are large.
            *output = Some(ready);
            place.set(None);
        }
        if has_next {
            cost.note_before_next(watch);
        } else {
            cost.note(watch);
        }
        Ok(())
    }
}

impl<H: UnaryHandler> Runner<H> {
    /// Has a task read the request and run the call from the start.
    #[cold]
    fn defer(&self, connection: &Arc<Connection>, reply: Reply, route: &Arc<Route>, wire: Vec<u8>) {
        let (handler, own_route, deferred_at) = (Arc::clone(&self.0), Arc::clone(route), Instant::now());
        let (shared, wire_len) = (Arc::clone(connection), wire.len());
        let call = async move {
            let size_max = own_route.method.options.max_decoding_message_size;
            // The semaphore is never closed. Other sockets of the thread have their turn before the next is decoded, on
            // a runtime of one thread also where four have a permit.
            let decoding = shared.decoding.acquire().await;
            tokio::task::yield_now().await;
            let mut reader = Reader::default();
            poll_fn(|cx| shared.decompression.poll_may(&mut reader, cx)).await;
            let decompressed_len = Cell::new(0);
            let request = Envelope::new(Wire::Gathered(wire), own_route.head.encoding, size_max)
                .telling(&decompressed_len);
            let shortened;
            let head = match own_route.head.timeout {
                None => &own_route.head,
                Some(timeout) => {
                    // The call has waited for its task: so much less is left.
                    let timeout = Some(timeout.saturating_sub(deferred_at.elapsed()));
                    shortened = RequestHead { timeout, ..own_route.head.clone() };
                    &shortened
                }
            };
            let call = handler.start(head, request);
            let decoded_len = call.is_ok().then(|| decompressed_len.get().max(wire_len));
            shared.decompression.note(&mut reader, decoded_len);
            drop(decoding);
            let call = call?;
            if decompressed_len.get() > wire_len {
                // It was compressed: the handler has more than what came.
                shared.hold_more(reply.key, decompressed_len.get() - wire_len);
            }
            Ok(call.await)
        };
        let respond =
            |connection: &Connection, reply: &Reply, output: &Result<H::Output, Status>| match output {
                Ok(output) => respond::answer(connection, reply, &H::answer(output)),
                Err(status) => respond::fail(connection, reply, status),
            };
        // What it takes to decode says nothing of the handler.
        let cost = None;
        tokio::spawn(CallTask::unary(connection, reply, wire_len, cost, Box::pin(Some(call)), respond));
    }
}

/// Memory for a future. Written in place: `Box::pin(None)` would copy what it leaves undefined.
pub(super) fn no_future<F>() -> Pin<Box<Option<F>>> {
    Box::into_pin(Box::write(Box::new_uninit(), None))
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
    type Output = Result<LocalAnswer, local::Ending>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let output = ready!(this.future.poll(cx));
        Poll::Ready(LocalAnswer::of(H::answer(&output), this.outgoing))
    }
}

impl<H: UnaryHandler> RunUnary for Runner<H> {
    fn start_local(
        &self,
        head: &RequestHead,
        mut message: Bytes,
        options: &ServiceOptions,
    ) -> Result<LocalFuture, Status> {
        let size_max = options.max_decoding_message_size;
        let request = Envelope::new(Wire::Bare(&mut message), Encoding::Identity, size_max);
        let future = self.0.start(head, request)?;
        let outgoing = local::outgoing(options);
        Ok(Box::pin(Local::<H> { future, outgoing }))
    }
}

impl<H: UnaryHandler> Run for Runner<H> {
    fn run(&self, method: &ServerMethod, batch: &mut Batch<'_>) {
        // One place in memory for all futures that are ready at once.
        let mut place = no_future();
        while let Some(ReadyCall { route, reply, body }) = batch.next_of(method) {
            if body.takes_long(batch.buffer) {
                self.defer(batch.connection, reply, &route, body.into_owned(batch.buffer));
                continue;
            }
            let request_len = body.len();
            let wire = body.wire(batch.buffer);
            let mut output = None;
            let (watch, has_next) = (&mut batch.watch, !batch.calls.as_slice().is_empty());
            let attempt = || self.attempt(&route, wire, &mut place, watch, has_next, &mut output);
            match (catch_unwind(AssertUnwindSafe(attempt)), &output) {
                (Ok(Ok(())), Some(output)) => batch.answer(&reply, &H::answer(output)),
                (Ok(Err(status)), _) => {
                    respond::send_status(&mut batch.connection.lock(), &reply, &status);
                }
                (Ok(Ok(())), None) => {
                    let running = std::mem::replace(&mut place, no_future());
                    let respond = |connection: &Connection, reply: &Reply, output: &H::Output| {
                        respond::answer(connection, reply, &H::answer(output));
                    };
                    let noted = Some(&route.method);
                    let task = CallTask::unary(batch.connection, reply, request_len, noted, running, respond);
                    tokio::spawn(task);
                }
                (Err(_), _) => {
                    place.set(None);
                    respond::send_status(&mut batch.connection.lock(), &reply, &Status::panicked());
                }
            }
        }
    }
}
