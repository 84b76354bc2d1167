//! Progress and limits of a connection: [`Progress`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use thalweg_engine::server::{Http1Admission, Http1Request, Http1Requests};
use thalweg_engine::{Pace, RequestAccounting};
use tokio::time::Instant;

use super::framing::{MessagePart, StreamPosition};
use super::limits::Http1Limits;
use super::unsent::Unsent;
use crate::timed::PartTimer;

/// State shared by a connection's byte stream, requests and responses. Clones share the same connection.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    state: Arc<Mutex<ConnectionState>>,
    /// The server's request counter and memory accounting.
    requests: Option<Http1Requests>,
}

#[derive(Debug)]
struct ConnectionState {
    position: StreamPosition,
    /// Start of the current head.
    head_since: Instant,
    /// Timing of the body being read, or of its current part or chunk.
    body: PartTimer,
    /// Number of requests passed to the service.
    requests: u64,
    /// Request and part of its body that the service needs. The time of a part includes pauses between chunks.
    expected_part: Option<(u64, u64)>,
    /// The last request whose body was read completely.
    last_read: Option<u64>,
    /// Whether the response to the last request has started.
    has_response_started: bool,
    /// Body of the last request, if the service dropped it incomplete and before responding.
    dropped: Option<Incoming>,
    /// Whether a request is being handled or its response is incomplete.
    has_active_request: bool,
    /// Time since which no request is active.
    idle_since: Instant,
    /// Whether a write is pending.
    is_blocked: bool,
    /// Rate at which the client accepts data.
    pace: Pace,
    unsent: Unsent,
    close_reason: Option<CloseReason>,
}

/// Reason why a connection has no further request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The client closed the connection during a request.
    ClientClosed,
    /// The head of a request is ambiguous.
    BadHead,
    /// A body is ambiguous.
    BadBody,
    /// A body was too slow.
    TooSlow,
}

/// An expired time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeout {
    Idle,
    Head,
    Body,
    Response,
}

impl Progress {
    pub(super) fn new(now: Instant, requests: Option<Http1Requests>) -> Self {
        let state = ConnectionState {
            position: StreamPosition { part: MessagePart::BetweenMessages, message: 0, chunk: 0 },
            head_since: now,
            body: PartTimer::default(),
            requests: 0,
            expected_part: None,
            last_read: None,
            has_response_started: false,
            dropped: None,
            has_active_request: false,
            idle_since: now,
            is_blocked: false,
            pace: Pace::default(),
            unsent: Unsent::default(),
            close_reason: None,
        };
        Self { state: Arc::new(Mutex::new(state)), requests }
    }

    /// Returns the memory accounting of the current request.
    pub(super) fn memory_accounting(&self) -> RequestAccounting {
        self.requests.as_ref().map(Http1Requests::accounting).unwrap_or_default()
    }

    /// Records `len` received bytes that end at `place`.
    pub(super) fn received(&self, len: usize, position: StreamPosition, now: Instant) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.position, position);
        match position.part {
            MessagePart::BetweenMessages => {}
            MessagePart::Head if before.part == MessagePart::Head && before.message == position.message => {}
            MessagePart::Head => state.head_since = now,
            MessagePart::Body | MessagePart::BetweenChunks => {
                let was_in_body = matches!(before.part, MessagePart::Body | MessagePart::BetweenChunks);
                let is_same_body = was_in_body && before.message == position.message;
                let is_same_chunk = before.part == position.part && before.chunk == position.chunk;
                if !(is_same_body && (is_same_chunk || state.is_part_expected())) {
                    state.body = PartTimer::default();
                }
                state.body.received(len, now);
            }
        }
    }

    /// Records that a read is pending.
    pub(super) fn read_pending(&self, now: Instant) {
        let mut state = self.lock();
        if matches!(state.position.part, MessagePart::Body | MessagePart::BetweenChunks) {
            state.body.start_waiting(now);
        }
    }

    /// See [`Body::expect_part`](crate::body::Body); for the body of this request.
    pub(super) fn expect_part(&self, request: u64, part: Option<u64>) {
        let mut state = self.lock();
        let expected_part = part.map(|part| (request, part));
        if state.expected_part != expected_part {
            state.expected_part = expected_part;
            if expected_part.is_some() {
                state.body = state.body.next_part(Instant::now());
            }
        }
    }

    /// Records that the body of this request was read completely.
    pub(super) fn body_read(&self, request: u64) {
        self.lock().last_read = Some(request);
    }

    /// Records that the service dropped an incomplete request body.
    pub(super) fn body_dropped(&self, body: Incoming) {
        let mut state = self.lock();
        if !state.has_response_started {
            state.dropped = Some(body);
        }
    }

    /// Records that a response starts. Reads the rest of a dropped request body if it has arrived completely.
    pub(super) async fn response_starts(&self, request: u64) {
        let dropped = {
            let mut state = self.lock();
            state.has_response_started = true;
            state.dropped.take().filter(|_| state.position.message > request)
        };
        let Some(mut body) = dropped else { return };
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return;
            }
        }
        self.body_read(request);
    }

    /// Returns whether a response that starts now is the last: hyper closes a connection if the request's body is not
    /// read completely, and the client must know that (RFC 9112 §9.6).
    pub(super) fn is_last_response(&self, request: u64) -> bool {
        self.lock().last_read != Some(request)
    }

    /// Records a request passed to the service. Returns its index and a guard to drop when it is answered.
    pub(super) fn start_request(&self) -> (u64, ActiveRequest) {
        let counted = self.requests.as_ref().map(Http1Requests::begin);
        let mut state = self.lock();
        state.has_active_request = true;
        state.has_response_started = false;
        state.requests += 1;
        (state.requests - 1, ActiveRequest { progress: self.clone(), _counted: counted })
    }

    /// Records that a write is pending.
    pub(super) fn write_pending(&self) {
        let mut state = self.lock();
        state.is_blocked = true;
        state.pace.waits(Instant::now());
    }

    /// Records `len` written bytes.
    pub(super) fn written(&self, len: usize) {
        let mut state = self.lock();
        let now = Instant::now();
        state.pace.took(len as u64, now);
        state.unsent.advance(len);
        state.unblock(now);
        self.report_unsent(state);
    }

    /// Records that everything is written.
    pub(super) fn flushed(&self) {
        let mut state = self.lock();
        state.pace = Pace::default();
        state.unsent.clear();
        if state.is_blocked {
            state.unblock(Instant::now());
        }
        self.report_unsent(state);
    }

    /// Records `len` response bytes passed to hyper.
    pub(super) fn queued(&self, len: usize) {
        let mut state = self.lock();
        state.unsent.push(len);
        self.report_unsent(state);
    }

    /// Reports unsent response bytes to the server.
    fn report_unsent(&self, mut state: MutexGuard<'_, ConnectionState>) {
        let Some(requests) = &self.requests else { return };
        let report = state.unsent.report();
        drop(state);
        if let Some((unsent, sent)) = report {
            requests.note_responses(unsent, sent);
        }
    }

    /// Requests the server's admission for a response.
    pub(super) fn admission(&self) -> Option<Http1Admission> {
        self.requests.as_ref().map(Http1Requests::admission)
    }

    pub(super) fn close(&self, why: CloseReason) {
        self.lock().close_reason.get_or_insert(why);
    }

    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.lock().close_reason
    }

    /// Returns the next deadline and its event.
    pub(super) fn next_timeout(&self, limits: &Http1Limits) -> Option<(Instant, Timeout)> {
        let state = self.lock();
        let body = limits.request_timeout.filter(|_| state.is_body_timed() && state.body.is_waiting());
        let body = body.and_then(|time| Some((state.body.deadline(time)?, Timeout::Body)));
        let response =
            limits.reply_timeout.and_then(|grace| Some((state.pace.ends(grace)?, Timeout::Response)));
        if let Some(first) = body.into_iter().chain(response).min_by_key(|(at, _)| *at) {
            return Some(first);
        }
        if state.has_active_request || state.is_blocked || state.is_body_timed() && state.body.is_waiting() {
            return None;
        }
        match state.position.part {
            MessagePart::BetweenMessages => Some((state.idle_since + limits.idle_timeout?, Timeout::Idle)),
            MessagePart::Head => {
                Some((state.head_since.max(state.idle_since) + limits.header_timeout, Timeout::Head))
            }
            MessagePart::Body | MessagePart::BetweenChunks => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionState {
    fn unblock(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_blocked) {
            self.idle_since = now;
        }
    }

    fn is_part_expected(&self) -> bool {
        self.expected_part.is_some_and(|(request, _)| request == self.position.message)
    }

    fn is_body_timed(&self) -> bool {
        match self.position.part {
            MessagePart::Body => self.close_reason.is_none(),
            MessagePart::BetweenChunks => self.close_reason.is_none() && self.is_part_expected(),
            MessagePart::BetweenMessages | MessagePart::Head => false,
        }
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    pub(super) progress: Progress,
    /// The server counts the request until this is dropped.
    _counted: Option<Http1Request>,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.progress.lock();
        state.has_active_request = false;
        state.idle_since = Instant::now();
    }
}
