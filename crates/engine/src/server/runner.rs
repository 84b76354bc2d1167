//! Runs calls whose requests are whole: where they stand in their batch, on the connection's own task, when they are
//! quick.
//!
//! A handler is polled at once, and its response joins the output of its batch. One that has to wait moves to a task,
//! and so does one whose request takes long to read, or whose method is slow.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::dispatch::{Batch, Body, CallFuture, ReadyCall, Route, ServerMethod};
use super::handler_cost::{HandlerCost, Stopwatch};
use super::respond::{self, Reply};
use super::task::CallTask;
use crate::connection::Connection;
use crate::status::Status;

/// How the requests of a method are read and its calls answered.
pub(super) trait Codec: Send + Sync + 'static {
    /// A handler that runs.
    type Future: Future<Output = Self::Output> + Send + 'static;
    /// The result of a handler.
    type Output: Send;

    /// Where the time that the handlers of such calls take is noted.
    fn cost(route: &Route) -> &HandlerCost {
        &route.method.cost
    }

    /// Whether reading a request would keep the other calls of its connection waiting.
    fn takes_long(route: &Route, body: &Body, buffer: &[u8]) -> bool;

    /// Reads the request and calls the handler.
    ///
    /// # Errors
    /// The status that the call ends with, if the request can't be read.
    fn start(&self, route: &Route, body: Body, buffer: &[u8]) -> Result<Self::Future, Status>;

    /// A call whose request takes long to read: its task reads it, runs the handler and answers.
    fn deferred(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        reply: Reply,
        route: &Arc<Route>,
        request: Vec<u8>,
    ) -> CallFuture;

    /// Answers a call of `batch`. Returns the rest of a response that is not whole yet, for a task.
    fn answer(batch: &mut Batch<'_>, reply: &Reply, output: &mut Self::Output) -> Option<CallFuture>;

    /// As [`answer`](Self::answer), of a call that runs in a task.
    fn respond(connection: &Arc<Connection>, reply: &Reply, output: &mut Self::Output) -> Option<CallFuture>;
}

/// Memory for a handler's future. All calls of a batch whose handlers are ready at once share it.
type Place<C> = Pin<Box<Option<<C as Codec>::Future>>>;

/// Written in place: `Box::pin(None)` would copy what it leaves undefined.
fn vacant<F>() -> Pin<Box<Option<F>>> {
    Box::into_pin(Box::write(Box::new_uninit(), None))
}

/// Runs the calls of `method` at the front of `batch`.
pub(super) fn run<C: Codec>(codec: &Arc<C>, method: &ServerMethod, batch: &mut Batch<'_>) {
    let mut place = vacant();
    while let Some(ReadyCall { route, reply, body }) = batch.next_of(method) {
        let request_len = body.len();
        if C::takes_long(&route, &body, batch.buffer) {
            let request = body.into_owned(batch.buffer);
            let call = codec.deferred(batch.connection, reply, &route, request);
            tokio::spawn(CallTask::new(batch.connection, reply, request_len, call));
            continue;
        }
        let mut output = None;
        let (buffer, has_next) = (batch.buffer, !batch.calls.as_slice().is_empty());
        let start = || codec.start(&route, body, buffer);
        let (watch, place_of_call) = (&mut batch.watch, &mut place);
        let attempt = || attempt::<C>(&route, start, place_of_call, watch, has_next, &mut output);
        match (catch_unwind(AssertUnwindSafe(attempt)), &mut output) {
            (Ok(Ok(())), Some(output)) => {
                if let Some(rest) = C::answer(batch, &reply, output) {
                    tokio::spawn(CallTask::new(batch.connection, reply, request_len, rest));
                }
            }
            (Ok(Ok(())), None) => {
                let running = std::mem::replace(&mut place, vacant());
                let call = wait::<C>(Arc::clone(batch.connection), reply, route, running);
                tokio::spawn(CallTask::new(batch.connection, reply, request_len, Box::pin(call)));
            }
            (Ok(Err(status)), _) => {
                respond::send_status(&mut batch.connection.lock(), &reply, &status);
            }
            (Err(_), _) => {
                place.set(None);
                respond::send_status(&mut batch.connection.lock(), &reply, &Status::panicked());
            }
        }
    }
}

/// Takes one call as far as it goes at once: to its `output`, or to its future in `place`.
///
/// # Errors
/// The status that the call ends with, if its request can't be read.
#[inline]
fn attempt<C: Codec>(
    route: &Route,
    start: impl FnOnce() -> Result<C::Future, Status>,
    place: &mut Place<C>,
    watch: &mut Stopwatch,
    has_next: bool,
    output: &mut Option<C::Output>,
) -> Result<(), Status> {
    let cost = C::cost(route);
    cost.begin(watch);
    place.set(Some(start()?));
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

/// Runs a handler that was not ready at once, or was not polled yet, to its end, and answers. The time of its polls is
/// noted.
async fn wait<C: Codec>(connection: Arc<Connection>, reply: Reply, route: Arc<Route>, mut running: Place<C>) {
    let mut output = poll_fn(|cx| {
        let Some(future) = running.as_mut().as_pin_mut() else { return Poll::Pending };
        let mut watch = Stopwatch::start();
        let polled = future.poll(cx);
        C::cost(&route).note(&mut watch);
        polled
    })
    .await;
    drop(running);
    if let Some(rest) = C::respond(&connection, &reply, &mut output) {
        rest.await;
    }
}
