//! Runs calls with complete requests, in their batch on the connection's own task when they are quick.
//!
//! A handler is polled at once, and its response joins the output of its batch. Pending handlers move to tasks, as do
//! calls whose requests are slow to decode or whose methods are slow.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::dispatch::{Batch, Body, CallFuture, ReadyCall, Route, ServerMethod};
use super::handler_cost::{HandlerCost, Stopwatch};
use super::respond::{self, ResponseTarget};
use super::task::CallTask;
use crate::connection::Connection;
use crate::status::{self, Status};

/// Decodes requests and encodes responses of a method.
pub(super) trait Codec: Send + Sync + 'static {
    /// A running handler.
    type Future: Future<Output = Self::Output> + Send + 'static;
    /// The result of a handler.
    type Output: Send;

    /// Returns the record of handler time for such calls.
    fn cost(route: &Route) -> &HandlerCost {
        &route.method.cost
    }

    /// Returns whether decoding would delay other calls of the connection.
    fn takes_long(route: &Route, body: &Body, buffer: &[u8]) -> bool;

    /// Decodes the request and calls the handler.
    ///
    /// # Errors
    /// Returns the status that ends the call if the request is invalid.
    fn start(&self, route: &Route, body: Body, buffer: &[u8]) -> Result<Self::Future, Status>;

    /// Returns a future for a call whose request is slow to decode: it decodes, runs the handler and responds.
    fn deferred(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        target: ResponseTarget,
        route: &Arc<Route>,
        request: Vec<u8>,
    ) -> CallFuture;

    /// Responds to a call of `batch`. Returns a future for the rest of an incomplete response.
    fn respond_in_batch(
        batch: &mut Batch<'_>,
        target: &ResponseTarget,
        output: &mut Self::Output,
    ) -> Option<CallFuture>;

    /// Like [`respond_in_batch`](Self::respond_in_batch), for a call that runs in a task.
    fn respond(
        connection: &Arc<Connection>,
        target: &ResponseTarget,
        output: &mut Self::Output,
    ) -> Option<CallFuture>;
}

/// Memory for a handler's future, shared by all calls of a batch whose handlers complete at once.
type FutureSlot<C> = Pin<Box<Option<<C as Codec>::Future>>>;

/// Written in place: `Box::pin(None)` would copy uninitialized bytes.
fn vacant<F>() -> Pin<Box<Option<F>>> {
    Box::into_pin(Box::write(Box::new_uninit(), None))
}

/// Runs the calls of `method` at the front of `batch`.
pub(super) fn run<C: Codec>(codec: &Arc<C>, method: &ServerMethod, batch: &mut Batch<'_>) {
    let mut slot = vacant();
    while let Some(ReadyCall { route, target, body }) = batch.next_of(method) {
        let request_len = body.len();
        if C::takes_long(&route, &body, batch.buffer) {
            let request = body.into_owned(batch.buffer);
            let call = codec.deferred(batch.connection, target, &route, request);
            tokio::spawn(CallTask::new(batch.connection, target, request_len, call));
            continue;
        }
        let mut output = None;
        let (buffer, has_next) = (batch.buffer, !batch.calls.as_slice().is_empty());
        let start = || codec.start(&route, body, buffer);
        let (watch, slot_of_call) = (&mut batch.watch, &mut slot);
        let attempt = || attempt::<C>(&route, start, slot_of_call, watch, has_next, &mut output);
        match (catch_unwind(AssertUnwindSafe(attempt)), &mut output) {
            (Ok(Ok(())), Some(output)) => {
                if let Some(rest) = C::respond_in_batch(batch, &target, output) {
                    tokio::spawn(CallTask::new(batch.connection, target, request_len, rest));
                }
            }
            (Ok(Ok(())), None) => {
                let running = std::mem::replace(&mut slot, vacant());
                let call = wait::<C>(Arc::clone(batch.connection), target, route, running);
                tokio::spawn(CallTask::new(batch.connection, target, request_len, Box::pin(call)));
            }
            (Ok(Err(status)), _) => {
                respond::send_status(&mut batch.connection.lock(), &target, &status);
            }
            (Err(_), _) => {
                slot.set(None);
                respond::send_status(&mut batch.connection.lock(), &target, &status::panicked());
            }
        }
    }
}

/// Runs one call as far as possible at once, to its `output` or to a pending future in `slot`.
///
/// # Errors
/// Returns the status that ends the call if its request is invalid.
#[inline]
fn attempt<C: Codec>(
    route: &Route,
    start: impl FnOnce() -> Result<C::Future, Status>,
    slot: &mut FutureSlot<C>,
    watch: &mut Stopwatch,
    has_next: bool,
    output: &mut Option<C::Output>,
) -> Result<(), Status> {
    let cost = C::cost(route);
    cost.begin(watch);
    slot.set(Some(start()?));
    if !cost.is_quick() {
        return Ok(());
    }
    // The waker does nothing: the task of a pending handler polls again with its own.
    let mut cx = Context::from_waker(Waker::noop());
    if let Some(future) = slot.as_mut().as_pin_mut()
        && let Poll::Ready(ready) = future.poll(&mut cx)
    {
        // Handed over in place, because outputs are large.
        *output = Some(ready);
        slot.set(None);
    }
    if has_next {
        cost.note_before_next(watch);
    } else {
        cost.note(watch);
    }
    Ok(())
}

/// Runs a handler that is pending or not yet polled, responds, and records the time of its polls.
async fn wait<C: Codec>(
    connection: Arc<Connection>,
    target: ResponseTarget,
    route: Arc<Route>,
    mut running: FutureSlot<C>,
) {
    let mut output = poll_fn(|cx| {
        let Some(future) = running.as_mut().as_pin_mut() else { return Poll::Pending };
        let mut watch = Stopwatch::start();
        let polled = future.poll(cx);
        C::cost(&route).note(&mut watch);
        polled
    })
    .await;
    drop(running);
    if let Some(rest) = C::respond(&connection, &target, &mut output) {
        rest.await;
    }
}
