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
use crate::memory_budget::Held;
use crate::pace::{BYTES_PER_S, Pace};
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
    /// How far a peer may be behind the least rate at which it has to take what is there of its responses.
    pub(super) reply: Option<Duration>,
}

/// How far a peer that takes too little of its responses may be behind where its connection holds more of them than it
/// has budget for.
const OVER_BUDGET_BEHIND_MAX: Duration = Duration::from_secs(20);
/// A peer that takes fewer bytes a second than this, of responses that take more than this, is stalled: it goes first
/// where memory is needed.
const STALLED_BYTES_PER_S: usize = 16 << 10;
/// Minimum interval over which that rate is measured.
const STALL_INTERVAL: Duration = Duration::from_millis(500);
/// Intervals at which one more call of a full connection may run while no data leaves it: the first, then doubled each
/// time up to the second.
const STUCK_INTERVAL_MIN: Duration = Duration::from_secs(1);
const STUCK_INTERVAL_MAX: Duration = Duration::from_secs(16);

/// What the last look at a connection saw.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// When maximum connection age reached.
    age_ends: Option<Instant>,
    asking: Asking,
    /// Since when a header block is being gathered.
    gathering_since: Option<Instant>,
    /// How the peer takes what is queued of its responses, and what the socket has to take.
    queued: Progress,
    written: Progress,
    /// The same of what is queued, while it is more than the connection has budget for.
    over_budget: Progress,
    /// Requests of whose message something is missing, with what had come of it when its time began.
    requests: HashMap<SlotKey, Stall>,
    /// Streams of whose responses something is queued.
    responses: HashMap<StreamId, Progress>,
    stalling: Stalling,
    /// Present while the connection is full.
    full: Option<Full>,
}

/// Findings of one look at a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) held: Held,
    /// Its peer takes next to nothing of it.
    pub(super) is_stalled: bool,
}

/// A part of a request of which too little comes.
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

/// How the peer takes what waits for it, by what had left at the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    pace: Pace,
    left: u64,
}

impl Progress {
    /// So many bytes have left in all; `waits`: others wait for the peer.
    fn look(&mut self, left: u64, waits: bool, now: Instant) {
        let took = left.wrapping_sub(std::mem::replace(&mut self.left, left));
        self.pace.took(took, now);
        if waits {
            self.pace.waits(now);
        }
    }

    /// Nothing waits for the peer.
    fn rest(&mut self) {
        self.pace = Pace::default();
    }

    fn is_behind(&self, max: Option<Duration>, now: Instant) -> bool {
        max.and_then(|max| self.pace.ends(max)).is_some_and(|ends| ends <= now)
    }
}

/// Whether the peer is stalled, of late.
#[derive(Clone, Copy, Debug, Default)]
struct Stalling {
    /// Since when it is looked at, and how much had been written then; while much waits for the peer.
    since: Option<(Instant, u64)>,
    is_stalled: bool,
}

impl Stalling {
    /// `written` bytes have left so far, and there are `unsent` ones.
    fn look(&mut self, written: u64, unsent: usize, now: Instant) {
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

/// Progress of a full connection. Without any, its peer may need the response of a call that waits.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    left: u64,
    /// Time of the last progress, or of the last call that was let through, and the interval until the next.
    since: Option<(Instant, Duration)>,
}

impl Full {
    /// Returns whether one more call is to run. `left` is the number of bytes that have left so far.
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

impl Upkeep {
    /// Of a connection that begins now. `random` in 0..=1 places its age within ±10 %, so that those that came together
    /// don't go together (gRFC A9).
    pub(super) fn new(times: &Times, random: f64, now: Instant) -> Self {
        let age = times.age_max.map(|age| age.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0)));
        Self {
            age_ends: age.and_then(|age| now.checked_add(age)),
            asking: Asking::new(now),
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

    /// Looks at a connection, and does what is due. Returns what its peer has it hold.
    pub(super) fn look(&mut self, connection: &Connection, times: &Times, now: Instant) -> Seen {
        let mut state = connection.lock();
        let idle_since = state.sweep(now);
        state.memory.age();
        if let Some(why) = self.what_is_wrong(&state, times, now) {
            state.close(ErrorCode::EnhanceYourCalm, why);
            drop(state);
            tracing::debug!(peer = connection.peer, why, "a connection is ended");
            return Seen { held: Held::default(), is_stalled: false };
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
        self.end_untaken_responses(&mut state, times, now);
        if !state.http2.is_full() {
            self.full = None;
        } else if self.full.get_or_insert_default().is_stuck(state.http2.dequeued_in_all(), now) {
            state.admit_beyond();
        }
        state.count_memory();
        let held = state.held();
        self.stalling.look(state.memory.written(), held.responses, now);
        let seen = Seen { held, is_stalled: self.stalling.is_stalled };
        // Another protocol has no PINGs.
        if !state.is_foreign() && self.asking.look(&times.keepalive, &mut state, now) == Asked::Silent {
            drop(state);
            tracing::debug!(peer = connection.peer, "a connection is ended: no answer to a PING");
            end_silent(connection, &times.keepalive);
        }
        seen
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
        self.written.look(state.memory.written(), state.memory.writing() > 0, now);
        if state.memory.writing() == 0 {
            self.written.rest();
        }
        if self.written.is_behind(times.reply, now) {
            return Some("responses were read too slowly");
        }
        // A stream whose own window is closed is looked at by itself.
        let waits = state.http2.queued_streams().any(|stream| !stream.is_window_closed);
        let left = state.http2.dequeued_in_all();
        self.queued.look(left, waits, now);
        self.over_budget.look(left, state.http2.is_full(), now);
        if state.http2.queued_in_all() == 0 {
            self.queued.rest();
            self.over_budget.rest();
        }
        if self.queued.is_behind(times.reply, now) {
            return Some("responses were read too slowly");
        }
        if times.reply.is_some() && self.over_budget.is_behind(Some(OVER_BUDGET_BEHIND_MAX), now) {
            return Some("too many unread responses");
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

    /// Resets streams whose window the client opens too slowly for what is queued on them.
    fn end_untaken_responses(&mut self, state: &mut State, times: &Times, now: Instant) {
        let before = std::mem::take(&mut self.responses);
        let mut late = Vec::new();
        for stream in state.http2.queued_streams() {
            let left = u64::from(stream.dequeued);
            let mut progress = match before.get(&stream.id) {
                // It counts modulo 2³².
                Some(before) if before.left <= left => *before,
                _ => Progress { left, ..Progress::default() },
            };
            progress.look(left, stream.is_window_closed, now);
            if progress.is_behind(times.reply, now) {
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
    Status::new(Code::Cancelled, "timed out receiving the request message")
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
