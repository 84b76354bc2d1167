//! Periodic maintenance of a connection: idle detection, traffic counters, and release of spare memory.

use std::time::SystemTime;

use tokio::time::Instant;

use super::state::{State, Sweep};
use crate::snapshot::{Counts, Traffic};

impl State {
    /// Returns the connection's traffic counters.
    pub(crate) fn traffic(&self) -> Traffic {
        let streams = self.slots.iter().filter(|(_, slot)| !slot.is_over() && !slot.is_own()).count();
        let under_way = (streams + self.http1.as_ref().map_or(0, |http1| http1.requests)) as u64;
        let started = self.generation - self.own_streams;
        let counts =
            |failed: u64| Counts { started, succeeded: started.saturating_sub(failed + under_way), failed };
        let is_client = self.stream_admission.is_some();
        let opened_at = match self.last_sweep.opened_at {
            // A client's connections are not swept.
            _ if is_client => self.opened_at,
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

    /// Returns since when the connection has been idle, or `None` while a call is open. If a call was opened since the
    /// last [sweep](Self::sweep), returns `now`.
    pub(crate) fn idle_since(&self, now: Instant) -> Option<Instant> {
        let has_new_calls = self.generation != self.last_sweep.generation;
        let since = if has_new_calls { now } else { self.last_sweep.idle_since };
        let is_idle = match &self.http1 {
            Some(http1) => http1.requests == 0,
            None => self.slots.is_empty() && self.http2.active_streams() == 0,
        };
        is_idle.then_some(since)
    }

    /// Updates the idle time, and releases spare memory if nothing has moved since the last sweep. Returns since when
    /// there has been no call. Called periodically.
    pub(crate) fn sweep(&mut self, now: Instant) -> Instant {
        let has_moved = self.activity != self.last_sweep.activity;
        if !has_moved && !self.shrunk {
            self.shrink();
        }
        // Only calls count, not all activity: a peer may send PINGs without making a call.
        let idle_since = self.idle_since(now).unwrap_or(now);
        let opened_at =
            if self.generation == self.last_sweep.generation { self.last_sweep.opened_at } else { Some(now) };
        self.last_sweep =
            Sweep { activity: self.activity, generation: self.generation, idle_since, opened_at };
        idle_since
    }

    /// Releases the spare memory of an idle connection. The driver, once woken, releases its own.
    fn shrink(&mut self) {
        self.http2.shrink();
        self.deferred.shrink();
        self.slots.shrink();
        self.shrunk = true;
        self.notify_driver();
    }
}
