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
    Batch, Body, CallFuture, DerivedData, Handler, Route, RunCalls, ServerMethod, StartedCall, StartsOn,
};
use super::handler_cost::HandlerCost;
use super::respond::{self, CompleteResponse, MessageResponse, NO_METADATA, ResponseTarget};
use super::runner::{self, Codec};
use crate::connection::{Connection, Outgoing, RawBody, RawReader, SendLoop, SendOutcome};
use crate::measure::CallMeasure;
use crate::raw::{Front, OutgoingBody, Pieces, RawHead, Trailers};
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
    fn start(&self, head: &RawHead<'_>, derived: &Self::Head, body: Self::RequestBody) -> Self::Future;
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
enum HandlerResponse<B> {
    Complete(CompleteResponse),
    /// The headers, and the first pieces of the body.
    Started(Box<(Parts, Pieces<B>)>),
}

pin_project! {
    /// A handler, and then the front of its response's body.
    struct ResponseFuture<F> {
        #[pin]
        handler: Option<F>,
    }
}

impl<F: Future<Output = Response<B>>, B: OutgoingBody> Future for ResponseFuture<F> {
    type Output = Result<HandlerResponse<B>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(handler) = this.handler.as_mut().as_pin_mut() else { return Poll::Pending };
        let (head, mut body) = ready!(handler.poll(cx)).into_parts();
        // Resources held by the handler, such as a permit, are released before its body is polled.
        this.handler.set(None);
        Poll::Ready(Front::of(&mut body, cx).map(|front| match front {
            Front::Complete(body, trailers) => HandlerResponse::Complete(CompleteResponse {
                status: head.status,
                headers: head.headers,
                body,
                trailers,
            }),
            Front::Started(first) => {
                let pieces = Pieces { first, body: Some(body), trailers: Trailers::None, sizes: None };
                HandlerResponse::Started(Box::new((head, pieces)))
            }
        }))
    }
}

impl<H: RawHandler> Raw<H> {
    fn call(&self, route: &Route, body: RawBody) -> Result<ResponseFuture<H::Future>, Status> {
        let unread = || Status::local(Code::Internal, "the request's headers were not read");
        let raw = route.raw.as_deref().ok_or_else(unread)?;
        // The same handler derived the data.
        let derived = raw.derived.downcast_ref::<H::Head>().ok_or_else(unread)?;
        Ok(ResponseFuture { handler: Some(self.0.start(&raw.head(&route.head), derived, body.into())) })
    }

    /// Runs a call in its task.
    async fn run(&self, connection: &Arc<Connection>, target: &ResponseTarget, route: &Route, body: RawBody) {
        match self.call(route, body) {
            Err(status) => respond::fail(connection, target, &status),
            Ok(call) => {
                if let Some(rest) = Self::respond(connection, target, &mut call.await) {
                    rest.await;
                }
            }
        }
    }
}

impl<H: RawHandler> Codec for Raw<H> {
    type Future = ResponseFuture<H::Future>;
    type Output = Result<HandlerResponse<H::Body>, Status>;

    fn cost(route: &Route) -> &HandlerCost {
        let derived = route.raw.as_deref().and_then(|raw| raw.derived.downcast_ref::<H::Head>());
        derived.and_then(H::cost).unwrap_or(&route.method.cost)
    }

    fn takes_long(route: &Route, body: &Body, buffer: &[u8]) -> bool {
        match &route.raw {
            // Each message has its own compression flag.
            Some(raw) if raw.gathers => body.takes_long(buffer),
            Some(raw) => body.is_large() || raw.is_compressed,
            None => false,
        }
    }

    fn start(&self, route: &Route, body: Body, buffer: &[u8]) -> Result<Self::Future, Status> {
        self.call(route, RawBody::complete(Bytes::from(body.into_owned(buffer)), Trailers::None))
    }

    fn deferred(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        target: ResponseTarget,
        route: &Arc<Route>,
        request: Vec<u8>,
    ) -> CallFuture {
        let (codec, route, connection) = (Arc::clone(self), Arc::clone(route), Arc::clone(connection));
        Box::pin(async move {
            let body = RawBody::long(Bytes::from(request), &connection, target.key);
            codec.run(&connection, &target, &route, body).await;
        })
    }

    fn respond_in_batch(
        batch: &mut Batch<'_>,
        target: &ResponseTarget,
        output: &mut Self::Output,
    ) -> Option<CallFuture> {
        match output {
            Ok(HandlerResponse::Complete(response)) if response.is_plain() => {
                let message = std::mem::take(&mut response.body);
                batch.respond(
                    target,
                    &Ok(MessageResponse { metadata: &NO_METADATA, message, trailers: None }),
                );
                None
            }
            Ok(HandlerResponse::Complete(response)) => {
                batch.respond_raw(target, response);
                None
            }
            _ => Self::respond(batch.connection, target, output),
        }
    }

    fn respond(
        connection: &Arc<Connection>,
        target: &ResponseTarget,
        output: &mut Self::Output,
    ) -> Option<CallFuture> {
        match std::mem::replace(output, Err(Status::local(Code::Internal, "the response was already sent"))) {
            Ok(HandlerResponse::Complete(response)) => {
                let mut state = connection.lock();
                respond::send_raw(&mut state, target, &response);
                state.notify_driver();
                None
            }
            Ok(HandlerResponse::Started(started)) => {
                let (connection, target) = (Arc::clone(connection), *target);
                Some(Box::pin(async move {
                    let (head, pieces) = *started;
                    send_stream(&connection, &target, &head, pieces).await;
                }))
            }
            Err(status) => {
                reset(connection, target, &status);
                None
            }
        }
    }
}

/// Sends a response whose body is not complete, until its end.
async fn send_stream<B: OutgoingBody>(
    connection: &Arc<Connection>,
    target: &ResponseTarget,
    head: &Parts,
    pieces: Pieces<B>,
) {
    let Some(measure) = send_headers(connection, target, head) else { return };
    let mut sender =
        SendLoop::new(Arc::clone(connection), target.key, pieces, Outgoing::default(), false, measure);
    match poll_fn(|cx| sender.poll_send(cx)).await {
        SendOutcome::Done => {
            let trailers = sender.into_source().trailers;
            let code = trailers.code(head.status.as_u16(), &head.headers);
            let mut state = connection.lock();
            if matches!(trailers, Trailers::None)
                && let Some((slot, http2, _)) = state.parts(target.key)
                && !slot.send_closed
            {
                // Fails only if the stream has ended, which its slot learns separately.
                let _ = http2.send_data(target.stream, [Bytes::new()], true);
            }
            respond::end_raw(&mut state, target, &trailers, code);
            state.notify_driver();
        }
        SendOutcome::Failed(status) => reset(connection, target, &status),
        SendOutcome::StreamClosed => {}
    }
}

/// Sends response headers before the body. Returns the call's measure, unless the call has failed.
fn send_headers(connection: &Connection, target: &ResponseTarget, head: &Parts) -> Option<CallMeasure> {
    let mut state = connection.lock();
    let is_sent = respond::send_raw_headers(&mut state, target, head.status, &head.headers, false);
    state.notify_driver();
    is_sent.then(|| state.slot(target.key).and_then(|slot| slot.measure().cloned()).unwrap_or_default())
}

/// Resets the stream after the response body failed, so the client cannot mistake it for complete.
#[cold]
fn reset(connection: &Connection, target: &ResponseTarget, status: &Status) {
    tracing::debug!(peer = &*connection.peer, %status, "the response body failed");
    let mut state = connection.lock();
    state.http2.reset(target.stream, ErrorCode::InternalError);
    state.note_failed(target.key);
    respond::finish(&mut state, target, Code::Internal);
    state.notify_driver();
}

/// Runs raw requests.
struct RawCalls<H: RawHandler>(Arc<Raw<H>>);

impl<H: RawHandler> RunCalls for RawCalls<H> {
    fn read_head(&self, head: &RawHead<'_>) -> Option<DerivedData> {
        Some(Box::new(self.0.0.read_head(head)))
    }

    fn run(&self, method: &ServerMethod, batch: &mut Batch<'_>) {
        runner::run(&self.0, method, batch);
    }

    fn start(&self, call: StartedCall) -> CallFuture {
        let StartedCall { connection, route, target, measure } = call;
        let codec = Arc::clone(&self.0);
        Box::pin(async move {
            let gathers = route.raw.as_ref().is_some_and(|raw| raw.gathers);
            let reader = RawReader::of_request(Arc::clone(&connection), target.key, gathers, measure);
            codec.run(&connection, &target, &route, RawBody::reader(Box::new(reader))).await;
        })
    }
}
