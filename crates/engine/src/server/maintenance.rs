//! Maintenance of a server's connections once a second: detects peers that are gone, read too slowly or send too
//! slowly.
//!
//! It adds no cost to calls. On a timeout the smallest unit ends first: a call, then the connection.

use std::collections::HashMap;
use std::time::Duration;

use thalweg_http2::{ErrorCode, StreamId};
use tokio::time::Instant;

use super::respond::{self, ResponseTarget};
use crate::connection::{
    Connection, End, Keepalive, KeepaliveCheck, KeepaliveState, Slot, SlotKey, State, end_silent,
};
use crate::grpc::compression::EncodingSet;
use crate::memory_budget::BufferedBytes;
use crate::pace::{BYTES_PER_S, Pace};
use crate::status::{self, Code, Status};

/// Time limits of connections and of requests and responses on them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) idle_max: Option<Duration>,
    pub(super) age_max: Option<Duration>,
    /// Grace period of calls after the connection's maximum age.
    pub(super) age_grace: Option<Duration>,
    pub(super) keepalive: Keepalive,
    /// Limit of a header block, and of any frame except DATA, from first to last byte.
    pub(super) header: Duration,
    /// Limit of a request's message, plus a second for each KiB of it.
    pub(super) request: Option<Duration>,
    /// Maximum lag of a peer behind the minimum rate of reading responses.
    pub(super) response: Option<Duration>,
}

/// Maximum lag of a peer whose connection is over its buffer budget for responses.
const OVER_BUDGET_BEHIND_MAX: Duration = Duration::from_secs(20);
/// A peer is stalled if it reads fewer bytes per second than this while more are unsent. Stalled connections are closed
/// first when memory is needed.
const STALLED_BYTES_PER_S: usize = 16 << 10;
/// Minimum interval over which that rate is measured.
const STALL_INTERVAL: Duration = Duration::from_millis(500);
/// Intervals after which a full connection without progress may run one more call: the first, doubled each time up to
/// the second.
const STUCK_INTERVAL_MIN: Duration = Duration::from_secs(1);
const STUCK_INTERVAL_MAX: Duration = Duration::from_secs(16);

/// Maintenance state of a connection.
#[derive(Debug)]
pub(super) struct Maintenance {
    /// When maximum connection age reached.
    age_ends: Option<Instant>,
    keepalive_state: KeepaliveState,
    /// Time at which the current header block started.
    gathering_since: Option<Instant>,
    /// How the peer reads queued responses, and how the socket accepts written ones.
    queued: Progress,
    written: Progress,
    /// Like `queued`, while the connection is over its budget.
    over_budget: Progress,
    /// Incomplete requests, with the bytes received when their time started.
    requests: HashMap<SlotKey, Stall>,
    /// Streams with queued response data.
    responses: HashMap<StreamId, Progress>,
    stalling: Stalling,
    /// Present while the connection is full.
    full: Option<Full>,
}

/// Result of one maintenance pass over a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckResult {
    pub(super) buffered: BufferedBytes,
    /// The peer barely reads its responses.
    pub(super) is_stalled: bool,
}

/// A part of a request that arrives too slowly.
#[derive(Clone, Copy, Debug)]
struct Stall {
    since: Instant,
    bytes: usize,
}

impl Stall {
    fn is_overdue(self, max: Option<Duration>, now: Instant) -> bool {
        max.is_some_and(|max| self.since + max <= now)
    }
}

/// How the peer reads, by the bytes sent at the last pass.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    pace: Pace,
    left: u64,
}

impl Progress {
    /// Records that `left` bytes have been sent in all; `waits` if more wait for the peer.
    fn note(&mut self, left: u64, waits: bool, now: Instant) {
        let took = left.wrapping_sub(std::mem::replace(&mut self.left, left));
        self.pace.took(took, now);
        if waits {
            self.pace.waits(now);
        }
    }

    /// Records that nothing waits for the peer.
    fn clear(&mut self) {
        self.pace = Pace::default();
    }

    fn is_behind(&self, max: Option<Duration>, now: Instant) -> bool {
        max.and_then(|max| self.pace.ends(max)).is_some_and(|ends| ends <= now)
    }
}

/// Whether the peer has recently stalled.
#[derive(Clone, Copy, Debug, Default)]
struct Stalling {
    /// Start of the current measurement, and the bytes written then, while much is unsent.
    since: Option<(Instant, u64)>,
    is_stalled: bool,
}

impl Stalling {
    /// Records that `written` bytes have been written in all and `unsent` bytes remain.
    fn note(&mut self, written: u64, unsent: usize, now: Instant) {
        if unsent < STALLED_BYTES_PER_S {
            *self = Self::default();
            return;
        }
        let (since, before) = *self.since.get_or_insert((now, written));
        let elapsed = now - since;
        if elapsed >= STALL_INTERVAL {
            let least = elapsed.as_secs_f64() * STALLED_BYTES_PER_S as f64;
            self.is_stalled = written.saturating_sub(before) < least as u64;
            self.since = Some((now, written));
        }
    }
}

/// Progress of a full connection. Without any, the peer may need the response of a waiting call.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    left: u64,
    /// Time of the last progress, or of the last call that was admitted, and the interval until the next.
    since: Option<(Instant, Duration)>,
}

impl Full {
    /// Returns whether to run one more call. `left` is the total number of bytes sent.
    fn is_stuck(&mut self, left: u64, now: Instant) -> bool {
        match self.since {
            Some((since, wait)) if self.left == left => {
                let is_stuck = since + wait <= now;
                if is_stuck {
                    self.since = Some((now, (2 * wait).min(STUCK_INTERVAL_MAX)));
                }
                is_stuck
            }
            _ => {
                *self = Self { left, since: Some((now, STUCK_INTERVAL_MIN)) };
                false
            }
        }
    }
}

impl Maintenance {
    /// Creates the state of a new connection. `random` in 0..=1 places its maximum age within ±10 %, so that
    /// connections opened together do not close together (gRFC A9).
    pub(super) fn new(times: &Times, random: f64, now: Instant) -> Self {
        let age = times.age_max.map(|age| age.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0)));
        Self {
            age_ends: age.and_then(|age| now.checked_add(age)),
            keepalive_state: KeepaliveState::new(now),
            gathering_since: None,
            queued: Progress::default(),
            over_budget: Progress::default(),
            written: Progress::default(),
            requests: HashMap::new(),
            responses: HashMap::new(),
            stalling: Stalling::default(),
            full: None,
        }
    }

    /// Checks a connection and ends what is overdue. Returns its buffered bytes.
    pub(super) fn check(&mut self, connection: &Connection, times: &Times, now: Instant) -> CheckResult {
        let mut state = connection.lock();
        let idle_since = state.sweep(now);
        state.memory.age();
        if let Some(why) = self.close_reason(&state, times, now) {
            state.close(ErrorCode::EnhanceYourCalm, why);
            drop(state);
            tracing::debug!(peer = &*connection.peer, why, "closing a connection");
            return CheckResult { buffered: BufferedBytes::default(), is_stalled: false };
        }
        if times.idle_max.is_some_and(|max| idle_since + max <= now) {
            state.drain();
        }
        if let Some(ends) = self.age_ends.filter(|ends| *ends <= now) {
            state.drain();
            if times.age_grace.is_some_and(|grace| ends + grace <= now) {
                state.close(ErrorCode::NoError, "maximum connection age reached");
            }
        }
        self.end_late_requests(&mut state, times, now);
        self.end_unread_responses(&mut state, times, now);
        if !state.http2.is_full() {
            self.full = None;
        } else if self.full.get_or_insert_default().is_stuck(state.http2.dequeued_in_all(), now) {
            state.admit_beyond();
        }
        state.count_memory();
        let buffered = state.buffered();
        self.stalling.note(state.memory.written(), buffered.responses, now);
        let result = CheckResult { buffered, is_stalled: self.stalling.is_stalled };
        // HTTP/1.1 has no PINGs.
        if !state.is_http1()
            && self.keepalive_state.check(&times.keepalive, &mut state, now) == KeepaliveCheck::Silent
        {
            drop(state);
            tracing::debug!(peer = &*connection.peer, "closing a connection: no response to a PING");
            end_silent(connection, &times.keepalive);
        }
        result
    }

    /// Returns the reason to close the whole connection, if there is one.
    fn close_reason(&mut self, state: &State, times: &Times, now: Instant) -> Option<&'static str> {
        let is_late = |since: Option<Instant>| since.is_some_and(|since| since + times.header <= now);
        self.gathering_since = match self.gathering_since {
            since if state.http2.is_gathering_headers() => since.or(Some(now)),
            _ => None,
        };
        if is_late(state.frame_started_at) || is_late(self.gathering_since) {
            return Some("a frame or header block took too long");
        }
        self.written.note(state.memory.written(), state.memory.writing() > 0, now);
        if state.memory.writing() == 0 {
            self.written.clear();
        }
        if self.written.is_behind(times.response, now) {
            return Some("responses were read too slowly");
        }
        // Streams with a closed window are checked one by one.
        let waits = state.http2.queued_streams().any(|stream| !stream.is_window_closed);
        let left = state.http2.dequeued_in_all();
        self.queued.note(left, waits, now);
        self.over_budget.note(left, state.http2.is_full(), now);
        if state.http2.queued_in_all() == 0 {
            self.queued.clear();
            self.over_budget.clear();
        }
        if self.queued.is_behind(times.response, now) {
            return Some("responses were read too slowly");
        }
        if times.response.is_some() && self.over_budget.is_behind(Some(OVER_BUDGET_BEHIND_MAX), now) {
            return Some("too many unread responses");
        }
        None
    }

    /// Ends calls whose request is late, or whose deadline has passed before the request was complete.
    fn end_late_requests(&mut self, state: &mut State, times: &Times, now: Instant) {
        let before = std::mem::take(&mut self.requests);
        let mut late = Vec::new();
        for (key, slot) in state.slots() {
            let Some(missing) = missing_of(slot) else { continue };
            if let Missing::Request { deadline: Some(deadline) } = missing
                && deadline <= now
            {
                late.push((key, status::deadline_exceeded_at("the request was not complete")));
                continue;
            }
            // A peer that may not send because its other streams go first is not late.
            if state.http2.is_starved(slot.stream) {
                continue;
            }
            let bytes = slot.inbox.len();
            let stall = before.get(&key).copied().unwrap_or(Stall { since: now, bytes });
            let came = bytes.saturating_sub(stall.bytes) as u64 / BYTES_PER_S;
            let allowed = times.request.map(|time| time + Duration::from_secs(came));
            if stall.is_overdue(allowed, now) {
                late.push((key, too_slow()));
            } else {
                self.requests.insert(key, stall);
            }
        }
        for (key, status) in late {
            end_call(state, key, &status);
        }
    }

    /// Resets streams whose window the client opens too slowly for their queued data.
    fn end_unread_responses(&mut self, state: &mut State, times: &Times, now: Instant) {
        let before = std::mem::take(&mut self.responses);
        let mut late = Vec::new();
        for stream in state.http2.queued_streams() {
            let left = u64::from(stream.dequeued);
            let mut progress = match before.get(&stream.id) {
                // The counter wraps at 2³².
                Some(before) if before.left <= left => *before,
                _ => Progress { left, ..Progress::default() },
            };
            progress.note(left, stream.is_window_closed, now);
            if progress.is_behind(times.response, now) {
                late.push((stream.id, SlotKey::from(stream.tag)));
            } else {
                self.responses.insert(stream.id, progress);
            }
        }
        for (stream, key) in &late {
            state.http2.reset(*stream, ErrorCode::Cancel);
            lose_call(state, *key);
        }
        if !late.is_empty() {
            state.notify_driver();
        }
    }
}

/// Ends a call whose stream was reset, if its handler still runs.
fn lose_call(state: &mut State, key: SlotKey) {
    state.note_cut_off(key);
    let Some((slot, _, deferred)) = state.parts(key) else { return };
    slot.end_lost(Status::new(Code::Cancelled, "the client read the response too slowly"));
    slot.wake_all(deferred);
    if !slot.server().is_some_and(|call| call.task_running) {
        state.discard(key);
    }
}

fn too_slow() -> Status {
    Status::new(Code::Cancelled, "receiving the request message took too long")
}

/// The missing part of a call.
enum Missing {
    /// The whole request of a unary call, whose handler has not started.
    Request { deadline: Option<Instant> },
    /// The rest of a message that has started.
    Message,
}

fn missing_of(slot: &Slot) -> Option<Missing> {
    let call = slot.server_ref().filter(|_| slot.end.is_none())?;
    if call.on_end.is_some() {
        return Some(Missing::Request { deadline: call.deadline });
    }
    slot.inbox.has_incomplete_message().then_some(Missing::Message)
}

/// Ends a call: with a response if no handler has started, else with an error that the handler reads.
fn end_call(state: &mut State, key: SlotKey, status: &Status) {
    let Some((slot, http2, deferred)) = state.parts(key) else { return };
    let stream = slot.stream;
    if slot.server().is_some_and(|call| call.on_end.take().is_some()) {
        respond::refuse(
            state,
            &ResponseTarget::for_refusal(key, stream, respond::fixed_headers(EncodingSet::ALL, "")),
            status,
        );
    } else {
        slot.inbox.discard(stream, http2);
        slot.end(End::Complete(Err(status.clone())));
        deferred.wake(slot.receiver.take());
    }
    state.notify_driver();
}
