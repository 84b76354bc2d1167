//! A lane's lock: callers on several cores encode under it, and the lane's driver takes it, too.
//!
//! ```text
//!   a call:    opens a stream ── takes its answer        held twice for call_ns
//!   a driver:  3 times a batch, and once for a read      held for event_ns, and as long for each event
//! ```
//!
//! Others who want the lock are counted by their share of time (`rivals`): the tasks of callers that run now, each with
//! the share of its time that it holds a lock, over the lanes that calls are spread over. A lock is not free at once in
//! `rivals / (1 + rivals)` of the cases. It is held longer by `handover_ns` for each rival, since each of them pulls
//! the line of the cache towards its core (the coherence term of the Universal Scalability Law). And what is done under
//! it is done one after the other: who comes last waits for all (a queue with one server).
//!
//! **Example.** `call_ns` 200 and `caller_ns` 700, so 400 of a caller's 700 ns are under a lock. On 16 cores with one
//! lane there are 15 × 0.57 = 8.6 rivals; at 40 ns each a hold takes 200 + 343 = 543 ns, and the lane moves at most
//! 1 / (2 × 543 ns) = 0.92 M calls/s however many cores call, where one core moves 1.4 M. With four lanes there are 2.1
//! rivals, a hold takes 286 ns, and all lanes together permit 4 / (2 × 286 ns) = 7.0 M calls/s. Drivers come on top.

use super::Model;
use super::costs::Costs;

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct LockCosts {
    /// A call holds the lock so long when it opens a stream, and again when it takes its answer; part of `caller_ns`.
    /// Zero: nothing is ever contended.
    pub(super) call_ns: u64,
    /// The driver, each time and each event; part of its costs of a call.
    pub(super) event_ns: u64,
    /// What a rival adds to each hold.
    pub(super) handover_ns: u64,
    /// Who waits for longer sleeps, and needs so long to be woken: the shortest and the longest.
    pub(super) spin_ns_max: u64,
    pub(super) sleep_ns: (u64, u64),
}

pub(super) const NO_LOCK: LockCosts =
    LockCosts { call_ns: 0, event_ns: 0, handover_ns: 0, spin_ns_max: 0, sleep_ns: (0, 1) };

/// Takings of the lock: of a call, and of a driver's poll.
const CALL_TAKES: u64 = 2;
const DRIVER_TAKES: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct Lock {
    /// When all who hold it or wait for it are done.
    free_ns: u64,
    /// How often it was not free at once.
    contended: f64,
}

impl Lock {
    /// Since this was last asked.
    pub(super) fn take_contended(&mut self) -> u64 {
        let whole = self.contended as u64;
        self.contended -= whole as f64;
        whole
    }

    /// Takes it so often, for so long each time; says when the last is done.
    fn hold(&mut self, now_ns: u64, takes: u64, hold_ns: f64, rivals: f64) -> u64 {
        self.contended += takes as f64 * rivals / (1.0 + rivals);
        self.free_ns = self.free_ns.max(now_ns) + (takes as f64 * hold_ns) as u64;
        self.free_ns
    }
}

impl Costs {
    /// The share of a running caller's time that it holds a lock.
    fn caller_lock_share(&self) -> f64 {
        (CALL_TAKES * self.lock.call_ns) as f64 / self.caller_ns as f64
    }

    /// The same of a driver.
    fn driver_lock_share(&self) -> f64 {
        let call_ns = self.client_send_ns + self.client_receive_ns;
        (2 * self.lock.event_ns) as f64 / call_ns as f64
    }
}

impl Model {
    /// How long a task of callers takes with the locks of its lanes, if it would take `duration` by itself.
    pub(super) fn lock_as_callers(&mut self, calls: usize, duration: u64) -> u64 {
        let others = self.callers_running;
        self.callers_running += 1;
        let costs = self.world.costs;
        let lanes = self.taking.len();
        if costs.lock.call_ns == 0 {
            return duration;
        }
        let callers = others as f64 * costs.caller_lock_share() / lanes as f64;
        let driven = |lane: usize| f64::from(u8::from(self.lanes[lane].client.scheduled));
        let drivers = self.taking.iter().map(|&lane| driven(lane)).sum::<f64>() / lanes as f64;
        let rivals = callers + drivers * costs.driver_lock_share();
        let hold_ns = costs.lock.call_ns as f64 + costs.lock.handover_ns as f64 * rivals;
        let mut done_ns = 0;
        for nth in 0..calls.min(lanes) {
            let lane = self.taking[(self.last + nth) % lanes];
            let takes = CALL_TAKES * (calls / lanes + usize::from(nth < calls % lanes)) as u64;
            done_ns = done_ns.max(self.lanes[lane].lock.hold(self.now_ns, takes, hold_ns, rivals));
        }
        self.waited(done_ns, duration, hold_ns, rivals)
    }

    /// The same of a driver's poll with so many events.
    pub(super) fn lock_as_driver(&mut self, lane: u16, events: usize, duration: u64) -> u64 {
        let costs = self.world.costs;
        if costs.lock.call_ns == 0 || events == 0 {
            return duration;
        }
        let lanes = self.taking.len();
        let rivals = self.callers_running as f64 * costs.caller_lock_share() / lanes as f64;
        let held_ns = (DRIVER_TAKES + events as u64) * costs.lock.event_ns;
        let hold_ns = held_ns as f64 / DRIVER_TAKES as f64 + costs.lock.handover_ns as f64 * rivals;
        let lock = &mut self.lanes[usize::from(lane)].lock;
        let done_ns = lock.hold(self.now_ns, DRIVER_TAKES, hold_ns, rivals);
        self.waited(done_ns, duration, hold_ns, rivals)
    }

    /// What a task takes that is not done before its lock is.
    fn waited(&mut self, done_ns: u64, duration: u64, hold_ns: f64, rivals: f64) -> u64 {
        let bound_ns = done_ns.saturating_sub(self.now_ns);
        if bound_ns <= duration {
            return duration;
        }
        let (shortest, longest) = self.world.costs.lock.sleep_ns;
        let sleeps = rivals * hold_ns > self.world.costs.lock.spin_ns_max as f64;
        bound_ns + if sleeps { self.random.between(shortest, longest) } else { 0 }
    }
}
