//! Server side of a connection: turns stream events into calls.

use std::cell::Cell;
use std::sync::Arc;

use thalweg_http2::{ErrorCode, Event, StreamId};
use tokio::time::Instant;

use super::dispatch::{Batch, Body, ReadyCall, Route, Router, StartedCall};
use super::fallback::Fallback;
use super::respond::{self, ResponseTarget};
use super::routing::{self, CACHED_HEADERS_SIZE_MAX, ParsedRequest};
use super::task::CallTask;
use crate::connection::{
    Connection, End, Endpoint, Inbox, OnEnd, ServerCall, Single, Slot, SlotKey, State, put_buffer,
    take_buffer,
};
use crate::connection_info::ConnectionInfo;
use crate::grpc::code;
use crate::grpc::envelope::PREFIX_LEN;
use crate::grpc::header_cache::HeaderCache;
use crate::grpc::request;
use crate::measure::{CallMeasure, ServerMeasure, SpanSource};
use crate::status::{self, Status};

pub(crate) struct ServerEndpoint {
    router: Arc<dyn Router>,
    fallback: Option<Fallback>,
    /// Maximum number of calls, including those whose stream was reset while the handler still runs.
    calls_max: usize,
    headers: HeaderCache<ParsedRequest, HEADERS_CACHED_MAX>,
    /// Routes of headers that differ from others only in the timeout.
    timed: HeaderCache<Arc<Route>, 1>,
    /// Buffer borrowed from the thread: see [`READY`].
    ready: Vec<ReadyCall>,
    /// Calls that wait for responses to be sent, because the buffer budget is used up.
    postponed: Vec<ReadyCall>,
    is_full: bool,
    /// Empty between batches.
    responses: Vec<(ResponseTarget, Single)>,
    streams_ready: Vec<(Arc<Route>, ResponseTarget, CallMeasure)>,
    /// Raw requests that have started. By the end of the read, complete ones are in `ready` instead.
    raw_started: Vec<(Arc<Route>, ResponseTarget)>,
    measure: ServerMeasure,
    /// Connection info passed to calls.
    info: Option<Arc<ConnectionInfo>>,
}

thread_local! {
    /// Buffer of ready calls, shared by all connections of the thread. A buffer per connection would rarely be in the
    /// cache.
    static READY: Cell<Vec<ReadyCall>> = const { Cell::new(Vec::new()) };
}

/// Maximum capacity of the buffer that is reused.
const READY_KEPT_MAX: usize = 1024;

/// Clients call a handful of methods in turn, each with one header block.
const HEADERS_CACHED_MAX: usize = 8;

impl ServerEndpoint {
    pub(super) fn new(
        router: Arc<dyn Router>,
        fallback: Option<Fallback>,
        measure: ServerMeasure,
        streams_max: u32,
    ) -> Self {
        Self {
            router,
            fallback,
            calls_max: 2 * streams_max as usize,
            headers: HeaderCache::default(),
            timed: HeaderCache::default(),
            ready: Vec::new(),
            postponed: Vec::new(),
            is_full: false,
            responses: Vec::new(),
            streams_ready: Vec::new(),
            raw_started: Vec::new(),
            measure,
            info: None,
        }
    }

    /// Sets the connection info passed to every call.
    pub(super) fn set_info(&mut self, info: ConnectionInfo) {
        self.info = Some(Arc::new(info));
    }

    /// Handles a request that arrived in one piece. A unary call is ready at once and needs no inbox.
    #[inline]
    fn on_complete_request(&mut self, state: &mut State, stream: StreamId, bytes: &[u8], start: usize) {
        let route = match self.parsed_request(state) {
            ParsedRequest::Call(route) if route.is_unary() && bytes.len() >= PREFIX_LEN => route,
            _ => {
                let key = state.next_key();
                self.on_request(state, stream, false);
                return self.on_data(state, key, stream, bytes, start, true);
            }
        };
        if !self.admits(state, stream) {
            return;
        }
        let measure = self.measure_of(&route);
        measure.handler_started(bytes.len() - PREFIX_LEN);
        let key = state.next_key();
        state.deferred().count(&measure);
        let (deadline, metadata_len) = (route.deadline(state), route.metadata_len);
        let call = ServerCall { deadline, measure, buffered: metadata_len, ..ServerCall::default() };
        insert(state, Slot::of_complete_request(stream, call));
        state.http2.set_tag(stream, key.into());
        let target =
            ResponseTarget { key, stream, outgoing: route.outgoing, headers: route.response_headers };
        self.push_ready(ReadyCall { route, target, body: Body::InPlace { start, len: bytes.len() } });
    }

    /// Returns whether another call is allowed; if not, refuses it.
    #[inline]
    fn admits(&mut self, state: &mut State, stream: StreamId) -> bool {
        if state.slots_len() >= self.calls_max {
            // Calls with reset streams are still running.
            state.http2.reset(stream, ErrorCode::RefusedStream);
            return false;
        }
        self.is_full = state.is_full();
        true
    }

    #[inline]
    fn measure_of(&self, route: &Arc<Route>) -> CallMeasure {
        if route.method.name.is_empty() {
            // The fallback measures its calls itself.
            return CallMeasure::default();
        }
        let span_source = || (!route.method.is_streaming()).then(|| Arc::clone(route) as Arc<dyn SpanSource>);
        self.measure.call(Some(&route.method.name), span_source)
    }

    fn on_request(&mut self, state: &mut State, stream: StreamId, end_stream: bool) {
        if !self.admits(state, stream) {
            return;
        }
        let parsed = self.parsed_request(state);
        let measure = match &parsed {
            ParsedRequest::Call(route) => self.measure_of(route),
            ParsedRequest::Refused(refused, _) => {
                self.measure.call(None, || Some(Arc::clone(refused) as Arc<dyn SpanSource>))
            }
            ParsedRequest::NonGrpc(_) => CallMeasure::default(),
        };
        let inbox = match &parsed {
            ParsedRequest::Call(route) => match &route.raw {
                None => Inbox::new(route.method.options.max_decoding_message_size),
                Some(raw) => Inbox::raw(Vec::new(), raw.gathers),
            },
            ParsedRequest::Refused(..) | ParsedRequest::NonGrpc(_) => Inbox::discarded(),
        };
        let on_end: Option<OnEnd> = match &parsed {
            ParsedRequest::Call(route) if !route.method.is_streaming() => Some(Arc::clone(route) as OnEnd),
            ParsedRequest::Call(_) | ParsedRequest::Refused(..) | ParsedRequest::NonGrpc(_) => None,
        };
        let key = state.next_key();
        state.http2.set_tag(stream, key.into());
        let deadline = match &parsed {
            ParsedRequest::Call(route) => route.deadline(state),
            ParsedRequest::Refused(..) | ParsedRequest::NonGrpc(_) => None,
        };
        let metadata_len = match &parsed {
            ParsedRequest::Call(route) => route.metadata_len,
            ParsedRequest::Refused(..) | ParsedRequest::NonGrpc(_) => 0,
        };
        let measure_of_call = measure.clone();
        let call = ServerCall {
            on_end,
            deadline,
            measure: measure_of_call,
            buffered: metadata_len,
            ..ServerCall::default()
        };
        state.deferred().count(&measure);
        state.note_growth(metadata_len as usize);
        insert(state, Slot::of_server(stream, inbox, call));
        match parsed {
            ParsedRequest::Refused(refused, headers) => {
                let target = ResponseTarget::for_refusal(key, stream, headers);
                respond::refuse(state, &target, &refused.status);
                return;
            }
            ParsedRequest::Call(route) if route.raw.is_some() => {
                if !end_stream {
                    let target = ResponseTarget {
                        key,
                        stream,
                        outgoing: route.outgoing,
                        headers: route.response_headers,
                    };
                    self.raw_started.push((route, target));
                }
            }
            ParsedRequest::Call(route) if route.method.is_streaming() => {
                let target =
                    ResponseTarget { key, stream, outgoing: route.outgoing, headers: route.response_headers };
                self.streams_ready.push((route, target, measure));
            }
            ParsedRequest::NonGrpc(response) => {
                // The stream stays until its body ends, so that further protocol errors are detected.
                response.send(&mut state.http2, stream);
                state.failed.call();
                state.discard(key);
                return;
            }
            ParsedRequest::Call(_) => {}
        }
        if end_stream {
            self.on_end(state, key);
        }
    }

    /// Returns the parsed request headers. Identical header blocks are parsed once.
    fn parsed_request(&mut self, state: &State) -> ParsedRequest {
        let headers = state.http2.fields();
        let id = headers.id();
        match self.headers.get(id) {
            Some(parsed) => parsed.clone(),
            None => self.parse_uncached(state),
        }
    }

    /// Like [`parsed_request`](Self::parsed_request), for uncached headers. If they differ from cached ones only in the
    /// timeout, only the timeout is parsed.
    fn parse_uncached(&mut self, state: &State) -> ParsedRequest {
        let headers = state.http2.fields();
        let id = headers.id();
        let timed = headers
            .shared_prefix()
            .and_then(|(prefix_id, rest)| Some((prefix_id, request::only_timeout(rest)?)));
        if let Some((prefix_id, timeout)) = timed {
            if let Some(route) = self.timed.get(id) {
                return ParsedRequest::Call(Arc::clone(route));
            }
            if let Some(ParsedRequest::Call(route)) = self.headers.get(prefix_id)
                && route.raw.is_none()
            {
                let route = Arc::new(route.with_timeout(Some(timeout)));
                self.timed.insert(id, Arc::clone(&route));
                return ParsedRequest::Call(route);
            }
        }
        let parsed = routing::parse(
            &*self.router,
            self.fallback.as_ref(),
            headers,
            self.info.as_ref(),
            self.measure.is_traced(),
        );
        if headers.size() <= CACHED_HEADERS_SIZE_MAX {
            let (id, parsed) = match (timed, &parsed) {
                (Some((prefix_id, _)), ParsedRequest::Call(route)) if route.raw.is_none() => {
                    (prefix_id, ParsedRequest::Call(Arc::new(route.with_timeout(None))))
                }
                _ => (id, parsed.clone()),
            };
            self.headers.insert(id, parsed);
        }
        parsed
    }

    fn on_data(
        &mut self,
        state: &mut State,
        key: SlotKey,
        stream: StreamId,
        bytes: &[u8],
        start: usize,
        end_stream: bool,
    ) {
        let Some((slot, http2, deferred)) = state.parts(key) else {
            state.http2.release(stream, bytes.len());
            return;
        };
        // The usual unary request: the whole message in one piece.
        if end_stream
            && slot.inbox.is_empty()
            && bytes.len() >= PREFIX_LEN
            && let Some(route) = take_route(slot)
        {
            slot.end(End::received());
            if let Some(measure) = slot.measure() {
                measure.handler_started(bytes.len() - PREFIX_LEN);
            }
            let target =
                ResponseTarget { key, stream, outgoing: route.outgoing, headers: route.response_headers };
            self.push_ready(ReadyCall { route, target, body: Body::InPlace { start, len: bytes.len() } });
            return;
        }
        match slot.inbox.receive(bytes, stream, http2) {
            Ok(true) => deferred.wake(slot.receiver.take()),
            Ok(false) => {}
            Err(error) => {
                Self::refuse(state, key, stream, &error.into());
                return;
            }
        }
        if end_stream {
            self.on_end(state, key);
        }
    }

    /// Handles the end of a request.
    fn on_end(&mut self, state: &mut State, key: SlotKey) {
        let Some((slot, http2, deferred)) = state.parts(key) else { return };
        slot.end(End::received());
        deferred.wake(slot.receiver.take());
        let stream = slot.stream;
        if let Some(route) = take_route(slot) {
            if let Some(measure) = slot.measure() {
                measure.handler_started(slot.inbox.len().saturating_sub(PREFIX_LEN));
            }
            slot.inbox.release(stream, http2);
            let body = Body::Gathered(slot.inbox.take_rest());
            let deadline = slot.server_ref().and_then(|call| call.deadline);
            let target =
                ResponseTarget { key, stream, outgoing: route.outgoing, headers: route.response_headers };
            if deadline.is_some_and(|deadline| deadline <= state.polled_at) {
                return respond::refuse(
                    state,
                    &target,
                    &status::deadline_exceeded_at("the request was not complete"),
                );
            }
            self.push_ready(ReadyCall { route, target, body });
        }
    }

    #[inline]
    fn push_ready(&mut self, call: ReadyCall) {
        if self.ready.capacity() == 0 {
            self.ready = take_buffer(&READY);
        }
        self.ready.push(call);
    }

    /// Removes a reset call whose handler has not started.
    fn forget(&mut self, key: SlotKey, measure: Option<&CallMeasure>) {
        for calls in [&mut self.ready, &mut self.postponed] {
            let count = calls.len();
            calls.retain(|call| call.target.key != key);
            if calls.len() < count
                && let Some(measure) = measure
            {
                measure.handler_not_started();
            }
        }
        self.streams_ready.retain(|(_, target, _)| target.key != key);
        self.raw_started.retain(|(_, target)| target.key != key);
    }

    /// Rejects a request that violates the gRPC protocol.
    fn refuse(state: &mut State, key: SlotKey, stream: StreamId, status: &Status) {
        let Some((slot, http2, deferred)) = state.parts(key) else { return };
        if let Some(route) = take_route(slot) {
            let target = ResponseTarget::for_refusal(key, stream, route.response_headers);
            respond::refuse(state, &target, status);
            return;
        }
        // The running handler reads the error and responds with it.
        slot.inbox.discard(stream, http2);
        slot.end(End::Complete(Err(status.clone())));
        deferred.wake(slot.receiver.take());
    }
}

/// Takes the unary call that starts at the end of the request.
#[inline]
fn take_route(slot: &mut Slot) -> Option<Arc<Route>> {
    slot.server()?.on_end.take()?.downcast().ok()
}

/// Not inlined, which would copy the slot once more: 50 instructions per call.
#[inline(never)]
fn insert(state: &mut State, slot: Slot) {
    state.insert(slot);
}

/// Starts a task for a call whose request is still arriving.
fn start(connection: &Arc<Connection>, route: Arc<Route>, target: ResponseTarget, measure: CallMeasure) {
    let method = Arc::clone(&route.method);
    let call = StartedCall { connection: Arc::clone(connection), route, target, measure };
    let task = CallTask::started(Arc::clone(connection), target, || method.handler.calls.start(call));
    tokio::spawn(task);
}

impl Endpoint for ServerEndpoint {
    const IS_SAMPLED: bool = false;
    const IS_CLIENT: bool = false;

    fn on_event(&mut self, state: &mut State, event: &Event<'_>, input_start: usize) {
        match *event {
            Event::Headers { stream, end_stream, .. } => self.on_request(state, stream, end_stream),
            Event::CompleteMessage { stream, bytes, start, .. } => {
                self.on_complete_request(state, stream, bytes, input_start + start);
            }
            Event::Data { stream, tag, bytes, start, end_stream } => {
                self.on_data(state, tag.into(), stream, bytes, input_start + start, end_stream);
            }
            Event::Trailers { tag, .. } => self.on_end(state, tag.into()),
            Event::Reset { tag, cause, .. } => {
                let key = tag.into();
                let status = Status::new(
                    code::from_error_code(cause.code),
                    format!("the client ended the call: {}", cause.reason),
                );
                state.note_cut_off(key);
                let Some((slot, _, deferred)) = state.parts(key) else { return };
                slot.end_lost(status);
                slot.wake_all(deferred);
                self.forget(key, slot.measure());
                if slot.server().is_some_and(|call| call.task_running) {
                    return;
                }
                // No handler has started that would remove the slot.
                state.discard(key);
            }
            Event::Writable { tag, .. } => {
                if let Some((slot, _, deferred)) = state.parts(tag.into()) {
                    deferred.wake(slot.sender.take());
                }
            }
            _ => {}
        }
    }

    fn run_ready(&mut self, connection: &Arc<Connection>, buffer: &[u8], has_more: bool, polled_at: Instant) {
        for (route, target, measure) in self.streams_ready.drain(..) {
            start(connection, route, target, measure);
        }
        // Clients write the headers of all requests before the first message. If more input follows, requests that
        // become complete can take the fast path.
        let started_len = if has_more { 0 } else { self.raw_started.len() };
        for (route, target) in self.raw_started.drain(..started_len) {
            let mut state = connection.lock();
            let Some(slot) = state.slot(target.key) else { continue };
            // The route of a complete request has been taken.
            if take_route(slot).is_none() {
                continue;
            }
            let measure = slot.measure().cloned().unwrap_or_default();
            drop(state);
            measure.handler_started(0);
            start(connection, route, target, measure);
        }
        if self.is_full || !self.postponed.is_empty() {
            self.postponed.extend(self.ready.drain(..).map(|call| call.into_owned(buffer)));
            let mut state = connection.lock();
            self.is_full = state.postpones();
            if state.http2.is_closed() {
                drop(state);
                // There is no peer to respond to.
                self.postponed.clear();
                return;
            }
            drop(state);
            if self.is_full {
                return;
            }
            std::mem::swap(&mut self.ready, &mut self.postponed);
        }
        if !self.ready.is_empty() {
            let calls = self.ready.drain(..);
            let batch = Batch::new(connection, buffer, calls, &mut self.responses, polled_at);
            self.is_full = batch.run(&mut self.postponed);
            put_buffer(&READY, std::mem::take(&mut self.ready), READY_KEPT_MAX);
        }
    }

    fn is_postponing(&self) -> bool {
        !self.postponed.is_empty()
    }

    fn shrink(&mut self) {
        self.headers = HeaderCache::default();
        self.postponed.shrink_to_fit();
        self.responses.shrink_to_fit();
        self.streams_ready.shrink_to_fit();
        self.raw_started.shrink_to_fit();
    }
}
