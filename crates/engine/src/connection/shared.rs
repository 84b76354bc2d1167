//! A connection, shared by its driver and its calls: [`Connection`], and the lock around its [`State`].

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use thalweg_http2::{self as http2, ErrorCode};
use tokio::sync::Semaphore;

use super::decompression::Decompression;
use super::slot::{End, Slot, SlotKey};
use super::state::State;
use super::stream_wait_queue::StreamAdmission;
use crate::endpoint_origin::EndpointOrigin;
use crate::measure::ConnectionMeasure;
use crate::memory_budget::MemoryBudget;
use crate::registry;
use crate::status::Status;

/// One connection, shared by its driver and the calls on it.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Number of the connection, unique in the process.
    pub(crate) id: u64,
    state: Mutex<State>,
    /// Calls in flight, readable without the lock, for choosing a lane.
    in_flight: AtomicUsize,
    /// Number of times the lock was contended.
    contended: AtomicU64,
    /// Client: admission of new calls.
    stream_admission: Option<Arc<StreamAdmission>>,
    /// Client: the channel's target, as written by its user.
    target: OnceLock<Arc<str>>,
    /// Client: the names in requests, if the endpoint has its own.
    origin: OnceLock<Arc<EndpointOrigin>>,
    /// The network's round-trip time, if known.
    round_trip: OnceLock<Duration>,
    /// Client: measurement of the connection.
    pub(crate) measure: ConnectionMeasure,
    /// Name of the peer in messages, such as `127.0.0.1:50051`.
    pub(crate) peer: Arc<str>,
    /// Server: one permit for each large or compressed request being decoded.
    pub(crate) decoding: Semaphore,
    pub(crate) decompression: Decompression,
}

/// Maximum number of a connection's large or compressed requests decoded in parallel. A request of 4 KiB may
/// decompress to 4 MiB, which takes milliseconds. Without a limit, other connections would wait behind hundreds of
/// them.
const DECODING_MAX: usize = 4;

impl Connection {
    /// Creates a connection without a memory budget. A server's connection has no stream admission.
    pub(crate) fn new(
        http2: http2::Connection,
        peer: String,
        stream_admission: Option<Arc<StreamAdmission>>,
    ) -> Arc<Self> {
        Self::with_budget(http2, peer, stream_admission, None)
    }

    /// Creates a server's connection, which charges its memory to `budget`.
    pub(crate) fn of_server(http2: http2::Connection, peer: String, budget: &Arc<MemoryBudget>) -> Arc<Self> {
        Self::with_budget(http2, peer, None, Some(Arc::clone(budget)))
    }

    fn with_budget(
        http2: http2::Connection,
        peer: String,
        stream_admission: Option<Arc<StreamAdmission>>,
        budget: Option<Arc<MemoryBudget>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: registry::next_id(),
            state: Mutex::new(State::new(http2, stream_admission.clone(), budget)),
            in_flight: AtomicUsize::new(0),
            contended: AtomicU64::new(0),
            stream_admission,
            target: OnceLock::new(),
            origin: OnceLock::new(),
            round_trip: OnceLock::new(),
            measure: ConnectionMeasure::default(),
            peer: peer.into(),
            decoding: Semaphore::new(DECODING_MAX),
            decompression: Decompression::default(),
        })
    }

    /// Locks the state. Callers encode under this lock; it is never held while user code runs.
    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::WouldBlock) => self.wait_for_lock(),
            // A panic under the lock is our bug and must not fail all other calls as well.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        Locked { state: Some(state) }
    }

    #[cold]
    fn wait_for_lock(&self) -> MutexGuard<'_, State> {
        self.contended.fetch_add(1, Ordering::Relaxed);
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how often the lock was contended so far.
    pub(crate) fn contended(&self) -> u64 {
        self.contended.load(Ordering::Relaxed)
    }

    /// Client: returns whether a stream may be free; see [`StreamAdmission::may_have_free_stream`].
    pub(crate) fn may_have_free_stream(&self) -> bool {
        self.stream_admission.as_ref().is_some_and(|stream_admission| stream_admission.may_have_free_stream())
    }

    /// Cancels a client's call. If it has not ended, its stream is reset with CANCEL (never END_STREAM, which the
    /// server could take for a complete request).
    pub(crate) fn cancel(&self, key: SlotKey) {
        let mut state = self.lock();
        // The canceling task need not be woken.
        let reader = state.slot(key).and_then(|slot| slot.receiver.take());
        let Some(slot) = state.remove(key) else { return };
        if !slot.is_own() {
            self.call_ended();
            if !slot.is_over() {
                state.failed.cut_off();
            }
        }
        state.http2.reset(slot.stream, ErrorCode::Cancel);
        if state.http2.wants_write() {
            state.notify_driver();
        }
        drop(state);
        // A status in the slot may come from the user's own requests.
        drop((reader, slot));
    }

    /// Fails a client's call for a local reason; its reader gets `status`.
    pub(crate) fn fail(&self, key: SlotKey, status: &Status) {
        let mut state = self.lock();
        state.note_cut_off(key);
        let Some((slot, http2, deferred)) = state.parts(key) else { return };
        slot.end(End::Lost { status: status.clone(), unprocessed: false });
        slot.wake_all(deferred);
        http2.reset(slot.stream, ErrorCode::Cancel);
        state.notify_driver();
    }

    /// Returns the channel's target, or the peer if the target is unknown.
    pub(crate) fn target(&self) -> &str {
        self.target.get().map_or(&self.peer, |target| target)
    }

    /// Client: returns the names in requests, if the endpoint has its own.
    #[inline]
    pub(crate) fn origin(&self) -> Option<&EndpointOrigin> {
        self.origin.get().map(|origin| &**origin)
    }

    /// Returns the timeout of calls to the endpoint, if it has one of its own.
    pub(crate) fn call_timeout(&self) -> Option<Duration> {
        self.origin()?.call_timeout
    }

    /// Sets the target and the endpoint's own names; only the first call counts.
    pub(crate) fn set_destination(&self, target: Arc<str>, origin: Option<Arc<EndpointOrigin>>) {
        let _ = self.target.set(target);
        if let Some(origin) = origin {
            let _ = self.origin.set(origin);
        }
    }

    /// Returns the progress of a client's call: unsent bytes of its message, and received bytes of its response.
    #[cold]
    pub(crate) fn position(&self, key: SlotKey) -> Option<CallPosition> {
        let mut state = self.lock();
        let slot = state.slot(key)?;
        let (stream, received) = (slot.stream, slot.inbox.len());
        let has_headers = slot.client().is_some_and(|call| call.headers.is_some());
        Some(CallPosition { unsent: state.http2.queued(stream), has_headers, received })
    }

    /// Server: adds `len` bytes to the memory that a call's handler uses.
    pub(crate) fn add_request_bytes(&self, key: SlotKey, len: usize) {
        let mut state = self.lock();
        if let Some(call) = state.slot(key).and_then(Slot::server) {
            call.add_buffered(len);
            state.note_growth(len);
        }
    }

    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.get().copied()
    }

    /// Sets the round-trip time; only the first call counts.
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

/// Progress of a client's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallPosition {
    /// Unsent bytes of the call's message.
    pub(crate) unsent: usize,
    pub(crate) has_headers: bool,
    /// Received bytes of the response message.
    pub(crate) received: usize,
}

/// Guard of [`Connection::lock`]; runs the [deferred](State::deferred) tasks on release.
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
        // A single wake-up, mostly the driver's, allocates nothing.
        let (mut others, last) = state.deferred.take();
        drop(state);
        others.run();
        last.run();
    }
}
