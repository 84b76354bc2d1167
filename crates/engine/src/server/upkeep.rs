//! What a server looks at once a second on each of its connections: whether the other end is there, takes what it asked
//! for, and sends what it began.
//!
//! Nothing of it costs a call anything. What outlives its time is ended, the smallest thing first: a call, then the
//! connection.

use std::collections::HashMap;
use std::time::Duration;

use thalweg_http2::{ErrorCode, StreamId};
use tokio::time::Instant;

use super::respond::{self, Reply};
use crate::connection::{Asked, Asking, Connection, End, Keepalive, Slot, SlotKey, State, end_silent};
use crate::grpc::compression::EncodingSet;
use crate::status::{Code, Status};

/// How long connections, and what peers begin on them, may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) idle_max: Option<Duration>,
    pub(super) age_max: Option<Duration>,
    /// How long calls may go on when their connection has come to its age.
    pub(super) age_grace: Option<Duration>,
    pub(super) keepalive: Keepalive,
    /// For a header block, and for any frame but DATA, from its first byte to its last.
    pub(super) header: Duration,
    /// For a request's message, as far as it is longer than a second for each KiB of it.
    pub(super) request: Option<Duration>,
    /// For some of an answer to leave, when the handler is done with it.
    pub(super) reply: Option<Duration>,
}

/// A request's message may take a second more for so many bytes that have come of it.
const REQUEST_BYTES_PER_S: usize = 1024;
/// How long nothing may leave of a connection that holds more of its answers than it has budget for.
const OVER_BUDGET_STALL_MAX: Duration = Duration::from_secs(20);

/// What the last look at a connection saw.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// When the connection has come to its age.
    age_ends: Option<Instant>,
    asking: Asking,
    /// Since when a header block is being gathered.
    gathering_since: Option<Instant>,
    /// Answers that wait in all: how many bytes, and since when they have not become fewer.
    queued: Stall,
    /// Requests of whose message something is missing, with what had come of it when its time began.
    requests: HashMap<SlotKey, Stall>,
    /// Answers whose handler is done with them.
    replies: HashMap<StreamId, Stall>,
}

#[derive(Clone, Copy, Debug)]
struct Stall {
    since: Instant,
    bytes: usize,
}

impl Stall {
    /// How it stands now that `bytes` are left: they begin anew when they became fewer.
    fn after(before: Option<Self>, bytes: usize, now: Instant) -> Self {
        match before {
            Some(before) if bytes >= before.bytes && bytes > 0 => Self { bytes, ..before },
            _ => Self { since: now, bytes },
        }
    }

    fn is_overdue(self, max: Option<Duration>, now: Instant) -> bool {
        max.is_some_and(|max| self.since + max <= now)
    }
}

impl Upkeep {
    /// Of a connection that begins now. `random` in 0..=1 places its age within ±10 %, so that those that came together
    /// don't go together (gRFC A9).
    pub(super) fn new(times: &Times, random: f64, now: Instant) -> Self {
        let age = times.age_max.map(|age| age.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0)));
        Self {
            age_ends: age.and_then(|age| now.checked_add(age)),
            asking: Asking::new(now),
            gathering_since: None,
            queued: Stall { since: now, bytes: 0 },
            requests: HashMap::new(),
            replies: HashMap::new(),
        }
    }

    /// Looks at a connection, and does what is due. Returns how many bytes its peer has it hold.
    pub(super) fn look(&mut self, connection: &Connection, times: &Times, now: Instant) -> usize {
        let mut state = connection.lock();
        let idle_since = state.sweep(now);
        if let Some(why) = self.what_is_wrong(&state, times, now) {
            state.close(ErrorCode::EnhanceYourCalm, why);
            drop(state);
            tracing::debug!(peer = connection.peer, why, "a connection is ended");
            return 0;
        }
        if times.idle_max.is_some_and(|max| idle_since + max <= now) {
            state.drain();
        }
        if let Some(ends) = self.age_ends.filter(|ends| *ends <= now) {
            state.drain();
            if times.age_grace.is_some_and(|grace| ends + grace <= now) {
                state.close(ErrorCode::NoError, "the connection has come to its age");
            }
        }
        self.end_late_requests(&mut state, times, now);
        self.end_stalled_replies(&mut state, times, now);
        let held = state.http2.held() + state.http2.queued_in_all() + state.held_by_calls();
        // Another protocol has no PINGs.
        if !state.is_foreign() && self.asking.look(&times.keepalive, &mut state, now) == Asked::Silent {
            drop(state);
            tracing::debug!(peer = connection.peer, "a connection is ended: no answer to a PING");
            end_silent(connection, &times.keepalive);
        }
        held
    }

    /// What a peer does to the whole connection that is not to be borne.
    fn what_is_wrong(&mut self, state: &State, times: &Times, now: Instant) -> Option<&'static str> {
        let is_late = |since: Option<Instant>| since.is_some_and(|since| since + times.header <= now);
        self.gathering_since = match self.gathering_since {
            since if state.http2.is_gathering_headers() => since.or(Some(now)),
            _ => None,
        };
        if is_late(state.frame_begun_at) || is_late(self.gathering_since) {
            return Some("a frame or header block took too long");
        }
        self.queued = Stall::after(Some(self.queued), state.http2.queued_in_all(), now);
        let is_over_budget = times.reply.is_some() && self.queued.bytes > state.http2.held_max();
        if is_over_budget && self.queued.is_overdue(Some(OVER_BUDGET_STALL_MAX), now) {
            return Some("too many answers wait, and none is read");
        }
        None
    }

    /// Ends calls whose request does not come, or whose deadline has passed before it came.
    fn end_late_requests(&mut self, state: &mut State, times: &Times, now: Instant) {
        let before = std::mem::take(&mut self.requests);
        let mut late = Vec::new();
        for (key, slot) in state.slots() {
            let Some(missing) = missing_of(slot) else { continue };
            if let Missing::Request { deadline: Some(deadline) } = missing
                && deadline <= now
            {
                late.push((key, Status::deadline_exceeded()));
                continue;
            }
            // A peer that may not send, because others of its streams go before, is not late.
            if state.http2.is_starved(slot.stream) {
                continue;
            }
            let bytes = slot.inbox.len();
            let stall = before.get(&key).copied().unwrap_or(Stall { since: now, bytes });
            let came = bytes.saturating_sub(stall.bytes) / REQUEST_BYTES_PER_S;
            let allowed = times.request.map(|time| time + Duration::from_secs(came as u64));
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

    /// Resets streams whose answer is complete, and of which nothing leaves.
    fn end_stalled_replies(&mut self, state: &mut State, times: &Times, now: Instant) {
        let before = std::mem::take(&mut self.replies);
        let waiting = state.http2.queued_endings();
        self.replies = waiting
            .map(|(stream, bytes)| (stream, Stall::after(before.get(&stream).copied(), bytes, now)))
            .collect();
        let is_overdue = |stall: &Stall| stall.is_overdue(times.reply, now);
        let overdue: Vec<StreamId> =
            self.replies.iter().filter(|(_, stall)| is_overdue(stall)).map(|(stream, _)| *stream).collect();
        for stream in &overdue {
            state.http2.reset(*stream, ErrorCode::Cancel);
        }
        if !overdue.is_empty() {
            state.notify_driver();
        }
    }
}

fn too_slow() -> Status {
    Status::new(Code::Cancelled, "the request's message took too long to come")
}

/// What is missing of a call.
enum Missing {
    /// A unary call's whole request, for which no handler has begun.
    Request { deadline: Option<Instant> },
    /// The rest of a message that has begun.
    Message,
}

fn missing_of(slot: &Slot) -> Option<Missing> {
    let call = slot.server_ref().filter(|_| slot.end.is_none())?;
    if call.on_end.is_some() {
        return Some(Missing::Request { deadline: call.deadline });
    }
    slot.inbox.has_begun_message().then_some(Missing::Message)
}

/// Ends a call: one that no handler has begun is answered, a handler finds the error where it reads.
fn end_call(state: &mut State, key: SlotKey, status: &Status) {
    let Some((slot, http2, deferred)) = state.parts(key) else { return };
    let stream = slot.stream;
    if slot.server().is_some_and(|call| call.on_end.take().is_some()) {
        respond::refuse(
            state,
            &Reply::of_none(key, stream, respond::fixed_head(EncodingSet::ALL, "")),
            status,
        );
    } else {
        slot.inbox.discard(stream, http2);
        slot.end(End::Complete(Err(status.clone())));
        deferred.wake(slot.receiver.take());
    }
    state.notify_driver();
}
