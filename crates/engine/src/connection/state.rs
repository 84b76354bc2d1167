//! The state guarded by a connection's lock: [`State`]. Slot lookup is in `keyed_slots.rs`, periodic maintenance in
//! `sweep.rs`.

use std::sync::Arc;
use std::task::Waker;

use thalweg_http2::{self as http2, ErrorCode};
use tokio::time::Instant;

use super::memory_account::MemoryAccount;
use super::slots::Slots;
use super::stream_wait_queue::StreamAdmission;
use super::unlocked::Deferred;
use crate::memory_budget::MemoryBudget;
use crate::scheduler::{Load, nanoseconds};
use crate::status::Status;

/// Maximum number of request headers waiting in a connection's output. If the server does not read, calls that time
/// out free their streams for new ones. Without a limit, headers and resets would fill the memory.
pub(crate) const OPENED_UNSENT_MAX: usize = 4096;

/// The state guarded by the lock of a [`Connection`](super::Connection).
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) http2: http2::Connection,
    pub(super) slots: Slots,
    /// Number of slots created so far, one per stream. Its lower half distinguishes slots of the same index.
    pub(super) generation: u64,
    /// Client: number of these slots that were the channel's own streams.
    pub(super) own_streams: u64,
    pub(crate) failed: Failed,
    pub(crate) keepalives_sent: u64,
    pub(super) driver: DriverState,
    /// Wakes the sleeping driver. A wake-up by a caller takes it; a wake-up by the socket leaves it.
    driver_waker: Option<Waker>,
    /// Set on an HTTP/1.1 connection.
    pub(super) http1: Option<Http1State>,
    /// Why the connection is over; `None` before.
    ended: Option<Status>,
    /// Client: admission of new calls.
    pub(crate) stream_admission: Option<Arc<StreamAdmission>>,
    /// Client: the reason in the server's GOAWAY, if it gave one.
    pub(crate) goaway_debug: Option<Box<str>>,
    /// Client: waits for the server's SETTINGS.
    pub(crate) opener: Option<Waker>,
    /// Notified of activity from this time on.
    pub(crate) watcher: Option<(Instant, Waker)>,
    /// Client: streams opened since the driver last took output.
    pub(crate) opened_unsent: usize,
    /// Client: when the driver last took the output of new streams.
    pub(crate) opened_at: Option<Instant>,
    /// Tasks to run once the lock is released, never under it.
    pub(super) deferred: Deferred,
    /// Number of the driver's reads; shows whether anything moved.
    pub(crate) activity: u64,
    /// When the driver's last poll began.
    pub(crate) polled_at: Instant,
    /// When the currently incomplete frame began.
    pub(crate) frame_started_at: Option<Instant>,
    /// Whether spare memory has been released and nothing has moved since.
    pub(crate) shrunk: bool,
    pub(super) last_sweep: Sweep,
    pub(crate) load: Load,
    /// Server: memory buffered for the peer.
    pub(crate) memory: MemoryAccount,
    /// Client: one in this many unary calls is timed; a power of two.
    pub(crate) timed_each: u32,
    /// Number of times the driver was woken for output; see [`WAKES_PER_SAMPLE`].
    wakes: u32,
    /// Since when output has waited for the driver, if this wake-up is sampled.
    waiting_since: Option<Instant>,
}

/// Connection state at the last sweep.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) activity: u64,
    /// Generation of the slots.
    pub(super) generation: u64,
    pub(super) idle_since: Instant,
    /// When the last new slot was noticed.
    pub(super) opened_at: Option<Instant>,
}

/// State of an HTTP/1.1 connection, in place of slots and protocol.
#[derive(Debug, Default)]
pub(crate) struct Http1State {
    /// Requests whose responses have not been sent.
    pub(super) requests: usize,
    pub(super) drains: bool,
    /// Memory of the requests, in bytes.
    pub(super) buffered: usize,
    /// Response bytes that the client has not received.
    pub(super) unsent: usize,
    /// The request that waits for admission of its response.
    pub(super) admission: Option<Waker>,
}

/// Failures over the connection's lifetime.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failed {
    /// Streams that were cut off before their end.
    pub(super) streams: u64,
    /// Calls that ended with a status other than OK, or without one.
    pub(super) calls: u64,
}

impl Failed {
    /// Counts a failed call whose stream ended normally.
    #[cold]
    pub(crate) fn call(&mut self) {
        self.calls += 1;
    }

    /// Counts a stream that was cut off, and its call.
    #[cold]
    pub(crate) fn cut_off(&mut self) {
        self.streams += 1;
        self.calls += 1;
    }
}

/// Maximum interval between timed calls. Reading the clock twice in 64 calls costs about two instructions per call.
pub(crate) const TIMED_EACH_MAX: u32 = 64;

/// One wake-up of the driver in this many is timed: reading the clock costs about 40 instructions.
const WAKES_PER_SAMPLE: u32 = 32;

/// Whether the driver has to be woken for output to leave.
#[derive(Clone, Copy, Debug)]
pub(super) enum DriverState {
    /// Running or already woken; checks for output before it sleeps.
    Running,
    /// Like `Running`, and notified since the poll began.
    Notified,
    Asleep,
}

impl State {
    /// Creates the state. A server's connection has no stream admission.
    pub(super) fn new(
        http2: http2::Connection,
        stream_admission: Option<Arc<StreamAdmission>>,
        budget: Option<Arc<MemoryBudget>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            http2,
            slots: Slots::new(),
            generation: 0,
            own_streams: 0,
            failed: Failed::default(),
            keepalives_sent: 0,
            driver: DriverState::Running,
            driver_waker: None,
            http1: None,
            ended: None,
            stream_admission,
            goaway_debug: None,
            opener: None,
            watcher: None,
            opened_unsent: 0,
            opened_at: None,
            deferred: Deferred::default(),
            activity: 0,
            polled_at: now,
            frame_started_at: None,
            shrunk: false,
            last_sweep: Sweep { activity: 0, generation: 0, idle_since: now, opened_at: None },
            load: Load::default(),
            memory: MemoryAccount::new(budget),
            timed_each: TIMED_EACH_MAX,
            wakes: 0,
            waiting_since: None,
        }
    }

    /// Closes the connection gracefully, after its last call.
    pub(crate) fn drain(&mut self) {
        match &mut self.http1 {
            Some(http1) => http1.drains = true,
            None => self.http2.drain(Instant::now().into_std()),
        }
        self.notify_driver();
    }

    /// Closes the connection now.
    pub(crate) fn close(&mut self, code: ErrorCode, why: &str) {
        self.http2.close(code, why.as_bytes());
        self.notify_driver();
    }

    /// Returns the tasks to run once the lock is released.
    pub(crate) fn deferred(&mut self) -> &mut Deferred {
        &mut self.deferred
    }

    /// Makes sure that the driver checks for output and other changes.
    #[inline]
    pub(crate) fn notify_driver(&mut self) {
        match std::mem::replace(&mut self.driver, DriverState::Notified) {
            DriverState::Asleep => {
                self.deferred.wake(self.driver_waker.take());
                // A server's connection has no stream admission, and nobody reads its load.
                if self.stream_admission.is_some() {
                    self.note_wake();
                }
            }
            DriverState::Running | DriverState::Notified => {}
        }
    }

    /// Returns whether `waker` is the stored waker of the driver.
    #[inline]
    pub(super) fn is_woken_by(&self, waker: &Waker) -> bool {
        self.driver_waker.as_ref().is_some_and(|kept| kept.will_wake(waker))
    }

    /// Marks the driver as sleeping until `waker`, or else the stored waker, wakes it. Returns the waker to drop
    /// outside the lock.
    #[inline]
    pub(super) fn fall_asleep(&mut self, waker: Option<Waker>) -> Option<Waker> {
        self.driver = DriverState::Asleep;
        if waker.is_some() { std::mem::replace(&mut self.driver_waker, waker) } else { None }
    }

    #[inline]
    fn note_wake(&mut self) {
        self.wakes = self.wakes.wrapping_add(1);
        if self.wakes.is_multiple_of(WAKES_PER_SAMPLE) {
            self.waiting_since = Some(Instant::now());
        }
    }

    #[inline]
    pub(super) fn notify_watcher(&mut self, now: Instant) {
        if self.watcher.as_ref().is_some_and(|(from, _)| *from <= now) {
            let watcher = self.watcher.take().map(|(_, waker)| waker);
            self.deferred.wake(watcher);
        }
    }

    /// Notes that the driver takes the output.
    #[inline]
    pub(super) fn note_taken(&mut self, now: Instant) {
        if let Some(since) = self.waiting_since.take() {
            self.load.note_wait(nanoseconds(since, now));
        }
    }

    /// Client: returns whether no call waits for a stream.
    #[inline]
    pub(crate) fn is_queue_empty(&self) -> bool {
        self.stream_admission.as_ref().is_none_or(|stream_admission| stream_admission.queue().is_empty())
    }

    /// Client: wakes the next waiting call, since a stream may be free or the connection accepts no more calls.
    pub(crate) fn admit(&mut self) {
        let next = self.stream_admission.as_ref().and_then(|stream_admission| stream_admission.admit());
        self.deferred.wake(next);
    }

    /// Client: notes that no stream is free. The protocol will report the next free one.
    pub(crate) fn close_stream_admission(&self) {
        if let Some(stream_admission) = &self.stream_admission {
            stream_admission.close();
        }
    }

    pub(crate) fn ended(&self) -> Option<&Status> {
        self.ended.as_ref()
    }

    /// Ends the connection, and with `status` every call that has not ended yet.
    pub(crate) fn end_all(&mut self, status: &Status) {
        if self.ended.is_none() {
            self.ended = Some(status.clone());
        }
        for slot in self.slots.iter_mut() {
            if !slot.is_over() && !slot.is_own() {
                self.failed.cut_off();
            }
            slot.end_of_connection(status);
            slot.wake_all(&mut self.deferred);
        }
        self.deferred.wake(self.opener.take());
        self.admit();
    }

    /// Swaps the deferred tasks with an empty list, so that both keep their capacity.
    pub(super) fn take_deferred(&mut self, empty: &mut Deferred) {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut self.deferred, empty);
    }
}
