//! What the lock of a connection guards: [`State`], whom it wakes, and how it ends. How its slots are found is in
//! `keyed_slots.rs`, and what is looked at from time to time in `sweep.rs`.

use std::sync::Arc;
use std::task::Waker;

use thalweg_http2::{self as http2, ErrorCode};
use tokio::time::Instant;

use super::memory_account::MemoryAccount;
use super::slots::Slots;
use super::stream_wait_queue::Gate;
use super::unlocked::Deferred;
use crate::memory_budget::MemoryBudget;
use crate::scheduler::{Load, nanoseconds};
use crate::status::Status;

/// How many request heads may wait in the output of a connection. A server that does not read is no reason for calls
/// that time out, each of which frees a stream for the next, to fill the memory with heads and resets.
pub(crate) const OPENED_UNSENT_MAX: usize = 4096;

/// What the lock of a [`Connection`](super::Connection) guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) http2: http2::Connection,
    pub(super) slots: Slots,
    /// Counts the slots that there were, each of one stream; its lower half tells those of the same index apart.
    pub(super) generation: u64,
    pub(crate) failed: Failed,
    pub(crate) keepalives_sent: u64,
    pub(super) driver: DriverState,
    /// Wakes the driver, once it sleeps. Whoever wakes it takes this away; if its socket does, it stays.
    driver_waker: Option<Waker>,
    /// Another protocol has it.
    pub(super) foreign: Option<Foreign>,
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
    pub(super) deferred: Deferred,
    /// Counts the driver's reads: whether anything moved.
    pub(crate) activity: u64,
    /// When the driver's last poll began.
    pub(crate) polled_at: Instant,
    /// Since when there is a frame of which only the beginning has come.
    pub(crate) frame_begun_at: Option<Instant>,
    /// Spare memory has been given back, and nothing has moved since.
    pub(crate) shrunk: bool,
    pub(super) last_sweep: Sweep,
    pub(crate) load: Load,
    /// Server: what is held for the peer.
    pub(crate) memory: MemoryAccount,
    /// Client: one of so many unary calls is timed, a power of two.
    pub(crate) timed_each: u32,
    /// How often the driver was woken for output; see [`WAKES_PER_SAMPLE`].
    wakes: u32,
    /// Since when the output waits for the driver, if that is sampled.
    waiting_since: Option<Instant>,
}

/// What the last look at a connection saw.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) activity: u64,
    /// Of the slots.
    pub(super) generation: u64,
    pub(super) idle_since: Instant,
    /// When the last slot was new to it.
    pub(super) opened_at: Option<Instant>,
}

/// Of a connection that another protocol has: what stands in the place of slots and protocol.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// Requests whose answers have not gone out.
    pub(super) requests: usize,
    pub(super) drains: bool,
    /// What they take, in bytes.
    pub(super) held: usize,
    /// Response bytes that the client has not received.
    pub(super) unsent: usize,
    /// The request that waits until it may be answered.
    pub(super) admission: Option<Waker>,
}

/// What went wrong of all that a connection has carried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failed {
    /// Streams that were cut off before their end.
    pub(super) streams: u64,
    /// Calls that ended with another status than OK, or with none.
    pub(super) calls: u64,
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
#[derive(Clone, Copy, Debug)]
pub(super) enum DriverState {
    /// It is running or already woken, and will look for output before it sleeps.
    Running,
    /// As `Running`; and somebody had something for it to see since it began.
    Notified,
    Asleep,
}

impl State {
    /// A server's connection has no gate.
    pub(super) fn new(
        http2: http2::Connection,
        gate: Option<Arc<Gate>>,
        budget: Option<Arc<MemoryBudget>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            http2,
            slots: Slots::new(),
            generation: 0,
            failed: Failed::default(),
            keepalives_sent: 0,
            driver: DriverState::Running,
            driver_waker: None,
            foreign: None,
            ended: None,
            gate,
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
            memory: MemoryAccount::new(budget),
            timed_each: TIMED_EACH_MAX,
            wakes: 0,
            waiting_since: None,
        }
    }

    /// The connection ends with its last call.
    pub(crate) fn drain(&mut self) {
        match &mut self.foreign {
            Some(foreign) => foreign.drains = true,
            None => self.http2.drain(Instant::now().into_std()),
        }
        self.notify_driver();
    }

    /// The connection ends now.
    pub(crate) fn close(&mut self, code: ErrorCode, why: &str) {
        self.http2.close(code, why.as_bytes());
        self.notify_driver();
    }

    /// What is to happen when the lock is given back.
    pub(crate) fn deferred(&mut self) -> &mut Deferred {
        &mut self.deferred
    }

    /// There is output, or something else for the driver to see: makes sure that it looks.
    #[inline]
    pub(crate) fn notify_driver(&mut self) {
        match std::mem::replace(&mut self.driver, DriverState::Notified) {
            DriverState::Asleep => {
                self.deferred.wake(self.driver_waker.take());
                // A server's connection, which has no gate, has nobody who asks.
                if self.gate.is_some() {
                    self.note_wake();
                }
            }
            DriverState::Running | DriverState::Notified => {}
        }
    }

    /// Whether `waker` is the one that is kept for the driver.
    #[inline]
    pub(super) fn is_woken_by(&self, waker: &Waker) -> bool {
        self.driver_waker.as_ref().is_some_and(|kept| kept.will_wake(waker))
    }

    /// The driver sleeps from now on, until `waker` wakes it, or the one that is kept. Returns what is to be dropped
    /// without the lock.
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
}
