//! What a connection is to its driver and to the calls on it: [`State`], and the lock around it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::Waker;
#[cfg(feature = "tls")]
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use thalweg_http2::{self as http2, ErrorCode, Tag};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::load::{Load, nanoseconds};
use super::slot::{End, Slot, SlotKey};
use super::slots::Slots;
use super::stream_wait_queue::Gate;
use super::unlocked::Deferred;
use crate::measure::ConnectionMeasure;
use crate::registry;
use crate::snapshot::{Counts, Traffic};
use crate::status::{Code, Status};

/// How many request heads may wait in the output of a connection. A server that does not read is no reason for calls
/// that time out, each of which frees a stream for the next, to fill the memory with heads and resets.
pub(crate) const OPENED_UNSENT_MAX: usize = 4096;

/// One connection, shared by its driver and the calls on it.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Its number in the process.
    pub(crate) id: u64,
    state: Mutex<State>,
    /// Calls in flight, readable without the lock: lanes are chosen by it.
    in_flight: AtomicUsize,
    /// How often the lock was not free at once.
    contended: AtomicU64,
    /// Client: where calls come in.
    gate: Option<Arc<Gate>>,
    /// Client: what the channel connects to, as its user has written it.
    target: OnceLock<Arc<str>>,
    /// The network's round trip, if it is known.
    round_trip: OnceLock<Duration>,
    /// Client: what is measured of the connection.
    pub(crate) measure: ConnectionMeasure,
    /// What the other end is called in messages, such as `127.0.0.1:50051`.
    pub(crate) peer: String,
    /// Server: a permit for each request that is large or compressed and is being decoded.
    pub(crate) decoding: Semaphore,
}

/// How many requests of a connection that are large or compressed are decoded beside each other. A request of 4 KiB may
/// become one of 4 MiB, which takes milliseconds: with all of a connection's calls at it, those of other connections
/// would wait behind hundreds of them.
const DECODING_MAX: usize = 4;

impl Connection {
    /// A server's connection has no gate.
    pub(crate) fn new(http2: http2::Connection, peer: String, gate: Option<Arc<Gate>>) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            id: registry::next_id(),
            state: Mutex::new(State {
                http2,
                slots: Slots::new(),
                generation: 0,
                failed: Failed::default(),
                keepalives_sent: 0,
                driver: DriverState::Running,
                ended: None,
                gate: gate.clone(),
                farewell: None,
                opener: None,
                watcher: None,
                opened_unsent: 0,
                deferred: Deferred::default(),
                activity: 0,
                polled_at: now,
                frame_begun_at: None,
                shrunk: false,
                last_sweep: Sweep { activity: 0, generation: 0, idle_since: now, opened_at: None },
                load: Load::default(),
                timed_each: TIMED_EACH_MAX,
                wakes: 0,
                waiting_since: None,
            }),
            in_flight: AtomicUsize::new(0),
            contended: AtomicU64::new(0),
            gate,
            target: OnceLock::new(),
            round_trip: OnceLock::new(),
            measure: ConnectionMeasure::default(),
            peer,
            decoding: Semaphore::new(DECODING_MAX),
        })
    }

    /// The lock under which callers encode. Never held while user code runs.
    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::WouldBlock) => self.wait_for_lock(),
            // A panic under the lock is a bug of ours, not a reason to fail every other call as well.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        Locked { state: Some(state) }
    }

    #[cold]
    fn wait_for_lock(&self) -> MutexGuard<'_, State> {
        self.contended.fetch_add(1, Ordering::Relaxed);
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the lock was not free at once, so far.
    pub(crate) fn contended(&self) -> u64 {
        self.contended.load(Ordering::Relaxed)
    }

    /// Client: whether a stream may be free; see [`Gate::may_have_free_stream`].
    pub(crate) fn may_have_free_stream(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.may_have_free_stream())
    }

    /// Gives up a client's stream: a call that has not ended is reset with CANCEL (never END_STREAM, which the server
    /// could take for a whole request).
    pub(crate) fn cancel(&self, key: SlotKey) {
        let mut state = self.lock();
        // Who gives the call up need not be woken by that.
        let reader = state.slot(key).and_then(|slot| slot.receiver.take());
        let Some(slot) = state.remove(key) else { return };
        self.call_ended();
        if !slot.is_over() {
            state.failed.cut_off();
        }
        state.http2.reset(slot.stream, ErrorCode::Cancel);
        if state.http2.wants_write() {
            state.notify_driver();
        }
        drop(state);
        // A status in it may have come from the user's own requests.
        drop((reader, slot));
    }

    /// Ends a client's stream for a reason of its own; its reader gets `status`.
    pub(crate) fn fail(&self, key: SlotKey, status: &Status) {
        let mut state = self.lock();
        state.note_cut_off(key);
        let Some((slot, http2, deferred)) = state.parts(key) else { return };
        slot.end(End::Lost { status: status.clone(), unprocessed: false });
        slot.wake_all(deferred);
        http2.reset(slot.stream, ErrorCode::Cancel);
        state.notify_driver();
    }

    /// For who works on a connection before its driver runs: ready once it is closed. Whoever closes it wakes `cx`.
    #[cfg(feature = "tls")]
    pub(crate) fn poll_closed(&self, cx: &Context<'_>) -> Poll<()> {
        let asleep = DriverState::Asleep(cx.waker().clone());
        let mut state = self.lock();
        if state.http2.is_closed() {
            return Poll::Ready(());
        }
        let before = std::mem::replace(&mut state.driver, asleep);
        drop(state);
        drop(before);
        Poll::Pending
    }

    /// What its channel connects to: the peer, if that is not known.
    pub(crate) fn target(&self) -> &str {
        self.target.get().map_or(&self.peer, |target| target)
    }

    /// Only the first counts.
    pub(crate) fn set_target(&self, target: Arc<str>) {
        let _ = self.target.set(target);
    }

    /// How far a client's call is: what of its message could not be sent, and what has come of its response.
    #[cold]
    pub(crate) fn how_far(&self, key: SlotKey) -> Option<HowFar> {
        let mut state = self.lock();
        let slot = state.slot(key)?;
        let (stream, received) = (slot.stream, slot.inbox.len());
        let has_head = slot.client().is_some_and(|call| call.head.is_some());
        Some(HowFar { unsent: state.http2.queued(stream), has_head, received })
    }

    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.get().copied()
    }

    /// Only the first counts.
    pub(crate) fn set_round_trip(&self, round_trip: Duration) {
        let _ = self.round_trip.set(round_trip);
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn call_started(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn call_ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How far a client's call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HowFar {
    /// Bytes of its message that wait for the server to take them.
    pub(crate) unsent: usize,
    pub(crate) has_head: bool,
    /// Bytes of the response's message.
    pub(crate) received: usize,
}

/// What the lock of a [`Connection`] guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) http2: http2::Connection,
    slots: Slots,
    /// Counts the slots that there were, each of one stream; its lower half tells those of the same index apart.
    generation: u64,
    pub(crate) failed: Failed,
    pub(crate) keepalives_sent: u64,
    pub(super) driver: DriverState,
    /// Why the connection is over, once it is.
    ended: Option<Status>,
    /// Client: where calls come in.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Client: what the server said when it went away, if it gave a reason.
    pub(crate) farewell: Option<Box<str>>,
    /// Client: who waits for the server's SETTINGS.
    pub(crate) opener: Option<Waker>,
    /// Who is to know when something moves here from a time on.
    pub(crate) watcher: Option<(Instant, Waker)>,
    /// Client: streams opened since the driver last took output.
    pub(crate) opened_unsent: usize,
    /// What happens when the lock is given back, never under it.
    deferred: Deferred,
    /// Counts the driver's reads: whether anything moved.
    pub(crate) activity: u64,
    /// When the driver's last poll began.
    pub(crate) polled_at: Instant,
    /// Since when there is a frame of which only the beginning has come.
    pub(crate) frame_begun_at: Option<Instant>,
    /// Spare memory has been given back, and nothing has moved since.
    pub(crate) shrunk: bool,
    last_sweep: Sweep,
    pub(crate) load: Load,
    /// Client: one of so many unary calls is timed, a power of two.
    pub(crate) timed_each: u32,
    /// How often the driver was woken for output; see [`WAKES_PER_SAMPLE`].
    wakes: u32,
    /// Since when the output waits for the driver, if that is sampled.
    waiting_since: Option<Instant>,
}

/// What the last look at a connection saw.
#[derive(Debug)]
struct Sweep {
    activity: u64,
    /// Of the slots.
    generation: u64,
    idle_since: Instant,
    /// When the last slot was new to it.
    opened_at: Option<Instant>,
}

/// What went wrong of all that a connection has carried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failed {
    /// Streams that were cut off before their end.
    streams: u64,
    /// Calls that ended with another status than OK, or with none.
    calls: u64,
}

impl Failed {
    /// A call has failed, and its stream has ended as it should.
    #[cold]
    pub(crate) fn call(&mut self) {
        self.calls += 1;
    }

    /// A stream was cut off, and its call with it.
    #[cold]
    pub(crate) fn cut_off(&mut self) {
        self.streams += 1;
        self.calls += 1;
    }
}

/// Fewer calls are not timed however many there are: to read the clock twice in 64 calls costs some two instructions a
/// call.
pub(crate) const TIMED_EACH_MAX: u32 = 64;

/// Every Nth wake-up of the driver is timed: to read the clock costs some 40 instructions.
const WAKES_PER_SAMPLE: u32 = 32;

/// Whether the driver has to be woken for output to leave.
#[derive(Debug)]
pub(super) enum DriverState {
    /// It is running or already woken, and will look for output before it sleeps.
    Running,
    /// As `Running`; and somebody had something for it to see since it began.
    Notified,
    Asleep(Waker),
}

impl State {
    /// The key that the next slot will have.
    #[inline]
    pub(crate) fn next_key(&self) -> SlotKey {
        SlotKey { index: self.slots.next_index() as u32, generation: self.generation.wrapping_add(1) as u32 }
    }

    /// Adds a slot, at [`next_key`](Self::next_key).
    #[inline]
    pub(crate) fn insert(&mut self, mut slot: Slot) {
        self.generation = self.generation.wrapping_add(1);
        slot.generation = self.generation as u32;
        self.slots.insert(slot);
    }

    /// Client: calls under way that are not unary.
    pub(crate) fn streaming_calls(&self) -> usize {
        self.slots.iter().filter(|(_, slot)| slot.is_streaming_call() && slot.end.is_none()).count()
    }

    #[inline]
    pub(crate) fn slots_len(&self) -> usize {
        self.slots.len()
    }

    /// The connection ends with its last call.
    pub(crate) fn drain(&mut self) {
        self.http2.drain(Instant::now().into_std());
        self.notify_driver();
    }

    /// The connection ends now.
    pub(crate) fn close(&mut self, code: ErrorCode, why: &str) {
        self.http2.close(code, why.as_bytes());
        self.notify_driver();
    }

    /// All slots, with their keys.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (SlotKey, &Slot)> {
        let key = |index, slot: &Slot| SlotKey { index: index as u32, generation: slot.generation };
        self.slots.iter().map(move |(index, slot)| (key(index, slot), slot))
    }

    /// Server: what the metadata of all calls takes, in bytes.
    pub(crate) fn metadata_len(&self) -> usize {
        self.slots.iter().filter_map(|(_, slot)| Some(slot.server_ref()?.metadata_len as usize)).sum()
    }

    /// None once the slot was removed: a key is never taken for a later stream's.
    #[inline]
    pub(crate) fn slot(&mut self, key: SlotKey) -> Option<&mut Slot> {
        self.slots.get_mut(key.index as usize).filter(|slot| slot.generation == key.generation)
    }

    /// The slot together with the protocol, for work that needs both.
    #[inline]
    pub(crate) fn parts(
        &mut self,
        key: SlotKey,
    ) -> Option<(&mut Slot, &mut http2::Connection, &mut Deferred)> {
        let slot = self.slots.get_mut(key.index as usize).filter(|slot| slot.generation == key.generation)?;
        Some((slot, &mut self.http2, &mut self.deferred))
    }

    /// Takes the slot away. Who still waits on its stream is woken; what is measured of its call is left to the other
    /// holders of that.
    #[inline]
    pub(crate) fn remove(&mut self, key: SlotKey) -> Option<Slot> {
        let (slot, _, deferred) = self.parts(key)?;
        slot.wake_all(deferred);
        deferred.end(slot.take_measure(), None);
        self.slots.remove(key.index as usize)
    }

    /// As [`remove`](Self::remove), where nothing of the slot is wanted.
    #[inline]
    pub(crate) fn discard(&mut self, key: SlotKey) {
        let Some((slot, _, deferred)) = self.parts(key) else { return };
        slot.wake_all(deferred);
        deferred.end(slot.take_measure(), None);
        self.slots.discard(key.index as usize);
    }

    /// Takes the slot of a server's call away, which has ended with this code, for what is measured of it. Whether its
    /// request has ended, too.
    #[inline]
    pub(crate) fn discard_ended(&mut self, key: SlotKey, code: Code) -> Option<bool> {
        let (slot, _, deferred) = self.parts(key)?;
        let is_ended = slot.end.is_some();
        // One that was lost meanwhile was not answered.
        let code = if slot.send_closed { Code::Cancelled } else { code };
        deferred.end(slot.take_measure(), Some(code));
        slot.wake_all(deferred);
        self.slots.discard(key.index as usize);
        Some(is_ended)
    }

    /// The call in this slot, if it has no outcome yet, is about to be cut off.
    #[cold]
    pub(crate) fn note_cut_off(&mut self, key: SlotKey) {
        if self.slot(key).is_some_and(|slot| !slot.is_over()) {
            self.failed.cut_off();
        }
    }

    /// The call in this slot, if it has no outcome yet, is about to end with another status than OK.
    #[cold]
    pub(crate) fn note_failed(&mut self, key: SlotKey) {
        if self.slot(key).is_some_and(|slot| !slot.is_over()) {
            self.failed.call();
        }
    }

    /// What the connection has carried.
    pub(crate) fn traffic(&self) -> Traffic {
        let under_way = self.slots.iter().filter(|(_, slot)| !slot.is_over()).count() as u64;
        let started = self.generation;
        let counts =
            |failed: u64| Counts { started, succeeded: started.saturating_sub(failed + under_way), failed };
        let is_client = self.gate.is_some();
        // A client's connections are not swept.
        let opened_at = match self.last_sweep.opened_at {
            _ if is_client => None,
            at if self.generation == self.last_sweep.generation => at,
            _ => Some(Instant::now()),
        };
        let (send_window, receive_window) = self.http2.windows();
        Traffic {
            is_client,
            streams: counts(self.failed.streams),
            calls: counts(self.failed.calls),
            last_stream: opened_at.and_then(|at| SystemTime::now().checked_sub(at.elapsed())),
            keepalives_sent: self.keepalives_sent,
            send_window: send_window.into(),
            receive_window: receive_window.into(),
        }
    }

    /// What is to happen when the lock is given back.
    pub(crate) fn deferred(&mut self) -> &mut Deferred {
        &mut self.deferred
    }

    /// There is output, or something else for the driver to see: makes sure that it looks.
    #[inline]
    pub(crate) fn notify_driver(&mut self) {
        match std::mem::replace(&mut self.driver, DriverState::Notified) {
            DriverState::Asleep(waker) => {
                self.deferred.wake(Some(waker));
                // A server's connection, which has no gate, has nobody who asks.
                if self.gate.is_some() {
                    self.note_wake();
                }
            }
            DriverState::Running | DriverState::Notified => {}
        }
    }

    #[inline]
    fn note_wake(&mut self) {
        self.wakes = self.wakes.wrapping_add(1);
        if self.wakes.is_multiple_of(WAKES_PER_SAMPLE) {
            self.waiting_since = Some(Instant::now());
        }
    }

    #[inline]
    pub(super) fn tell_watcher(&mut self, now: Instant) {
        if self.watcher.as_ref().is_some_and(|(from, _)| *from <= now) {
            let watcher = self.watcher.take().map(|(_, waker)| waker);
            self.deferred.wake(watcher);
        }
    }

    /// The driver takes the output.
    #[inline]
    pub(super) fn note_taken(&mut self, now: Instant) {
        if let Some(since) = self.waiting_since.take() {
            self.load.note_wait(nanoseconds(since, now));
        }
    }

    /// Client: whether others wait for a stream.
    #[inline]
    pub(crate) fn is_queue_empty(&self) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate.queue().is_empty())
    }

    /// Client: a stream may be free, or the connection takes no more; whoever waits has to look.
    pub(crate) fn admit(&mut self) {
        let next = self.gate.as_ref().and_then(|gate| gate.admit());
        self.deferred.wake(next);
    }

    /// Client: no stream is free, and the protocol was asked to tell of the next.
    pub(crate) fn close_gate(&self) {
        if let Some(gate) = &self.gate {
            gate.close();
        }
    }

    pub(crate) fn ended(&self) -> Option<&Status> {
        self.ended.as_ref()
    }

    /// The connection is over: every call that has not ended yet ends with `status`.
    pub(crate) fn end_all(&mut self, status: &Status) {
        if self.ended.is_none() {
            self.ended = Some(status.clone());
        }
        for slot in self.slots.iter_mut() {
            if !slot.is_over() {
                self.failed.cut_off();
            }
            slot.end_of_connection(status);
            slot.wake_all(&mut self.deferred);
        }
        self.deferred.wake(self.opener.take());
        self.admit();
    }

    /// Exchanges what is deferred for an empty list, so that both keep their capacity.
    pub(super) fn take_deferred(&mut self, empty: &mut Deferred) {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut self.deferred, empty);
    }

    /// Since when there has been no call, as far as those who [swept](Self::sweep) could see, or since `now` if there
    /// has been one after that; `None` while there is one.
    pub(crate) fn idle_since(&self, now: Instant) -> Option<Instant> {
        let has_called = self.generation != self.last_sweep.generation;
        let since = if has_called { now } else { self.last_sweep.idle_since };
        (self.slots.is_empty() && self.http2.active_streams() == 0).then_some(since)
    }

    /// The look that is taken at each connection from time to time. One on which nothing moved since the last gives its
    /// spare memory back. Gives since when there has been no call.
    pub(crate) fn sweep(&mut self, now: Instant) -> Instant {
        let has_moved = self.activity != self.last_sweep.activity;
        if !has_moved && !self.shrunk {
            self.shrink();
        }
        // Not whatever moves: a peer that sends PINGs makes no call.
        let idle_since = self.idle_since(now).unwrap_or(now);
        let opened_at =
            if self.generation == self.last_sweep.generation { self.last_sweep.opened_at } else { Some(now) };
        self.last_sweep =
            Sweep { activity: self.activity, generation: self.generation, idle_since, opened_at };
        idle_since
    }

    /// An idle connection gives spare memory back; the driver, woken, does the same with its own.
    fn shrink(&mut self) {
        self.http2.shrink();
        self.deferred.shrink();
        self.slots.shrink();
        self.shrunk = true;
        self.notify_driver();
    }
}

/// The guard of [`Connection::lock`]; does on release what was [deferred](State::deferred).
pub(crate) struct Locked<'a> {
    /// `Some` until dropped.
    state: Option<MutexGuard<'a, State>>,
}

impl std::ops::Deref for Locked<'_> {
    type Target = State;
    #[inline]
    fn deref(&self) -> &State {
        self.state.as_ref().expect("held until dropped")
    }
}

impl std::ops::DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("held until dropped")
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.deferred.is_empty() {
            self.release();
        }
    }
}

impl Locked<'_> {
    #[cold]
    fn release(&mut self) {
        let Some(mut state) = self.state.take() else { return };
        // To wake one, mostly the driver, takes no memory.
        let (mut others, last) = state.deferred.take();
        drop(state);
        others.run();
        last.run();
    }
}

/// A slot's key as the tag that the protocol gives back with each event of the stream.
impl From<SlotKey> for Tag {
    fn from(key: SlotKey) -> Self {
        Tag(u64::from(key.generation) << 32 | u64::from(key.index))
    }
}

impl From<Tag> for SlotKey {
    fn from(tag: Tag) -> Self {
        Self { index: tag.0 as u32, generation: (tag.0 >> 32) as u32 }
    }
}
