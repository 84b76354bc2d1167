//! How far a connection is, and what it may still take: [`Progress`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_engine::RequestShare;
use thalweg_engine::server::{Http1Request, Http1Requests};
use tokio::time::Instant;

use super::framing::{Part, Place};
use super::limits::Http1Limits;
use crate::timed::Waiting;

/// What the byte stream, the requests and the answers of a connection tell of it. Clones are of the same connection.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    state: Arc<Mutex<State>>,
    /// Where the server counts requests, and what they take.
    requests: Option<Http1Requests>,
}

#[derive(Debug)]
struct State {
    place: Place,
    /// Since when a head is being read.
    head_since: Instant,
    /// The body, or the part or chunk of it, that is being read.
    body: Waiting,
    /// How many requests the service has had.
    requests: u64,
    /// The request of whose body a part must come, and which: its time goes on between chunks.
    awaited: Option<(u64, u64)>,
    /// The last request of which nobody reads the body any more.
    let_go: Option<u64>,
    /// A request is with the service, or its answer is not complete.
    is_answering: bool,
    /// Since when none is.
    free_since: Instant,
    /// Since when nothing could be written.
    blocked_since: Option<Instant>,
    ending: Option<Ending>,
}

/// Why a connection has no further request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client has ended it in the middle of a request.
    Cut,
    /// The head of a request can be read in more than one way.
    BadHead,
    /// A body can.
    BadBody,
    /// A body has not come in its time.
    TooSlow,
}

/// What has not come in its time.
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
            let_go: None,
            is_answering: false,
            free_since: now,
            blocked_since: None,
            ending: None,
        };
        Self { state: Arc::new(Mutex::new(state)), requests }
    }

    /// A request is under way until what this returns is dropped.
    pub(super) fn counted(&self) -> Option<Http1Request> {
        self.requests.as_ref().map(Http1Requests::begin)
    }

    /// What the request under way takes of the connection.
    pub(super) fn share(&self) -> RequestShare {
        self.requests.as_ref().map(Http1Requests::share).unwrap_or_default()
    }

    /// `len` bytes have come, and end at `place`.
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

    /// More bytes were asked for, and none are there.
    pub(super) fn waits(&self, now: Instant) {
        let mut state = self.lock();
        if matches!(state.place.part, Part::Body | Part::Pause) {
            state.body.waits(now);
        }
    }

    /// See [`Body::awaits`](crate::body::Body), of the body of this request.
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

    /// Nobody reads the body of this request any more.
    pub(super) fn is_let_go(&self, request: u64) {
        self.lock().let_go = Some(request);
    }

    /// Nothing can follow the answer to this request: its body can't be read to its end, or is not.
    pub(super) fn is_last(&self, request: u64) -> bool {
        let state = self.lock();
        let is_missing =
            state.place.message == request && matches!(state.place.part, Part::Body | Part::Pause);
        is_missing && (state.ending.is_some() || state.let_go == Some(request))
    }

    /// The service gets a request: the how manieth it is, and what is dropped when it is answered.
    pub(super) fn answering(&self) -> (u64, Answering) {
        let mut state = self.lock();
        state.is_answering = true;
        state.requests += 1;
        (state.requests - 1, Answering(self.clone()))
    }

    /// Something could be written, or not.
    pub(super) fn writes(&self, is_blocked: bool) {
        let mut state = self.lock();
        if is_blocked {
            state.blocked_since.get_or_insert_with(Instant::now);
        } else if state.blocked_since.is_some() {
            state.blocked_since = None;
            state.free_since = Instant::now();
        }
    }

    pub(super) fn end(&self, why: Ending) {
        self.lock().ending.get_or_insert(why);
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.lock().ending
    }

    /// What is due next, and when.
    pub(super) fn next_due(&self, limits: &Http1Limits) -> Option<(Instant, Due)> {
        let state = self.lock();
        if state.is_body_timed() && state.body.is_waiting() {
            return Some((state.body.ends(limits.request_timeout?)?, Due::Body));
        }
        if state.is_answering {
            return None;
        }
        if let Some(since) = state.blocked_since {
            return Some((since + limits.reply_timeout?, Due::Reading));
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
pub(super) struct Answering(Progress);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_answering = false;
        state.free_since = Instant::now();
    }
}
