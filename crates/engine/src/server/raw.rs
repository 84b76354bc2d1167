//! Requests that are passed on as they are, to a face that has its own gRPC, or to what is not gRPC.
//!
//! One that came whole in one read is run where it stands in its batch, as a unary call is; its answer, if that is
//! whole at once, joins the output with the others of the batch.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Response;
use http::response::Parts;
use thalweg_http2::ErrorCode;

use super::dispatch::{
    Batch, Body, Handler, HandlerKind, HeadRead, ReadyCall, Route, Run, RunRaw, ServerMethod,
};
use super::handler_cost::{HandlerCost, Stopwatch};
use super::respond::{self, Answer, NO_METADATA, RawAnswer, Reply};
use super::task::CallTask;
use super::unary::no_future;
use crate::connection::{Connection, Outgoing, RawBody, RawReader, SendLoop, SendOutcome};
use crate::measure::CallMeasure;
use crate::raw::{Front, OutgoingBody, Piece, Pieces, RawHead, Trailers};
use crate::status::{Code, Status};

/// What answers requests as they are.
pub trait RawHandler: Send + Sync + 'static {
    /// What the head of a request says to this handler.
    type Head: Send + Sync + 'static;
    /// The body of a request, made of what a connection receives.
    type RequestBody: From<RawBody>;
    /// The body of an answer. An error of it resets the stream.
    type Body: OutgoingBody;
    /// An answer that is to come.
    type Future: Future<Output = Response<Self::Body>> + Send + 'static;

    /// Reads the head of a request. What it comes to is kept for the next requests of the connection: heads that are
    /// equal are read once. The connection is locked meanwhile: no more is done than to look at the head.
    fn read_head(&self, head: &RawHead<'_>) -> Self::Head;

    /// Where it is noted how long the handler keeps the processor for such requests: those of which it is long get
    /// tasks of their own. `None`: with all that have no other place.
    fn cost(_: &Self::Head) -> Option<&HandlerCost> {
        None
    }

    /// Begins to answer a request with this head.
    fn start(&self, head: &RawHead<'_>, read: &Self::Head, body: Self::RequestBody) -> Self::Future;
}

impl Handler {
    /// For requests of any kind, as they are. The method's options do not count.
    pub fn raw(handler: impl RawHandler) -> Self {
        Self(HandlerKind::Raw(Box::new(Runner(Arc::new(handler)))))
    }
}

struct Runner<H>(Arc<H>);

type Running<H> = Pin<Box<Option<<H as RawHandler>::Future>>>;

/// What a handler has come to at once.
enum Polled<B> {
    /// To all of its answer, which has its place beside this.
    Whole,
    /// The head, and the first pieces of the body.
    Begun(Box<(Parts, Pieces<B>)>),
    /// It is not ready.
    Running,
}

impl<H: RawHandler> Runner<H> {
    fn start(&self, route: &Route, body: RawBody) -> Option<H::Future> {
        let raw = route.raw.as_deref()?;
        // It is this handler that has read it.
        let read = raw.read.downcast_ref::<H::Head>()?;
        Some(self.0.start(&raw.head(&route.head), read, body.into()))
    }

    /// What the handler takes for such requests.
    fn cost(route: &Route) -> &HandlerCost {
        let read = route.raw.as_deref().and_then(|head| head.read.downcast_ref::<H::Head>());
        read.and_then(H::cost).unwrap_or(&route.method.cost)
    }

    /// Takes one request as far as it goes at once.
    fn attempt(
        &self,
        route: &Route,
        body: RawBody,
        place: &mut Running<H>,
        watch: &mut Stopwatch,
        takes_long: bool,
        answer: &mut Option<RawAnswer>,
    ) -> Result<Polled<H::Body>, Status> {
        let cost = Self::cost(route);
        cost.begin(watch);
        place.set(self.start(route, body));
        if takes_long || !cost.is_quick() {
            return Ok(Polled::Running);
        }
        // The waker does nothing: if the handler has to wait, its task polls it again with one that does.
        let mut cx = Context::from_waker(Waker::noop());
        let polled = match place.as_mut().as_pin_mut().map(|future| future.poll(&mut cx)) {
            Some(Poll::Ready(response)) => {
                place.set(None);
                let (head, mut body) = response.into_parts();
                Front::of(&mut body, &mut cx).map(|front| Polled::of(head, body, front, answer))
            }
            _ => Ok(Polled::Running),
        };
        cost.note(watch);
        polled
    }

    /// Runs what is not ready. `noted`: the request was there and is quick to decode, so that the time that this takes
    /// is the handler's.
    fn spawn(
        connection: &Arc<Connection>,
        noted: Option<&Arc<Route>>,
        reply: Reply,
        request_len: usize,
        mut running: Running<H>,
    ) {
        let (shared, noted) = (Arc::clone(connection), noted.cloned());
        let call = async move {
            let response = poll_fn(|cx| {
                let Some(future) = running.as_mut().as_pin_mut() else { return Poll::Pending };
                let Some(route) = &noted else { return future.poll(cx) };
                let mut watch = Stopwatch::start();
                let polled = future.poll(cx);
                Self::cost(route).note(&mut watch);
                polled
            })
            .await;
            drop(running);
            let (head, mut body) = response.into_parts();
            let front = poll_fn(|cx| Poll::Ready(Front::of(&mut body, cx))).await;
            let mut answer = None;
            match front.map(|front| Polled::of(head, body, front, &mut answer)) {
                Ok(Polled::Whole) => {
                    let Some(answer) = answer else { return };
                    let mut state = shared.lock();
                    respond::send_raw(&mut state, &reply, &answer);
                    state.notify_driver();
                }
                Ok(Polled::Begun(begun)) => {
                    let (head, pieces) = *begun;
                    send_stream(&shared, &reply, &head, pieces).await;
                }
                Ok(Polled::Running) => {}
                Err(status) => reset(&shared, &reply, &status),
            }
        };
        tokio::spawn(CallTask::raw(connection, reply, request_len, call));
    }
}

impl<B> Polled<B> {
    /// What is there of an answer, by what is there of its body.
    fn of(head: Parts, body: B, front: Front, answer: &mut Option<RawAnswer>) -> Self {
        match front {
            Front::Whole(body, trailers) => {
                *answer = Some(RawAnswer { status: head.status, headers: head.headers, body, trailers });
                Self::Whole
            }
            Front::Begun(first) => {
                let pieces = Pieces { first, body: Some(body), trailers: Trailers::None };
                Self::Begun(Box::new((head, pieces)))
            }
        }
    }
}

/// Sends an answer whose end is not there, to its end.
async fn send_stream<B: OutgoingBody>(
    connection: &Arc<Connection>,
    reply: &Reply,
    head: &Parts,
    pieces: Pieces<B>,
) {
    let Some(measure) = send_head(connection, reply, head) else { return };
    let mut sender =
        SendLoop::new(Arc::clone(connection), reply.key, pieces, Outgoing::default(), false, measure);
    match poll_fn(|cx| sender.poll_send(cx)).await {
        SendOutcome::Done => {
            let trailers = sender.into_source().trailers;
            let code = trailers.code(head.status.as_u16(), &head.headers);
            let mut state = connection.lock();
            if matches!(trailers, Trailers::None)
                && let Some((slot, http2, _)) = state.parts(reply.key)
                && !slot.send_closed
            {
                // The only error is a stream that is gone, of which the slot has been or will be told.
                let _ = http2.send_data(reply.stream, [Bytes::new()], true);
            }
            respond::end_raw(&mut state, reply, &trailers, code);
            state.notify_driver();
        }
        SendOutcome::Failed(status) => reset(connection, reply, &status),
        SendOutcome::Gone => {}
    }
}

/// Sends the head of an answer whose body follows. What is measured of the call, if it goes on.
fn send_head(connection: &Connection, reply: &Reply, head: &Parts) -> Option<CallMeasure> {
    let mut state = connection.lock();
    let is_sent = respond::send_raw_head(&mut state, reply, head.status, &head.headers, false);
    state.notify_driver();
    is_sent.then(|| state.slot(reply.key).and_then(|slot| slot.measure().cloned()).unwrap_or_default())
}

/// The answer's body has failed: its client must not take it for whole.
#[cold]
fn reset(connection: &Connection, reply: &Reply, status: &Status) {
    tracing::debug!(peer = &*connection.peer, %status, "the body of an answer failed");
    let mut state = connection.lock();
    state.http2.reset(reply.stream, ErrorCode::InternalError);
    state.note_failed(reply.key);
    respond::finish(&mut state, reply, Code::Internal);
    state.notify_driver();
}

impl<H: RawHandler> Run for Runner<H> {
    fn run(&self, method: &ServerMethod, batch: &mut Batch<'_>) {
        // One place in memory for all futures that are ready at once.
        let mut place: Running<H> = no_future();
        while let Some(ReadyCall { route, reply, body }) = batch.next_of(method) {
            let (takes_long, request_len) = (takes_long(&route, &body, batch.buffer), body.len());
            let body = Bytes::from(body.into_owned(batch.buffer));
            let body = if takes_long {
                RawBody::long(body, batch.connection, reply.key)
            } else {
                RawBody::whole(body, Trailers::None)
            };
            let mut answer = None;
            let attempt =
                || self.attempt(&route, body, &mut place, &mut batch.watch, takes_long, &mut answer);
            match catch_unwind(AssertUnwindSafe(attempt)) {
                Ok(Ok(Polled::Whole)) => match answer {
                    Some(answer) if answer.is_plain() => {
                        let message = Piece(answer.body);
                        batch.answer(&reply, &Ok(Answer { metadata: &NO_METADATA, message, trailers: None }));
                    }
                    Some(answer) => batch.answer_raw(&reply, &answer),
                    None => {}
                },
                Ok(Ok(Polled::Begun(begun))) => {
                    let shared = Arc::clone(batch.connection);
                    let call = async move {
                        let (head, pieces) = *begun;
                        send_stream(&shared, &reply, &head, pieces).await;
                    };
                    tokio::spawn(CallTask::raw(batch.connection, reply, request_len, call));
                }
                Ok(Ok(Polled::Running)) => {
                    let running = std::mem::replace(&mut place, no_future());
                    let noted = (!takes_long).then_some(&route);
                    Self::spawn(batch.connection, noted, reply, request_len, running);
                }
                Ok(Err(status)) => reset(batch.connection, &reply, &status),
                Err(_) => {
                    place.set(None);
                    respond::send_status(&mut batch.connection.lock(), &reply, &Status::panicked());
                }
            }
        }
    }
}

/// Whether reading a request would keep the other calls of the connection waiting.
fn takes_long(route: &Route, body: &Body, buffer: &[u8]) -> bool {
    match &route.raw {
        // Each message says whether it is compressed.
        Some(head) if head.gathers => body.takes_long(buffer),
        Some(head) => body.is_large() || head.is_compressed,
        None => false,
    }
}

impl<H: RawHandler> RunRaw for Runner<H> {
    fn read_head(&self, head: &RawHead<'_>) -> HeadRead {
        Box::new(self.0.read_head(head))
    }

    fn begin(&self, connection: &Arc<Connection>, route: &Arc<Route>, reply: Reply, body: RawReader) {
        let body = RawBody::reader(Box::new(body));
        if let Ok(future) = catch_unwind(AssertUnwindSafe(|| self.start(route, body))) {
            let mut running: Running<H> = no_future();
            running.set(future);
            Self::spawn(connection, None, reply, 0, running);
        } else {
            let mut state = connection.lock();
            respond::send_status(&mut state, &reply, &Status::panicked());
            state.notify_driver();
        }
    }
}
