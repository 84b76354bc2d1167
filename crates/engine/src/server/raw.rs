//! Raw requests, passed verbatim to an API layer with its own gRPC implementation or to a fallback.
//!
//! A request that arrived whole in one read runs in its batch, like a unary call. If its response is also complete at
//! once, it joins the batch's output.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http::response::Parts;
use pin_project_lite::pin_project;
use thalweg_http2::ErrorCode;

use super::dispatch::{
    Batch, Body, CallFuture, Handler, HeadRead, Route, RunCalls, ServerMethod, StartedCall, StartsOn,
};
use super::handler_cost::HandlerCost;
use super::respond::{self, MessageResponse, NO_METADATA, ResponseTarget, WholeResponse};
use super::runner::{self, Codec};
use crate::connection::{Connection, Outgoing, RawBody, RawReader, SendLoop, SendOutcome};
use crate::measure::CallMeasure;
use crate::raw::{Front, OutgoingBody, Piece, Pieces, RawHead, Trailers};
use crate::status::{Code, Status};

/// Handles raw requests.
pub trait RawHandler: Send + Sync + 'static {
    /// Data derived from request headers.
    type Head: Send + Sync + 'static;
    /// A request body, converted from the received one.
    type RequestBody: From<RawBody>;
    /// A response body. An error in it resets the stream.
    type Body: OutgoingBody;
    /// A future of the response.
    type Future: Future<Output = Response<Self::Body>> + Send + 'static;

    /// Derives data from request headers. It is cached per connection, once for identical header blocks. The connection
    /// is locked meanwhile, so this must only inspect the headers.
    fn read_head(&self, head: &RawHead<'_>) -> Self::Head;

    /// Returns the recorded handler time of such requests; slow ones get tasks of their own. With `None`, all requests
    /// of the method share one record.
    fn cost(_: &Self::Head) -> Option<&HandlerCost> {
        None
    }

    /// Starts to handle a request.
    fn start(&self, head: &RawHead<'_>, read: &Self::Head, body: Self::RequestBody) -> Self::Future;
}

impl Handler {
    /// Creates a handler of raw requests. The method's options do not apply.
    pub fn raw(handler: impl RawHandler) -> Self {
        Self::new(StartsOn::RawRequest, RawCalls(Arc::new(Raw(handler))))
    }
}

/// Codec of raw requests and responses.
struct Raw<H>(H);

/// The response available when the handler completes.
enum Answered<B> {
    Whole(WholeResponse),
    /// The headers, and the first pieces of the body.
    Started(Box<(Parts, Pieces<B>)>),
}

pin_project! {
    /// A handler, and then the front of its response's body.
    struct Answering<F> {
        #[pin]
        handler: Option<F>,
    }
}

impl<F: Future<Output = Response<B>>, B: OutgoingBody> Future for Answering<F> {
    type Output = Result<Answered<B>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(handler) = this.handler.as_mut().as_pin_mut() else { return Poll::Pending };
        let (head, mut body) = ready!(handler.poll(cx)).into_parts();
        // Resources held by the handler, such as a permit, are released before its body is polled.
        this.handler.set(None);
        Poll::Ready(Front::of(&mut body, cx).map(|front| match front {
            Front::Whole(body, trailers) => {
                Answered::Whole(WholeResponse { status: head.status, headers: head.headers, body, trailers })
            }
            Front::Begun(first) => {
                let pieces = Pieces { first, body: Some(body), trailers: Trailers::None };
                Answered::Started(Box::new((head, pieces)))
            }
        }))
    }
}

impl<H: RawHandler> Raw<H> {
    fn call(&self, route: &Route, body: RawBody) -> Result<Answering<H::Future>, Status> {
        let unread = || Status::internal("the request's headers were not read");
        let raw = route.raw.as_deref().ok_or_else(unread)?;
        // The same handler derived the data.
        let read = raw.read.downcast_ref::<H::Head>().ok_or_else(unread)?;
        Ok(Answering { handler: Some(self.0.start(&raw.head(&route.head), read, body.into())) })
    }

    /// Runs a call in its task.
    async fn run(&self, connection: &Arc<Connection>, reply: &ResponseTarget, route: &Route, body: RawBody) {
        match self.call(route, body) {
            Err(status) => respond::fail(connection, reply, &status),
            Ok(call) => {
                if let Some(rest) = Self::respond(connection, reply, &mut call.await) {
                    rest.await;
                }
            }
        }
    }
}

impl<H: RawHandler> Codec for Raw<H> {
    type Future = Answering<H::Future>;
    type Output = Result<Answered<H::Body>, Status>;

    fn cost(route: &Route) -> &HandlerCost {
        let read = route.raw.as_deref().and_then(|head| head.read.downcast_ref::<H::Head>());
        read.and_then(H::cost).unwrap_or(&route.method.cost)
    }

    fn takes_long(route: &Route, body: &Body, buffer: &[u8]) -> bool {
        match &route.raw {
            // Each message has its own compression flag.
            Some(head) if head.gathers => body.takes_long(buffer),
            Some(head) => body.is_large() || head.is_compressed,
            None => false,
        }
    }

    fn start(&self, route: &Route, body: Body, buffer: &[u8]) -> Result<Self::Future, Status> {
        self.call(route, RawBody::whole(Bytes::from(body.into_owned(buffer)), Trailers::None))
    }

    fn deferred(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        reply: ResponseTarget,
        route: &Arc<Route>,
        request: Vec<u8>,
    ) -> CallFuture {
        let (codec, route, connection) = (Arc::clone(self), Arc::clone(route), Arc::clone(connection));
        Box::pin(async move {
            let body = RawBody::long(Bytes::from(request), &connection, reply.key);
            codec.run(&connection, &reply, &route, body).await;
        })
    }

    fn answer(
        batch: &mut Batch<'_>,
        reply: &ResponseTarget,
        output: &mut Self::Output,
    ) -> Option<CallFuture> {
        match output {
            Ok(Answered::Whole(answer)) if answer.is_plain() => {
                let message = Piece(std::mem::take(&mut answer.body));
                batch.answer(reply, &Ok(MessageResponse { metadata: &NO_METADATA, message, trailers: None }));
                None
            }
            Ok(Answered::Whole(answer)) => {
                batch.respond_raw(reply, answer);
                None
            }
            _ => Self::respond(batch.connection, reply, output),
        }
    }

    fn respond(
        connection: &Arc<Connection>,
        reply: &ResponseTarget,
        output: &mut Self::Output,
    ) -> Option<CallFuture> {
        match std::mem::replace(output, Err(Status::internal("the response was already sent"))) {
            Ok(Answered::Whole(answer)) => {
                let mut state = connection.lock();
                respond::send_raw(&mut state, reply, &answer);
                state.notify_driver();
                None
            }
            Ok(Answered::Started(started)) => {
                let (connection, reply) = (Arc::clone(connection), *reply);
                Some(Box::pin(async move {
                    let (head, pieces) = *started;
                    send_stream(&connection, &reply, &head, pieces).await;
                }))
            }
            Err(status) => {
                reset(connection, reply, &status);
                None
            }
        }
    }
}

/// Sends a response whose body is not complete, until its end.
async fn send_stream<B: OutgoingBody>(
    connection: &Arc<Connection>,
    reply: &ResponseTarget,
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
                // Fails only if the stream has ended, which its slot learns separately.
                let _ = http2.send_data(reply.stream, [Bytes::new()], true);
            }
            respond::end_raw(&mut state, reply, &trailers, code);
            state.notify_driver();
        }
        SendOutcome::Failed(status) => reset(connection, reply, &status),
        SendOutcome::Gone => {}
    }
}

/// Sends response headers before the body. Returns the call's measure, unless the call has failed.
fn send_head(connection: &Connection, reply: &ResponseTarget, head: &Parts) -> Option<CallMeasure> {
    let mut state = connection.lock();
    let is_sent = respond::send_raw_head(&mut state, reply, head.status, &head.headers, false);
    state.notify_driver();
    is_sent.then(|| state.slot(reply.key).and_then(|slot| slot.measure().cloned()).unwrap_or_default())
}

/// Resets the stream after the response body failed, so the client cannot mistake it for complete.
#[cold]
fn reset(connection: &Connection, reply: &ResponseTarget, status: &Status) {
    tracing::debug!(peer = &*connection.peer, %status, "the response body failed");
    let mut state = connection.lock();
    state.http2.reset(reply.stream, ErrorCode::InternalError);
    state.note_failed(reply.key);
    respond::finish(&mut state, reply, Code::Internal);
    state.notify_driver();
}

/// Runs raw requests.
struct RawCalls<H: RawHandler>(Arc<Raw<H>>);

impl<H: RawHandler> RunCalls for RawCalls<H> {
    fn read_head(&self, head: &RawHead<'_>) -> Option<HeadRead> {
        Some(Box::new(self.0.0.read_head(head)))
    }

    fn run(&self, method: &ServerMethod, batch: &mut Batch<'_>) {
        runner::run(&self.0, method, batch);
    }

    fn start(&self, call: StartedCall) -> CallFuture {
        let StartedCall { connection, route, reply, measure } = call;
        let codec = Arc::clone(&self.0);
        Box::pin(async move {
            let gathers = route.raw.as_ref().is_some_and(|head| head.gathers);
            let reader = RawReader::of_request(Arc::clone(&connection), reply.key, gathers, measure);
            codec.run(&connection, &reply, &route, RawBody::reader(Box::new(reader))).await;
        })
    }
}
