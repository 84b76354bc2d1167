//! Progress and limits of a connection: [`Progress`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use thalweg_engine::server::{Http1Admission, Http1Request, Http1Requests};
use thalweg_engine::{Pace, RequestShare};
use tokio::time::Instant;

use super::framing::{Part, Place};
use super::limits::Http1Limits;
use super::unsent::Unsent;
use crate::timed::Waiting;

/// State shared by a connection's byte stream, requests and responses. Clones share the same connection.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    state: Arc<Mutex<State>>,
    /// The server's request counter and memory accounting.
    requests: Option<Http1Requests>,
}

#[derive(Debug)]
struct State {
    place: Place,
    /// Start of the current head.
    head_since: Instant,
    /// Timing of the body being read, or of its current part or chunk.
    body: Waiting,
    /// Number of requests passed to the service.
    requests: u64,
    /// Request and part of its body that the service needs. The time of a part includes pauses between chunks.
    awaited: Option<(u64, u64)>,
    /// The last request whose body was read completely.
    read: Option<u64>,
    /// Whether the response to the last request has started.
    has_begun: bool,
    /// Body of the last request, if the service dropped it incomplete and before responding.
    dropped: Option<Incoming>,
    /// Whether a request is being handled or its response is incomplete.
    is_answering: bool,
    /// Time since which no request is active.
    free_since: Instant,
    /// Whether a write is pending.
    is_blocked: bool,
    /// Rate at which the client accepts data.
    pace: Pace,
    unsent: Unsent,
    ending: Option<Ending>,
}

/// Reason why a connection has no further request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client closed the connection during a request.
    Cut,
    /// The head of a request is ambiguous.
    BadHead,
    /// A body is ambiguous.
    BadBody,
    /// A body was too slow.
    TooSlow,
}

/// Overdue event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Request,
    Head,
    Body,
    Reading,
}

impl Progress {
    pub(super) fn new(now: Instant, requests: Option<Http1Requests>) -> Self {
        let state = State {
            place: Place { part: Part::Between, message: 0, chunk: 0 },
            head_since: now,
            body: Waiting::default(),
            requests: 0,
            awaited: None,
            read: None,
            has_begun: false,
            dropped: None,
            is_answering: false,
            free_since: now,
            is_blocked: false,
            pace: Pace::default(),
            unsent: Unsent::default(),
            ending: None,
        };
        Self { state: Arc::new(Mutex::new(state)), requests }
    }

    /// Returns the memory accounting of the current request.
    pub(super) fn share(&self) -> RequestShare {
        self.requests.as_ref().map(Http1Requests::share).unwrap_or_default()
    }

    /// Records `len` received bytes that end at `place`.
    pub(super) fn came(&self, len: usize, place: Place, now: Instant) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.place, place);
        match place.part {
            Part::Between => {}
            Part::Head if before.part == Part::Head && before.message == place.message => {}
            Part::Head => state.head_since = now,
            Part::Body | Part::Pause => {
                let was_in_body = matches!(before.part, Part::Body | Part::Pause);
                let is_same_body = was_in_body && before.message == place.message;
                let is_same_chunk = before.part == place.part && before.chunk == place.chunk;
                if !(is_same_body && (is_same_chunk || state.is_awaited())) {
                    state.body = Waiting::default();
                }
                state.body.came(len, now);
            }
        }
    }

    /// Records that a read is pending.
    pub(super) fn waits(&self, now: Instant) {
        let mut state = self.lock();
        if matches!(state.place.part, Part::Body | Part::Pause) {
            state.body.waits(now);
        }
    }

    /// See [`Body::awaits`](crate::body::Body); for the body of this request.
    pub(super) fn awaits(&self, request: u64, part: Option<u64>) {
        let mut state = self.lock();
        let awaited = part.map(|part| (request, part));
        if state.awaited != awaited {
            state.awaited = awaited;
            if awaited.is_some() {
                state.body = state.body.anew(Instant::now());
            }
        }
    }

    /// Records that the body of this request was read completely.
    pub(super) fn is_read(&self, request: u64) {
        self.lock().read = Some(request);
    }

    /// Records that the service dropped an incomplete request body.
    pub(super) fn dropped(&self, body: Incoming) {
        let mut state = self.lock();
        if !state.has_begun {
            state.dropped = Some(body);
        }
    }

    /// Records that a response starts. Reads the rest of a dropped request body if it has arrived completely.
    pub(super) async fn begins(&self, request: u64) {
        let dropped = {
            let mut state = self.lock();
            state.has_begun = true;
            state.dropped.take().filter(|_| state.place.message > request)
        };
        let Some(mut body) = dropped else { return };
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return;
            }
        }
        self.is_read(request);
    }

    /// Returns whether a response that starts now is the last: hyper closes a connection if the request's body is not
    /// read completely, and the client must know that (RFC 9112 §9.6).
    pub(super) fn is_last(&self, request: u64) -> bool {
        self.lock().read != Some(request)
    }

    /// Records a request passed to the service. Returns its index and a guard to drop when it is answered.
    pub(super) fn answering(&self) -> (u64, Answering) {
        let counted = self.requests.as_ref().map(Http1Requests::begin);
        let mut state = self.lock();
        state.is_answering = true;
        state.has_begun = false;
        state.requests += 1;
        (state.requests - 1, Answering { progress: self.clone(), _counted: counted })
    }

    /// Records that a write is pending.
    pub(super) fn is_blocked(&self) {
        let mut state = self.lock();
        state.is_blocked = true;
        state.pace.waits(Instant::now());
    }

    /// Records `len` written bytes.
    pub(super) fn wrote(&self, len: usize) {
        let mut state = self.lock();
        let now = Instant::now();
        state.pace.took(len as u64, now);
        state.unsent.advance(len);
        state.unblock(now);
        self.tell_unsent(state);
    }

    /// Records that everything is written.
    pub(super) fn flushed(&self) {
        let mut state = self.lock();
        state.pace = Pace::default();
        state.unsent.clear();
        if state.is_blocked {
            state.unblock(Instant::now());
        }
        self.tell_unsent(state);
    }

    /// Records `len` response bytes passed to hyper.
    pub(super) fn queues(&self, len: usize) {
        let mut state = self.lock();
        state.unsent.push(len);
        self.tell_unsent(state);
    }

    /// Reports unsent response bytes to the server.
    fn tell_unsent(&self, mut state: MutexGuard<'_, State>) {
        let Some(requests) = &self.requests else { return };
        let news = state.unsent.news();
        drop(state);
        if let Some((unsent, sent)) = news {
            requests.note_responses(unsent, sent);
        }
    }

    /// Requests the server's admission for a response.
    pub(super) fn admission(&self) -> Option<Http1Admission> {
        self.requests.as_ref().map(Http1Requests::admission)
    }

    pub(super) fn end(&self, why: Ending) {
        self.lock().ending.get_or_insert(why);
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.lock().ending
    }

    /// Returns the next deadline and its event.
    pub(super) fn next_due(&self, limits: &Http1Limits) -> Option<(Instant, Due)> {
        let state = self.lock();
        let body = limits.request_timeout.filter(|_| state.is_body_timed() && state.body.is_waiting());
        let body = body.and_then(|time| Some((state.body.ends(time)?, Due::Body)));
        let reading = limits.reply_timeout.and_then(|grace| Some((state.pace.ends(grace)?, Due::Reading)));
        if let Some(first) = body.into_iter().chain(reading).min_by_key(|(at, _)| *at) {
            return Some(first);
        }
        if state.is_answering || state.is_blocked || state.is_body_timed() && state.body.is_waiting() {
            return None;
        }
        match state.place.part {
            Part::Between => Some((state.free_since + limits.idle_timeout?, Due::Request)),
            Part::Head => Some((state.head_since.max(state.free_since) + limits.header_timeout, Due::Head)),
            Part::Body | Part::Pause => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn unblock(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_blocked) {
            self.free_since = now;
        }
    }

    fn is_awaited(&self) -> bool {
        self.awaited.is_some_and(|(request, _)| request == self.place.message)
    }

    fn is_body_timed(&self) -> bool {
        match self.place.part {
            Part::Body => self.ending.is_none(),
            Part::Pause => self.ending.is_none() && self.is_awaited(),
            Part::Between | Part::Head => false,
        }
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) progress: Progress,
    /// The server counts the request until this is dropped.
    _counted: Option<Http1Request>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.progress.lock();
        state.is_answering = false;
        state.free_since = Instant::now();
    }
}
