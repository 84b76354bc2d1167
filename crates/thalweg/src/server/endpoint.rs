//! The server's side of a connection: takes requests apart and finds the methods they are for.

use std::convert::Infallible;
use std::sync::Arc;

use thalweg_http2::{ErrorCode, Event, StreamId};
use tonic::Status;

use super::dispatch::{Body, ReadyCall, Turn};
use super::handler::{Handler, response_encoding};
use super::http::HttpAnswer;
use super::methods::{Router, ServerMethod};
use super::respond::{self, Reply};
use super::task::{CallTask, StreamingCall};
use crate::connection::{Connection, End, Endpoint, Outgoing, Slot, SlotKey, State};
use crate::grpc::code;
use crate::grpc::compression::EncodingSet;
use crate::grpc::envelope::PREFIX_LEN;
use crate::grpc::request::{self, Refusal, RequestHead};
use crate::measure::{CallMeasure, ServerMeasure};

/// A request's head, understood: shared by all requests whose heads were the same.
pub(super) struct Route {
    pub(super) method: Arc<ServerMethod>,
    pub(super) head: RequestHead,
    pub(super) outgoing: Outgoing,
}

/// What a request head asks for.
#[derive(Clone)]
enum Asked {
    Call(Arc<Route>),
    /// gRPC, but not to be had.
    Refused(Status),
    /// Not gRPC.
    Http(HttpAnswer),
}

/// What the end of a request that is still coming in will set off.
enum Awaiting {
    Nothing,
    UnaryCall(Arc<Route>),
    HttpAnswer(HttpAnswer),
}

pub(crate) struct ServerEndpoint {
    router: Arc<Router>,
    /// The last heads that were taken apart, by the number that the protocol gives to equal ones.
    heads: [Option<(u64, Asked)>; HEADS_KEPT],
    /// By the index of the slot.
    awaiting: Vec<Awaiting>,
    ready: Vec<ReadyCall>,
    streams_ready: Vec<(Arc<Route>, Reply, CallMeasure)>,
    measure: ServerMeasure,
}

/// Clients call a handful of methods in turn; each is one head.
const HEADS_KEPT: usize = 8;

impl ServerEndpoint {
    pub(super) fn new(router: Arc<Router>, measure: ServerMeasure) -> Self {
        Self {
            router,
            heads: [const { None }; HEADS_KEPT],
            awaiting: Vec::new(),
            ready: Vec::new(),
            streams_ready: Vec::new(),
            measure,
        }
    }

    fn on_request(&mut self, state: &mut State, stream: StreamId, end_stream: bool) {
        let asked = self.asked(state);
        let size_max = match &asked {
            Asked::Call(route) => route.method.options.max_decoding_message_size,
            Asked::Refused(_) | Asked::Http(_) => 0,
        };
        let discard = !matches!(asked, Asked::Call(_));
        let measure = match &asked {
            Asked::Call(route) => self.measure.call(Some(&route.method.name)),
            Asked::Refused(_) => self.measure.call(None),
            Asked::Http(_) => CallMeasure::default(),
        };
        let inserted = state.insert_with(|http2, key| {
            http2.set_tag(stream, key.into());
            let mut slot = Slot::new(stream, size_max);
            slot.discard = discard;
            slot.measure = measure.clone();
            Ok::<_, Infallible>(slot)
        });
        let Ok(key) = inserted;
        match asked {
            Asked::Refused(status) => {
                let reply = Reply { key, stream, outgoing: Outgoing::default() };
                respond::send_status(state, &reply, &status);
                return;
            }
            Asked::Http(answer) => self.await_end(key, Awaiting::HttpAnswer(answer)),
            Asked::Call(route) => match route.method.handler {
                Handler::Unary(_) => self.await_end(key, Awaiting::UnaryCall(route)),
                Handler::Streaming(_) => {
                    self.await_end(key, Awaiting::Nothing);
                    let reply = Reply { key, stream, outgoing: route.outgoing };
                    self.streams_ready.push((route, reply, measure));
                }
            },
        }
        if end_stream {
            self.on_end(state, key);
        }
    }

    /// What the head at hand asks for; equal heads are taken apart once.
    fn asked(&mut self, state: &State) -> Asked {
        let head = state.http2.fields();
        let id = head.id();
        let place = &mut self.heads[id as usize % HEADS_KEPT];
        if let Some((known, asked)) = place
            && *known == id
        {
            return asked.clone();
        }
        let asked = parse(&self.router, head);
        *place = Some((id, asked.clone()));
        asked
    }

    fn await_end(&mut self, key: SlotKey, what: Awaiting) {
        let index = key.index();
        if self.awaiting.len() <= index {
            self.awaiting.resize_with(index + 1, || Awaiting::Nothing);
        }
        self.awaiting[index] = what;
    }

    /// What was set for the stream; `Nothing` also where the list was cut because it ended with nothing.
    fn take_awaiting(&mut self, key: SlotKey) -> Awaiting {
        let place = self.awaiting.get_mut(key.index());
        place.map_or(Awaiting::Nothing, |awaiting| std::mem::replace(awaiting, Awaiting::Nothing))
    }

    fn on_data(
        &mut self,
        state: &mut State,
        key: SlotKey,
        stream: StreamId,
        bytes: &[u8],
        end_stream: bool,
        buffer: &[u8],
    ) {
        let Some((slot, http2, wake)) = state.parts(key) else {
            state.http2.release(stream, bytes.len());
            return;
        };
        // The usual unary request: its message, whole, in one piece.
        if end_stream && slot.inbox.is_empty() && bytes.len() >= PREFIX_LEN {
            let awaiting = self.take_awaiting(key);
            if let Awaiting::UnaryCall(route) = awaiting {
                slot.end(End::received());
                slot.measure.received(bytes.len() - PREFIX_LEN);
                let start = bytes.as_ptr() as usize - buffer.as_ptr() as usize;
                let reply = Reply { key, stream, outgoing: route.outgoing };
                self.ready.push(ReadyCall { route, reply, body: Body::InPlace { start, len: bytes.len() } });
                return;
            }
            self.await_end(key, awaiting);
        }
        match slot.receive(bytes, http2) {
            Ok(true) => wake.extend(slot.receiver.take()),
            Ok(false) => {}
            Err(error) => {
                self.refuse(state, key, stream, &error.into());
                return;
            }
        }
        if end_stream {
            self.on_end(state, key);
        }
    }

    /// The request is complete.
    fn on_end(&mut self, state: &mut State, key: SlotKey) {
        let Some((slot, _, wake)) = state.parts(key) else { return };
        slot.end(End::received());
        wake.extend(slot.receiver.take());
        let stream = slot.stream;
        match self.take_awaiting(key) {
            Awaiting::Nothing => {}
            Awaiting::HttpAnswer(answer) => {
                answer.send(&mut state.http2, stream);
                state.remove(key);
            }
            Awaiting::UnaryCall(route) => {
                slot.measure.received(slot.inbox.len().saturating_sub(PREFIX_LEN));
                let body = Body::Gathered(std::mem::take(&mut slot.inbox));
                let reply = Reply { key, stream, outgoing: route.outgoing };
                self.ready.push(ReadyCall { route, reply, body });
            }
        }
    }

    /// The request broke a rule of gRPC.
    fn refuse(&mut self, state: &mut State, key: SlotKey, stream: StreamId, status: &Status) {
        match self.take_awaiting(key) {
            Awaiting::UnaryCall(_) => {
                let reply = Reply { key, stream, outgoing: Outgoing::default() };
                respond::send_status(state, &reply, status);
            }
            // A handler is running: it finds the error where it reads, and answers with it.
            Awaiting::Nothing | Awaiting::HttpAnswer(_) => {
                let Some((slot, http2, wake)) = state.parts(key) else { return };
                slot.discard(http2);
                slot.end(End::Complete(Err(status.clone())));
                wake.extend(slot.receiver.take());
            }
        }
    }
}

impl Endpoint for ServerEndpoint {
    const IS_SAMPLED: bool = false;

    fn on_event(&mut self, state: &mut State, event: &Event<'_>, buffer: &[u8]) {
        match *event {
            Event::Headers { stream, end_stream, .. } => self.on_request(state, stream, end_stream),
            Event::Data { stream, tag, bytes, end_stream } => {
                self.on_data(state, tag.into(), stream, bytes, end_stream, buffer);
            }
            Event::Trailers { tag, .. } => self.on_end(state, tag.into()),
            Event::Reset { tag, cause, .. } => {
                let key = tag.into();
                let status = Status::new(
                    code::from_error_code(cause.code),
                    format!("the client ended the call: {}", cause.reason),
                );
                let Some((slot, _, wake)) = state.parts(key) else { return };
                slot.end_lost(status);
                slot.wake_all(wake);
                if slot.task_running {
                    return;
                }
                // No handler has begun: nobody else would take the slot away.
                self.take_awaiting(key);
                state.remove(key);
            }
            Event::Writable { tag, .. } => {
                if let Some((slot, _, wake)) = state.parts(tag.into()) {
                    wake.extend(slot.sender.take());
                }
            }
            _ => {}
        }
    }

    fn run_ready(&mut self, connection: &Arc<Connection>, buffer: &[u8]) {
        for (route, reply, measure) in self.streams_ready.drain(..) {
            let Handler::Streaming(handler) = &route.method.handler else { continue };
            let size_max = route.method.options.max_decoding_message_size;
            let call = StreamingCall::new(Arc::clone(connection), reply, size_max, measure);
            let task = CallTask::streaming(Arc::clone(connection), reply, &route, || {
                handler.start(&route.head, call)
            });
            tokio::spawn(task);
        }
        if !self.ready.is_empty() {
            Turn::new(connection, buffer, self.ready.drain(..)).run();
        }
    }

    fn shrink(&mut self) {
        self.heads = [const { None }; HEADS_KEPT];
        self.awaiting.truncate(
            self.awaiting.iter().rposition(|a| !matches!(a, Awaiting::Nothing)).map_or(0, |i| i + 1),
        );
        self.awaiting.shrink_to_fit();
        self.ready.shrink_to_fit();
        self.streams_ready.shrink_to_fit();
    }
}

fn parse(router: &Router, head: &thalweg_http2::Head) -> Asked {
    let path = head.path().unwrap_or_default();
    let found = router.find(path);
    let accepts = found.as_ref().map_or(EncodingSet::ALL, |method| method.options.accept_compressed);
    let received = match request::receive(head.method(), accepts, head.iter()) {
        Ok(received) => received,
        Err(Refusal::Status(status)) => return Asked::Refused(status),
        Err(refusal) => return Asked::Http(HttpAnswer::to(&refusal, head.method(), path)),
    };
    match found {
        Err(status) => Asked::Refused(status),
        Ok(method) => {
            let encoding = response_encoding(method.options.send_compressed, &received);
            let outgoing = Outgoing { message_size_max: method.options.max_encoding_message_size, encoding };
            Asked::Call(Arc::new(Route { method, head: received, outgoing }))
        }
    }
}

/// The code that a reset by the server itself carries.
pub(super) const CANCELLED: ErrorCode = ErrorCode::Cancel;
