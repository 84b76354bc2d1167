//! The methods of a server, and the calls of them that one read has made ready.

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
use super::respond::{self, Answer, FixedHead, RawAnswer, Reply, Response};
use crate::connection::{Connection, Outgoing, Single, State, keep_scratch, take_scratch};
use crate::connection_info::ConnectionInfo;
use crate::encode::Encode;
use crate::grpc::codec::Wire;
use crate::grpc::content_type;
use crate::grpc::request::RequestHead;
use crate::measure::{CallMeasure, Called};
use crate::options::ServiceOptions;
use crate::raw::RawHead;
use crate::status::Status;

/// Which method a request is for.
pub trait Router: Send + Sync + fmt::Debug + 'static {
    /// The method at `path`, as it was sent: `/package.Service/Method`. Of equal heads only the first is asked about.
    ///
    /// # Errors
    /// The status that the call ends with, mostly UNIMPLEMENTED.
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status>;

    /// The names of all methods that there are, as [`ServerMethod::name`] has them, in the order of the alphabet; none
    /// where they are not known beforehand.
    fn method_names(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// What one connection has in place of this, if each has its own.
    fn of_connection(&self, _: &ConnectionInfo) -> Option<Arc<dyn Router>> {
        None
    }

    /// Whether connections without TLS may speak HTTP/1.1. Their first bytes tell then.
    fn accepts_http1(&self) -> bool {
        false
    }

    /// Serves a connection of HTTP/1.1, of a server that has nothing [`Beside`](super::Beside) gRPC. `None` if it is
    /// not accepted.
    fn http1(&self) -> Option<Arc<dyn Http1>> {
        None
    }
}

/// One method of a server.
pub struct ServerMethod {
    /// `package.Service/Method`, as metrics name it.
    pub(super) name: Arc<str>,
    /// What its messages are; empty where requests may say anything of theirs.
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

/// The rest of a call, until it has been answered.
pub(super) type CallFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs calls, whatever their messages.
pub(super) trait RunCalls: Send + Sync {
    /// Reads the headers of a raw request. `None` if the handler takes none.
    fn read_head(&self, _: &RawHead<'_>) -> Option<HeadRead> {
        None
    }

    /// Runs the calls of `method` at the front of `batch`, whose requests are whole. The responses of those that are
    /// ready join the output; the others go on in tasks.
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
        Err(Status::unimplemented("the method takes no in-process calls"))
    }

    /// Starts an in-process call with a stream of messages.
    fn start_local_stream(&self, _: &RequestHead, call: StreamingCall) -> CallFuture {
        call.fail(&Status::unimplemented("the method takes no in-process calls"));
        Box::pin(std::future::ready(()))
    }
}

/// A call whose request is still arriving.
pub(super) struct StartedCall {
    pub(super) connection: Arc<Connection>,
    pub(super) route: Arc<Route>,
    pub(super) reply: Reply,
    pub(super) measure: CallMeasure,
}

/// What runs a method of one of the other three call types.
pub trait StreamingHandler: Send + Sync + 'static {
    /// Calls the handler; the future ends with the call.
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl ServerMethod {
    /// The method `name`: `package.Service/Method`.
    pub fn new(name: &str, options: ServiceOptions, handler: Handler) -> Self {
        Self { name: name.into(), content_subtype: "", options, handler, cost: HandlerCost::default() }
    }

    /// Says what its messages are: `json` of `application/grpc+json`. Requests may say so too, and their answers then
    /// do; those that say another thing are refused. An empty one leaves it open.
    ///
    /// # Panics
    /// Where it can be no part of a content type.
    #[must_use]
    pub fn with_content_subtype(mut self, subtype: &'static str) -> Self {
        assert!(content_type::is_legal_subtype(subtype), "a content subtype has letters, digits, - . _ +");
        self.content_subtype = subtype;
        self
    }

    /// `package.Service/Method`.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// See [`with_content_subtype`](Self::with_content_subtype).
    pub fn content_subtype(&self) -> &'static str {
        self.content_subtype
    }

    /// What was set for it.
    pub fn options(&self) -> &ServiceOptions {
        &self.options
    }

    /// Whether its calls start with the head: its requests, its answers, or both, are a stream.
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
        let StartedCall { connection, route, reply, measure } = call;
        let size_max = route.method.options.max_decoding_message_size;
        let call = StreamingCall::new(connection, reply, size_max, route.head.encoding, measure);
        self.0.start(&route.head, call)
    }

    fn start_local_stream(&self, head: &RequestHead, call: StreamingCall) -> CallFuture {
        self.0.start(head, call)
    }
}

/// A request's head, understood: shared by all requests whose heads were the same.
pub(super) struct Route {
    pub(super) method: Arc<ServerMethod>,
    pub(super) head: RequestHead,
    pub(super) outgoing: Outgoing,
    pub(super) answer_head: &'static FixedHead,
    /// What the metadata of each of these calls takes, in bytes: of one whose head is kept, next to nothing.
    pub(super) metadata_len: u32,
    /// Of a request that is passed on as it is.
    pub(super) raw: Option<Box<RawRequest>>,
}

/// What a handler has read in a head.
pub(super) type HeadRead = Box<dyn Any + Send + Sync>;

/// What a request's head says besides its fields.
pub(super) struct RawRequest {
    pub(super) verb: http::Method,
    pub(super) uri: http::Uri,
    /// Whether its body is gRPC's messages.
    pub(super) gathers: bool,
    /// Whether its body is compressed, as a whole.
    pub(super) is_compressed: bool,
    pub(super) read: HeadRead,
}

impl RawRequest {
    /// The whole head, of which `fields` are the rest.
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
    /// Whether its request is one message of gRPC, and its answer too.
    #[inline]
    pub(super) fn is_unary(&self) -> bool {
        self.method.handler.starts_on == StartsOn::Request && self.raw.is_none()
    }

    /// The same of a head that differs in the time that the client waits.
    pub(super) fn with_timeout(&self, timeout: Option<Duration>) -> Self {
        debug_assert!(self.raw.is_none(), "the timeout of a raw request is one of its fields");
        let Self { outgoing, answer_head, metadata_len, .. } = *self;
        let head = RequestHead { timeout, ..self.head.clone() };
        Self { method: Arc::clone(&self.method), head, outgoing, answer_head, metadata_len, raw: None }
    }

    /// When the client of a call that has just come gives it up.
    #[inline]
    pub(super) fn deadline(&self, state: &State) -> Option<Instant> {
        self.head.timeout.and_then(|timeout| state.polled_at.checked_add(timeout))
    }
}

impl Called for Route {
    fn path(&self) -> &str {
        &self.method.name
    }

    fn metadata(&self) -> &HeaderMap {
        &self.head.metadata
    }
}

/// A unary call whose request is there.
pub(super) struct ReadyCall {
    pub(super) route: Arc<Route>,
    pub(super) reply: Reply,
    pub(super) body: Body,
}

impl ReadyCall {
    /// The call without the buffer that its request came in.
    #[cold]
    pub(super) fn into_owned(self, buffer: &[u8]) -> Self {
        Self { body: Body::Gathered(self.body.into_owned(buffer)), ..self }
    }
}

/// Where the request's message lies, prefix included.
pub(super) enum Body {
    /// In the connection's read buffer: it is decoded from there.
    InPlace { start: usize, len: usize },
    /// It came in pieces.
    Gathered(Vec<u8>),
}

impl Body {
    /// Whether reading it would keep the other calls of the connection waiting: it is large, or compressed.
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

    /// In bytes.
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
            Body::InPlace { start, len } => Wire::Lent(&buffer[start..start + len]),
            Body::Gathered(wire) => Wire::Gathered(wire),
        }
    }
}

/// A request of more bytes than this is decoded in a task, and so is one that is compressed: what it takes, the other
/// calls of its connection do not wait for.
const DECODED_AT_ONCE_MAX: usize = 256 * 1024;

/// The calls that one read has made ready.
///
/// Most handlers are ready when first polled. Their answers then join the output that is about to be written: no task,
/// no wake-up, no queue. One that has to wait moves to a task of its own. A method whose handlers keep the processor
/// long is given tasks from the start, so that one connection's calls don't wait for each other.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Arc<Connection>,
    /// What was read.
    pub(super) buffer: &'a [u8],
    /// Since the handler before was done.
    pub(super) watch: Stopwatch,
    pub(super) calls: vec::Drain<'a, ReadyCall>,
    /// Answers that are encoded, and go to the connection together.
    answers: &'a mut Vec<(Reply, Single)>,
    /// What their messages were encoded to.
    scratch: Vec<u8>,
    /// More answers wait on the connection than it may hold.
    is_full: bool,
}

/// Answers of this many bytes go to the connection before the others of their batch.
const ANSWERS_LEN_MAX: usize = 32 * 1024;

impl<'a> Batch<'a> {
    pub(super) fn new(
        connection: &'a Arc<Connection>,
        buffer: &'a [u8],
        calls: vec::Drain<'a, ReadyCall>,
        answers: &'a mut Vec<(Reply, Single)>,
        polled_at: Instant,
    ) -> Self {
        let watch = Stopwatch::rough(polled_at);
        let scratch = take_scratch();
        Self { connection, buffer, watch, calls, answers, scratch, is_full: false }
    }

    /// Answers a call with its handler's result: with the others of the batch, where there is nothing to it but a
    /// message.
    #[inline]
    pub(super) fn answer<M: Encode>(&mut self, reply: &Reply, result: &Result<Answer<'_, M>, Status>) {
        let start = self.scratch.len();
        match Response::new(&reply.outgoing, result, &mut self.scratch) {
            Response::Plain(message) if self.calls.as_slice().is_empty() && self.answers.is_empty() => {
                respond::send_plain(&mut self.connection.lock(), reply, message, &self.scratch);
            }
            Response::Plain(message) => {
                // How much large ones add to what waits is to be known before the next.
                let is_large = matches!(message, Single::Large(_));
                self.answers.push((*reply, message));
                if is_large || self.scratch.len() > ANSWERS_LEN_MAX {
                    self.send_answers();
                }
            }
            other => {
                let mut state = self.connection.lock();
                other.send(&mut state, reply, &self.scratch);
                self.is_full |= state.is_full();
                drop(state);
                self.scratch.truncate(start);
            }
        }
    }

    /// As [`answer`](Self::answer), with what is sent as it is.
    pub(super) fn answer_raw(&mut self, reply: &Reply, answer: &RawAnswer) {
        let mut state = self.connection.lock();
        respond::send_raw(&mut state, reply, answer);
        self.is_full |= state.is_full();
    }

    fn send_answers(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let mut state = self.connection.lock();
        for (reply, message) in self.answers.drain(..) {
            respond::send_plain(&mut state, &reply, message, &self.scratch);
        }
        self.is_full |= state.is_full();
        drop(state);
        self.scratch.clear();
    }

    /// The next call, if it is one of `method`, and is to be begun.
    #[inline]
    pub(super) fn next_of(&mut self, method: &ServerMethod) -> Option<ReadyCall> {
        if self.is_full {
            return None;
        }
        let is_of_it = std::ptr::eq(&raw const *self.calls.as_slice().first()?.route.method, method);
        if is_of_it { self.calls.next() } else { None }
    }

    /// Runs all calls, or those that the connection may hold the answers of: the others are `postponed`. Returns
    /// whether it holds as much as it may.
    pub(super) fn run(mut self, postponed: &mut Vec<ReadyCall>) -> bool {
        while !self.is_full
            && let Some(next) = self.calls.as_slice().first()
        {
            let method = Arc::clone(&next.route.method);
            method.handler.calls.run(&method, &mut self);
        }
        self.send_answers();
        keep_scratch(self.scratch);
        postponed.extend(self.calls.map(|call| call.into_owned(self.buffer)));
        self.is_full
    }
}
