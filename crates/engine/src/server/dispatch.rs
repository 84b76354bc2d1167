//! A server's methods, and the calls made ready by one read.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::vec;

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::Instant;

use super::exchange::{LocalFuture, StreamingCall};
use super::handler_cost::{HandlerCost, Stopwatch};
use super::http1::Http1;
use super::respond::{self, CompleteResponse, FixedHeaders, MessageResponse, Response, ResponseTarget};
use crate::connection::{Connection, Outgoing, Single, State, put_encode_buffer, take_encode_buffer};
use crate::connection_info::ConnectionInfo;
use crate::encode::Encode;
use crate::grpc::codec::Wire;
use crate::grpc::content_type;
use crate::grpc::request::RequestHead;
use crate::measure::{CallMeasure, SpanSource};
use crate::options::ServiceOptions;
use crate::raw::RawHead;
use crate::status::{Code, Status};

/// Finds the method of a request.
pub trait Router: Send + Sync + fmt::Debug + 'static {
    /// Returns the method at `path`, which is verbatim from the request: `/package.Service/Method`. Results are cached
    /// per connection, keyed by the header block.
    ///
    /// # Errors
    /// Returns the status that ends the call, mostly UNIMPLEMENTED.
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status>;

    /// Returns the names of all methods in alphabetical order, as in [`ServerMethod::name`]. Empty if they are not
    /// known in advance.
    fn method_names(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// Returns a router for one connection, if connections have their own.
    fn of_connection(&self, _: &ConnectionInfo) -> Option<Arc<dyn Router>> {
        None
    }

    /// Returns whether connections without TLS may use HTTP/1.1, detected by their first bytes.
    fn accepts_http1(&self) -> bool {
        false
    }

    /// Returns the handler of HTTP/1.1 connections for servers without a [`Fallback`](super::Fallback) fallback. `None`
    /// rejects them.
    fn http1(&self) -> Option<Arc<dyn Http1>> {
        None
    }
}

/// A method of a server.
pub struct ServerMethod {
    /// `package.Service/Method`, as in metrics.
    pub(super) name: Arc<str>,
    /// Content subtype of its messages; empty if requests may use any.
    pub(super) content_subtype: &'static str,
    pub(super) options: ServiceOptions,
    pub(super) handler: Handler,
    pub(super) cost: HandlerCost,
}

/// Runs the calls of a method. [`Handler::unary`], [`Handler::streaming`] and [`Handler::raw`] create one.
pub struct Handler {
    pub(super) starts_on: StartsOn,
    pub(super) calls: Box<dyn RunCalls>,
}

/// When the calls of a method start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartsOn {
    /// When the whole request is there: the method is unary.
    Request,
    /// With the headers.
    Headers,
    /// With the headers, unless the whole request came in the same read. Headers and body are passed on verbatim.
    RawRequest,
}

/// The future of a call, which completes after the response.
pub(super) type CallFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs calls, independent of their message types.
pub(super) trait RunCalls: Send + Sync {
    /// Reads the headers of a raw request. `None` if the handler takes none.
    fn read_head(&self, _: &RawHead<'_>) -> Option<DerivedData> {
        None
    }

    /// Runs the calls of `method` at the front of `batch`, which have complete requests. Finished calls add their
    /// responses to the output; the others continue in tasks.
    fn run(&self, method: &ServerMethod, batch: &mut Batch<'_>) {
        while batch.next_of(method).is_some() {}
    }

    /// Starts a call whose request is still arriving.
    fn start(&self, _: StartedCall) -> CallFuture {
        Box::pin(std::future::ready(()))
    }

    /// Starts an in-process call with one message, which has no prefix and a permitted length.
    ///
    /// # Errors
    /// The status that the call ends with, if the message can't be read.
    fn start_local(&self, _: &RequestHead, _: Bytes, _: &ServiceOptions) -> Result<LocalFuture, Status> {
        Err(Status::local(Code::Unimplemented, "the method does not accept in-process calls"))
    }

    /// Starts an in-process call with a stream of messages.
    fn start_local_stream(&self, _: &RequestHead, call: StreamingCall) -> CallFuture {
        call.fail(&Status::local(Code::Unimplemented, "the method does not accept in-process calls"));
        Box::pin(std::future::ready(()))
    }
}

/// A call whose request is still arriving.
pub(super) struct StartedCall {
    pub(super) connection: Arc<Connection>,
    pub(super) route: Arc<Route>,
    pub(super) target: ResponseTarget,
    pub(super) measure: CallMeasure,
}

/// Handler of streaming calls.
pub trait StreamingHandler: Send + Sync + 'static {
    /// Calls the handler. The future completes when the call ends.
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl ServerMethod {
    /// Creates the method `name`: `package.Service/Method`.
    pub fn new(name: &str, options: ServiceOptions, handler: Handler) -> Self {
        Self { name: name.into(), content_subtype: "", options, handler, cost: HandlerCost::default() }
    }

    /// Sets the content subtype of its messages, such as `json` in `application/grpc+json`. Requests that state it get
    /// it in their responses. Requests with another one are rejected. Empty, the default, allows any.
    ///
    /// # Panics
    /// Panics if `subtype` is not a valid content-subtype token.
    #[must_use]
    pub fn with_content_subtype(mut self, subtype: &'static str) -> Self {
        assert!(
            content_type::is_legal_subtype(subtype),
            "a content subtype can only have letters, digits and - . _ +"
        );
        self.content_subtype = subtype;
        self
    }

    /// Returns `package.Service/Method`.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the content subtype, see [`with_content_subtype`](Self::with_content_subtype).
    pub fn content_subtype(&self) -> &'static str {
        self.content_subtype
    }

    /// Returns the method's options.
    pub fn options(&self) -> &ServiceOptions {
        &self.options
    }

    /// Returns whether calls start with their headers, because requests, responses or both are streams.
    #[inline]
    pub fn is_streaming(&self) -> bool {
        self.handler.starts_on == StartsOn::Headers
    }
}

impl Handler {
    pub(super) fn new(starts_on: StartsOn, calls: impl RunCalls + 'static) -> Self {
        Self { starts_on, calls: Box::new(calls) }
    }

    /// Creates the handler of a method that takes its requests, sends its responses, or both, as a stream.
    pub fn streaming(handler: impl StreamingHandler) -> Self {
        Self::new(StartsOn::Headers, Streams(handler))
    }
}

/// Runs the calls of a streaming method.
struct Streams<H>(H);

impl<H: StreamingHandler> RunCalls for Streams<H> {
    fn start(&self, call: StartedCall) -> CallFuture {
        let StartedCall { connection, route, target, measure } = call;
        let size_max = route.method.options.max_decoding_message_size;
        let call = StreamingCall::new(connection, target, size_max, route.head.encoding, measure);
        self.0.start(&route.head, call)
    }

    fn start_local_stream(&self, head: &RequestHead, call: StreamingCall) -> CallFuture {
        self.0.start(head, call)
    }
}

/// Parsed request headers, shared by all requests with identical header blocks.
pub(super) struct Route {
    pub(super) method: Arc<ServerMethod>,
    pub(super) head: RequestHead,
    pub(super) outgoing: Outgoing,
    pub(super) response_headers: &'static FixedHeaders,
    /// Size of the metadata charged to each call in bytes; close to 0 for cached headers.
    pub(super) metadata_len: u32,
    /// Set for raw requests.
    pub(super) raw: Option<Box<RawRequest>>,
}

/// Data that a handler has derived from request headers.
pub(super) type DerivedData = Box<dyn Any + Send + Sync>;

/// The parts of raw request headers that are not fields.
pub(super) struct RawRequest {
    pub(super) verb: http::Method,
    pub(super) uri: http::Uri,
    /// Whether the body consists of gRPC messages.
    pub(super) gathers: bool,
    /// Whether the whole body is compressed.
    pub(super) is_compressed: bool,
    pub(super) derived: DerivedData,
}

impl RawRequest {
    /// Returns the complete headers; `fields` holds their fields.
    pub(super) fn head<'a>(&'a self, fields: &'a RequestHead) -> RawHead<'a> {
        raw_head(&self.verb, &self.uri, fields)
    }
}

pub(super) fn raw_head<'a>(
    verb: &'a http::Method,
    uri: &'a http::Uri,
    fields: &'a RequestHead,
) -> RawHead<'a> {
    let connection = fields.connection.as_ref();
    RawHead { method: verb, uri, version: http::Version::HTTP_2, headers: &fields.metadata, connection }
}

impl Route {
    /// Returns whether request and response are one gRPC message each.
    #[inline]
    pub(super) fn is_unary(&self) -> bool {
        self.method.handler.starts_on == StartsOn::Request && self.raw.is_none()
    }

    /// Returns the same route with another timeout.
    pub(super) fn with_timeout(&self, timeout: Option<Duration>) -> Self {
        debug_assert!(self.raw.is_none(), "raw requests carry their own timeout");
        let Self { outgoing, response_headers, metadata_len, .. } = *self;
        let head = RequestHead { timeout, ..self.head.clone() };
        Self { method: Arc::clone(&self.method), head, outgoing, response_headers, metadata_len, raw: None }
    }

    /// Returns the deadline of a call that has just arrived.
    #[inline]
    pub(super) fn deadline(&self, state: &State) -> Option<Instant> {
        self.head.timeout.and_then(|timeout| state.polled_at.checked_add(timeout))
    }
}

impl SpanSource for Route {
    fn path(&self) -> &str {
        &self.method.name
    }

    fn metadata(&self) -> &HeaderMap {
        &self.head.metadata
    }
}

/// A unary call whose request is complete.
pub(super) struct ReadyCall {
    pub(super) route: Arc<Route>,
    pub(super) target: ResponseTarget,
    pub(super) body: Body,
}

impl ReadyCall {
    /// Copies the request out of the read buffer.
    #[cold]
    pub(super) fn into_owned(self, buffer: &[u8]) -> Self {
        Self { body: Body::Gathered(self.body.into_owned(buffer)), ..self }
    }
}

/// Location of the request's message with its prefix.
pub(super) enum Body {
    /// In the connection's read buffer, from which it is decoded.
    InPlace { start: usize, len: usize },
    /// Gathered from several pieces.
    Gathered(Vec<u8>),
}

impl Body {
    /// Returns whether decoding would delay other calls of the connection, because the message is large or compressed.
    #[inline]
    pub(super) fn takes_long(&self, buffer: &[u8]) -> bool {
        let flag = match self {
            Body::InPlace { start, len } => buffer[*start..start + len].first(),
            Body::Gathered(wire) => wire.first(),
        };
        self.is_large() || flag.is_some_and(|flag| *flag != 0)
    }

    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.len() > DECODED_AT_ONCE_MAX
    }

    /// Returns the length in bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Body::InPlace { len, .. } => *len,
            Body::Gathered(wire) => wire.len(),
        }
    }

    pub(super) fn into_owned(self, buffer: &[u8]) -> Vec<u8> {
        match self {
            Body::InPlace { start, len } => buffer[start..start + len].to_vec(),
            Body::Gathered(wire) => wire,
        }
    }

    #[inline]
    pub(super) fn wire(self, buffer: &[u8]) -> Wire<'_> {
        match self {
            Body::InPlace { start, len } => Wire::Borrowed(&buffer[start..start + len]),
            Body::Gathered(wire) => Wire::Gathered(wire),
        }
    }
}

/// Larger requests, in bytes, and compressed ones are decoded in tasks, so that they do not delay other calls of the
/// connection.
const DECODED_AT_ONCE_MAX: usize = 256 * 1024;

/// Calls made ready by one read.
///
/// Most handlers complete on the first poll. Their responses join the output that is about to be written, without a
/// task, wake-up or queue. A pending handler moves to a task. Methods with slow handlers get tasks from the start, so
/// that calls of one connection do not delay each other.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Arc<Connection>,
    /// The bytes read.
    pub(super) buffer: &'a [u8],
    /// Measures from the end of the previous handler.
    pub(super) watch: Stopwatch,
    pub(super) calls: vec::Drain<'a, ReadyCall>,
    /// Encoded responses that are sent to the connection together.
    responses: &'a mut Vec<(ResponseTarget, Single)>,
    /// Buffer of encoded messages.
    encode_buffer: Vec<u8>,
    /// The connection has reached its buffer budget for responses.
    is_full: bool,
}

/// Encoded bytes after which responses are sent before the batch ends.
const RESPONSES_LEN_MAX: usize = 32 * 1024;

impl<'a> Batch<'a> {
    pub(super) fn new(
        connection: &'a Arc<Connection>,
        buffer: &'a [u8],
        calls: vec::Drain<'a, ReadyCall>,
        responses: &'a mut Vec<(ResponseTarget, Single)>,
        polled_at: Instant,
    ) -> Self {
        let watch = Stopwatch::rough(polled_at);
        let encode_buffer = take_encode_buffer();
        Self { connection, buffer, watch, calls, responses, encode_buffer, is_full: false }
    }

    /// Responds to a call with the handler's result. Responses without metadata are sent together with others of the
    /// batch.
    #[inline]
    pub(super) fn respond<M: Encode>(
        &mut self,
        target: &ResponseTarget,
        result: &Result<MessageResponse<'_, M>, Status>,
    ) {
        let start = self.encode_buffer.len();
        match Response::new(&target.outgoing, result, &mut self.encode_buffer) {
            Response::Plain(message) if self.calls.as_slice().is_empty() && self.responses.is_empty() => {
                respond::send_plain(&mut self.connection.lock(), target, message, &self.encode_buffer);
            }
            Response::Plain(message) => {
                // Large ones must be counted in the buffer budget before the next call runs.
                let is_large = matches!(message, Single::Large(_));
                self.responses.push((*target, message));
                if is_large || self.encode_buffer.len() > RESPONSES_LEN_MAX {
                    self.send_responses();
                }
            }
            other => {
                let mut state = self.connection.lock();
                other.send(&mut state, target, &self.encode_buffer);
                self.is_full |= state.is_full();
                drop(state);
                self.encode_buffer.truncate(start);
            }
        }
    }

    /// Like [`respond`](Self::respond), for raw responses.
    pub(super) fn respond_raw(&mut self, target: &ResponseTarget, response: &CompleteResponse) {
        let mut state = self.connection.lock();
        respond::send_raw(&mut state, target, response);
        self.is_full |= state.is_full();
    }

    fn send_responses(&mut self) {
        if self.responses.is_empty() {
            return;
        }
        let mut state = self.connection.lock();
        for (target, message) in self.responses.drain(..) {
            respond::send_plain(&mut state, &target, message, &self.encode_buffer);
        }
        self.is_full |= state.is_full();
        drop(state);
        self.encode_buffer.clear();
    }

    /// Returns the next call if it belongs to `method` and the buffer budget permits it.
    #[inline]
    pub(super) fn next_of(&mut self, method: &ServerMethod) -> Option<ReadyCall> {
        if self.is_full {
            return None;
        }
        let is_of_it = std::ptr::eq(&raw const *self.calls.as_slice().first()?.route.method, method);
        if is_of_it { self.calls.next() } else { None }
    }

    /// Runs calls until the connection's buffer budget is used up, and moves the remaining ones to `postponed`. Returns
    /// whether it is used up.
    pub(super) fn run(mut self, postponed: &mut Vec<ReadyCall>) -> bool {
        while !self.is_full
            && let Some(next) = self.calls.as_slice().first()
        {
            let method = Arc::clone(&next.route.method);
            method.handler.calls.run(&method, &mut self);
        }
        self.send_responses();
        put_encode_buffer(self.encode_buffer);
        postponed.extend(self.calls.map(|call| call.into_owned(self.buffer)));
        self.is_full
    }
}
