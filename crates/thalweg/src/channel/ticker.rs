//! Takes samples of a channel's lanes from time to time, and does what the policy makes of them.
//!
//! It runs only while there is something to see: over an idle channel with no lane too many no timer runs.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::lane::Lane;
use super::lane_set::LaneSet;
use super::policy::{Decision, LaneSample, LaneState, Policy, PolicyConfig, Samples};
use crate::connection::{Connection, Load};

/// A channel on which nothing moved for so many ticks in a row is idle.
const IDLE_TICKS: u32 = 20;
/// How often an idle channel is looked at that may have lanes to close.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The place of the one task that looks after a channel.
#[derive(Debug)]
pub(super) struct Ticker {
    config: PolicyConfig,
    is_running: Arc<AtomicBool>,
    /// Ends the sleep over an idle channel.
    resume: Arc<Notify>,
}

impl Ticker {
    pub(super) fn new(config: PolicyConfig) -> Self {
        Self { config, is_running: Arc::default(), resume: Arc::default() }
    }

    /// Starts the task if it does not run: the first time, and after the end of the runtime on which it ran.
    pub(super) fn ensure_running(&self, set: &LaneSet) {
        if self.config.floor == self.config.cap {
            return;
        }
        if self.is_running.load(Ordering::Relaxed) {
            return self.resume.notify_one();
        }
        let Some(runtime) = set.runtime() else { return };
        if self.is_running.swap(true, Ordering::Relaxed) {
            return;
        }
        let running = Running(Arc::clone(&self.is_running));
        let watch = Watch {
            set: set.weak(),
            resume: Arc::clone(&self.resume),
            policy: Policy::new(self.config),
            tick: Duration::from_millis(self.config.tick_ms),
            floor: self.config.floor,
            began: Instant::now(),
            seen: Vec::new(),
        };
        runtime.spawn(async move {
            watch.run().await;
            drop(running);
        });
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.resume.notify_one();
    }
}

/// Says that the task runs, for as long as it does.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The task's own.
struct Watch {
    set: Weak<LaneSet>,
    resume: Arc<Notify>,
    policy: Policy,
    tick: Duration,
    floor: usize,
    began: Instant,
    /// The last look at each connection.
    seen: Vec<Seen>,
}

/// What a connection had done so far.
struct Seen {
    connection: Arc<Connection>,
    activity: u64,
    load: Load,
    contended: u64,
}

impl Seen {
    fn now(connection: &Arc<Connection>) -> Self {
        let state = connection.lock();
        let (activity, load) = (state.activity, state.load);
        drop(state);
        Self { connection: Arc::clone(connection), activity, load, contended: connection.contended() }
    }
}

impl Watch {
    async fn run(mut self) {
        let mut last = Instant::now();
        let mut idle_ticks = 0;
        loop {
            if idle_ticks < IDLE_TICKS {
                sleep(self.tick).await;
            } else {
                self.sleep_over_idle().await;
            }
            let Some(set) = self.set.upgrade() else { return };
            let now = Instant::now();
            let (samples, is_idle) = self.sample(&set, now - last);
            last = now;
            idle_ticks = if is_idle { idle_ticks.saturating_add(1) } else { 0 };
            match self.policy.decide(&samples, now - self.began) {
                Decision::Keep => {}
                Decision::Open { count, reason } => set.open(count, &reason.to_string()),
                Decision::Close { lanes, reason } => set.close(&lanes, &reason.to_string()),
            }
        }
    }

    /// Sleeps until something moves; where lanes may have to be closed, not for long.
    async fn sleep_over_idle(&self) {
        let (seen, resume) = (&self.seen, pin_notified(&self.resume));
        let mut resume = resume;
        let moved = poll_fn(|cx| {
            if resume.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            for seen in seen {
                let mut state = seen.connection.lock();
                if state.activity != seen.activity {
                    return Poll::Ready(());
                }
                state.watcher = Some(cx.waker().clone());
            }
            Poll::Pending
        });
        if self.seen.len() > self.floor {
            // Elapsed: nothing has moved, which the policy is to hear.
            let _ = timeout(IDLE_INTERVAL, moved).await;
        } else {
            moved.await;
        }
    }

    /// What the lanes have done since the last time, and whether that is nothing.
    fn sample(&mut self, set: &LaneSet, interval: Duration) -> (Samples, bool) {
        let (lanes, closing) = set.list();
        let before = std::mem::take(&mut self.seen);
        let mut is_idle = true;
        let mut look = |lane: &Arc<Lane>, connection: Option<Arc<Connection>>, state: LaneState| {
            let Some(connection) = connection else {
                lane.set_busy(None);
                return LaneSample { id: lane.id, ..LaneSample::default() };
            };
            let seen = Seen::now(&connection);
            let before = before.iter().find(|before| Arc::ptr_eq(&before.connection, &connection));
            let (load, contended) = match before {
                Some(before) => (seen.load.since(&before.load), seen.contended - before.contended),
                None => (seen.load, seen.contended),
            };
            let in_flight = connection.in_flight();
            is_idle &= in_flight == 0 && before.is_some_and(|before| before.activity == seen.activity);
            lane.set_busy(Some(load.busy.as_secs_f64() / interval.as_secs_f64().max(1e-9)));
            self.seen.push(seen);
            LaneSample {
                id: lane.id,
                state,
                busy: load.busy,
                completed: load.completed,
                in_flight,
                write_delay: load.mean_wait(),
                flow_blocked: load.blocked,
                contended,
                bytes: load.bytes,
                ..LaneSample::default()
            }
        };
        let mut samples = Samples { interval, lanes: Vec::with_capacity(lanes.len() + closing.len()) };
        for lane in &lanes {
            let connection = lane.ready();
            let state = if connection.is_some() { LaneState::Ready } else { LaneState::Connecting };
            samples.lanes.push(look(lane, connection, state));
        }
        for closing in &closing {
            let connection = Arc::clone(&closing.connection);
            samples.lanes.push(look(&closing.lane, Some(connection), LaneState::Draining));
        }
        share_waiting(set.line().len(), &mut samples.lanes);
        (samples, is_idle)
    }
}

/// Calls that wait for a stream wait for any lane: each that takes calls is given its share of them.
fn share_waiting(waiting: usize, lanes: &mut [LaneSample]) {
    let count = lanes.iter().filter(|lane| lane.state == LaneState::Ready).count();
    let ready = lanes.iter_mut().filter(|lane| lane.state == LaneState::Ready);
    for (place, lane) in ready.enumerate() {
        let share = waiting / count + usize::from(place < waiting % count);
        lane.waiting_for_stream = share;
        lane.in_flight += share;
    }
}

fn pin_notified(notify: &Notify) -> std::pin::Pin<Box<tokio::sync::futures::Notified<'_>>> {
    Box::pin(notify.notified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_wait_are_shared_by_the_lanes_that_take_calls() {
        use LaneState::{Connecting, Draining, Ready};

        let check = |waiting, states: &[LaneState], expected: &[usize]| {
            let lane = |&state| LaneSample { state, ..LaneSample::default() };
            let mut lanes: Vec<_> = states.iter().map(lane).collect();
            share_waiting(waiting, &mut lanes);
            let shares: Vec<_> = lanes.iter().map(|lane| lane.waiting_for_stream).collect();
            assert_eq!(shares, expected, "{waiting} over {states:?}");
        };
        check(7, &[Ready, Ready, Ready], &[3, 2, 2]);
        check(7, &[Connecting, Ready, Draining, Ready], &[0, 4, 0, 3]);
        check(1, &[Ready, Ready], &[1, 0]);
        check(5, &[Connecting], &[0]);
        check(0, &[Ready], &[0]);
    }
}
