//! Models a lane's lock, which callers on several cores hold while encoding, and which the lane's driver takes, too.
//!
//! ```text
//!   a call:    opens a stream ── takes its answer        held twice for call_ns
//!   a driver:  3 times a batch, and once for a read      held for event_ns, and as long for each event
//! ```
//!
//! Contention is the expected number of others who hold the lock (`rivals`). It is the number of running callers'
//! tasks, times the share of time that each holds a lock, divided by the number of lanes. A lock is contended in
//! `rivals / (1 + rivals)` of the cases. Each rival lengthens a hold by `handover_ns`, because it pulls the cache line
//! to its core (the coherence term of the Universal Scalability Law). Holders run one after the other, so the last one
//! waits for all others (a queue with one server).
//!
//! **Example.** With `call_ns` 200 and `caller_ns` 700, 400 of a caller's 700 ns are under a lock. On 16 cores with one
//! lane there are 15 × 0.57 = 8.6 rivals. At 40 ns each a hold takes 200 + 343 = 543 ns. So the lane moves at most 1 /
//! (2 × 543 ns) = 0.92 M calls/s on any number of cores. One core moves 1.4 M. With four lanes there are 2.1 rivals,
//! and a hold takes 286 ns. All lanes together allow 4 / (2 × 286 ns) = 7.0 M calls/s. Drivers are not included.

use super::Model;
use super::costs::Costs;

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct LockCosts {
    /// Time that a call holds the lock to open a stream, and again to take its response. Part of `caller_ns`. 0
    /// disables contention.
    pub(super) call_ns: u64,
    /// Time that a driver holds it per acquisition and per event; part of its costs of a call.
    pub(super) event_ns: u64,
    /// Extension of each hold by a rival.
    pub(super) handover_ns: u64,
    /// Maximum wait before a waiter sleeps, and shortest and longest time to wake it.
    pub(super) spin_ns_max: u64,
    pub(super) sleep_ns: (u64, u64),
}

pub(super) const NO_LOCK: LockCosts =
    LockCosts { call_ns: 0, event_ns: 0, handover_ns: 0, spin_ns_max: 0, sleep_ns: (0, 1) };

/// Acquisitions of the lock by a call, and by a driver's poll.
const CALL_ACQUISITIONS: u64 = 2;
const DRIVER_ACQUISITIONS: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct Lock {
    /// When all holders and waiters are done.
    free_ns: u64,
    /// Number of contended acquisitions.
    contended: f64,
}

impl Lock {
    /// Returns the contended acquisitions since the last call.
    pub(super) fn take_contended(&mut self) -> u64 {
        let counted = self.contended as u64;
        self.contended -= counted as f64;
        counted
    }

    /// Takes the lock `acquisitions` times, and returns when the last hold ends.
    fn hold(&mut self, now_ns: u64, acquisitions: u64, hold_ns: f64, rivals: f64) -> u64 {
        self.contended += acquisitions as f64 * rivals / (1.0 + rivals);
        self.free_ns = self.free_ns.max(now_ns) + (acquisitions as f64 * hold_ns) as u64;
        self.free_ns
    }
}

impl Costs {
    /// Returns the share of a running caller's time in which it holds a lock.
    fn caller_lock_share(&self) -> f64 {
        (CALL_ACQUISITIONS * self.lock.call_ns) as f64 / self.caller_ns as f64
    }

    /// Returns the same share for a driver.
    fn driver_lock_share(&self) -> f64 {
        let call_ns = self.client_send_ns + self.client_receive_ns;
        (2 * self.lock.event_ns) as f64 / call_ns as f64
    }
}

impl Model {
    /// Returns how long a task of callers takes with the locks of its lanes. `duration` is the time without locks.
    pub(super) fn lock_as_callers(&mut self, calls: usize, duration: u64) -> u64 {
        let others = self.callers_running;
        self.callers_running += 1;
        let costs = self.world.costs;
        let lanes = self.ready.len();
        if costs.lock.call_ns == 0 {
            return duration;
        }
        let callers = others as f64 * costs.caller_lock_share() / lanes as f64;
        let is_driven = |lane: usize| f64::from(u8::from(self.lanes[lane].client.scheduled));
        let drivers = self.ready.iter().map(|&lane| is_driven(lane)).sum::<f64>() / lanes as f64;
        let rivals = callers + drivers * costs.driver_lock_share();
        let hold_ns = costs.lock.call_ns as f64 + costs.lock.handover_ns as f64 * rivals;
        let mut done_ns = 0;
        for offset in 0..calls.min(lanes) {
            let lane = self.ready[(self.last + offset) % lanes];
            let acquisitions =
                CALL_ACQUISITIONS * (calls / lanes + usize::from(offset < calls % lanes)) as u64;
            done_ns = done_ns.max(self.lanes[lane].lock.hold(self.now_ns, acquisitions, hold_ns, rivals));
        }
        self.duration_with_lock(done_ns, duration, hold_ns, rivals)
    }

    /// Returns how long a driver's poll with this many events takes with its lock.
    pub(super) fn lock_as_driver(&mut self, lane: u16, events: usize, duration: u64) -> u64 {
        let costs = self.world.costs;
        if costs.lock.call_ns == 0 || events == 0 {
            return duration;
        }
        let lanes = self.ready.len();
        let rivals = self.callers_running as f64 * costs.caller_lock_share() / lanes as f64;
        let locked_ns = (DRIVER_ACQUISITIONS + events as u64) * costs.lock.event_ns;
        let hold_ns = locked_ns as f64 / DRIVER_ACQUISITIONS as f64 + costs.lock.handover_ns as f64 * rivals;
        let lock = &mut self.lanes[usize::from(lane)].lock;
        let done_ns = lock.hold(self.now_ns, DRIVER_ACQUISITIONS, hold_ns, rivals);
        self.duration_with_lock(done_ns, duration, hold_ns, rivals)
    }

    /// Returns the duration of a task that must wait for its lock.
    fn duration_with_lock(&mut self, done_ns: u64, duration: u64, hold_ns: f64, rivals: f64) -> u64 {
        let bound_ns = done_ns.saturating_sub(self.now_ns);
        if bound_ns <= duration {
            return duration;
        }
        let (shortest, longest) = self.world.costs.lock.sleep_ns;
        let sleeps = rivals * hold_ns > self.world.costs.lock.spin_ns_max as f64;
        bound_ns + if sleeps { self.random.between(shortest, longest) } else { 0 }
    }
}
