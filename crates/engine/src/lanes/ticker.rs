//! Takes samples of a channel's lanes from time to time, and does what the policy makes of them.
//!
//! It runs only while there is something to see: what moves on a lane wakes it, once its time has come. Over an idle
//! channel with no lane too many no timer runs.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use thalweg_lanes::{Decision, LaneSample, LaneState, Policy, PolicyConfig, Samples, Trial, share_waiting};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::lane::Lane;
use crate::connection::{Connection, StreamWaitQueue, TIMED_EACH_MAX};
use crate::scheduler::Load;

/// How often samples are taken of a channel on which nothing moves, while it may have lanes to close.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The lanes that are looked after.
pub(crate) trait Tended: Send + Sync {
    /// The connections that take calls.
    fn connections(&self) -> Vec<Arc<Connection>>;

    /// The calls that wait for a free stream.
    fn queue(&self) -> &StreamWaitQueue;

    /// All lanes, and those that close; which were over is forgotten.
    fn list(&self) -> (Vec<Arc<Lane>>, Vec<Closing>);

    /// Opens `count` lanes more, and connects them.
    fn open(&self, count: usize, reason: &str);

    /// Says what a trial has shown: what is opened or closed next follows from it.
    fn note_trial(&self, trial: &Trial);

    /// Lets lanes take no more calls, and close when their last one has ended. The last lane stays.
    fn close(&self, ids: &[u64], reason: &str);
}

/// A lane that was told to close, while calls are left on it.
#[derive(Clone)]
pub(crate) struct Closing {
    pub(crate) lane: Arc<Lane>,
    pub(crate) connection: Arc<Connection>,
    /// Why it closes.
    pub(crate) reason: String,
}

/// Has the one task that looks after a channel's lanes run.
#[derive(Debug)]
pub(super) struct Ticker {
    config: PolicyConfig,
    is_running: Arc<AtomicBool>,
    /// Has it take a sample though nothing moves.
    resume: Arc<Notify>,
}

impl Ticker {
    pub(super) fn new(config: PolicyConfig) -> Self {
        Self { config, is_running: Arc::default(), resume: Arc::default() }
    }

    /// There is something to see which moves nothing: a call waits for a stream.
    pub(super) fn sample_now(&self) {
        self.resume.notify_one();
    }

    /// Starts the task if it does not run: the first time, and after the end of the runtime on which it ran.
    /// `ask` says where it is to run, if anywhere, and over which lanes.
    pub(super) fn ensure_running(&self, ask: impl FnOnce() -> Option<(Handle, Weak<dyn Tended>)>) {
        if self.config.floor == self.config.cap {
            return;
        }
        if self.is_running.load(Ordering::Relaxed) {
            return self.sample_now();
        }
        let Some((runtime, lanes)) = ask() else { return };
        if self.is_running.swap(true, Ordering::Relaxed) {
            return;
        }
        let running = Running(Arc::clone(&self.is_running));
        let watch = Watch {
            lanes,
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
    lanes: Weak<dyn Tended>,
    resume: Arc<Notify>,
    policy: Policy,
    tick: Duration,
    floor: usize,
    began: Instant,
    /// What the last sample saw of each connection.
    seen: Vec<Seen>,
}

/// What a connection had done so far.
struct Seen {
    connection: Arc<Connection>,
    load: Load,
    streaming_calls: usize,
    contended: u64,
}

/// So many calls of an interval are timed, or all of fewer.
const TIMED_CALLS_MIN: u64 = 64;

impl Seen {
    fn now(connection: &Arc<Connection>) -> Self {
        let state = connection.lock();
        let (load, streaming_calls) = (state.load, state.streaming_calls());
        drop(state);
        Self { connection: Arc::clone(connection), load, streaming_calls, contended: connection.contended() }
    }
}

impl Watch {
    async fn run(mut self) {
        let mut last = Instant::now();
        loop {
            let Some(lanes) = self.lanes.upgrade() else { return };
            let now = Instant::now();
            let samples = self.sample(&*lanes, now - last);
            let has_too_many = samples.lanes.len() > self.floor;
            last = now;
            let decision = self.policy.decide(&samples, now - self.began);
            if let Some(trial) = self.policy.ended_trial() {
                lanes.note_trial(&trial);
            }
            match decision {
                Decision::Keep => {}
                Decision::Open { count, reason } => lanes.open(count, &reason.to_string()),
                Decision::Close { lanes: ids, reason } => lanes.close(&ids, &reason.to_string()),
            }
            drop(lanes);
            self.next_tick(now + self.tick, has_too_many).await;
        }
    }

    /// Waits until something moves, at `from` or later.
    ///
    /// There is no timer for that: with one, a thread that has nothing to do would look for the next time to wake up
    /// whenever it goes to sleep, which is a part of a call's cost that can be seen.
    async fn next_tick(&self, from: Instant, has_too_many: bool) {
        loop {
            let mut told = pin!(self.resume.notified());
            let Some(lanes) = self.lanes.upgrade() else { return };
            let connections = lanes.connections();
            let is_waited_for = !lanes.queue().is_empty();
            drop(lanes);
            if is_waited_for {
                // Nothing may move on any lane until there is another.
                return sleep_until(from).await;
            }
            let mut is_watching = false;
            let moves = poll_fn(|cx| {
                let is_told = told.as_mut().poll(cx).is_ready();
                if is_told || (is_watching && Instant::now() >= from) {
                    return Poll::Ready(());
                }
                is_watching = true;
                for connection in &connections {
                    let mut watcher = Some((from, cx.waker().clone()));
                    // The one before is dropped without the lock.
                    std::mem::swap(&mut connection.lock().watcher, &mut watcher);
                }
                Poll::Pending
            });
            if !has_too_many {
                moves.await;
            } else if timeout(IDLE_INTERVAL, moves).await.is_err() {
                // Nothing has moved, which the policy is to hear.
                return;
            }
            // Before that time it was told that the lanes are others, or that a call waits.
            if Instant::now() >= from {
                return;
            }
        }
    }

    /// What the lanes have done since the last time.
    fn sample(&mut self, tended: &dyn Tended, interval: Duration) -> Samples {
        let (open, closing) = tended.list();
        let before = std::mem::take(&mut self.seen);
        let seconds = interval.as_secs_f64().max(1e-9);
        let mut sample = |lane: &Arc<Lane>, connection: Option<Arc<Connection>>, state: LaneState| {
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
            let timed_each = (load.answered / TIMED_CALLS_MIN).clamp(1, u64::from(TIMED_EACH_MAX)) as u32;
            connection.lock().timed_each = 1 << timed_each.ilog2();
            lane.set_busy(Some(load.busy_ns as f64 / 1e9 / seconds));
            let sample = LaneSample {
                id: lane.id,
                state,
                busy: Duration::from_nanos(load.busy_ns),
                completed: load.completed,
                in_flight: connection.in_flight(),
                in_flight_mean: load.mean_unary_in_flight(seconds) + seen.streaming_calls as f64,
                write_delay: load.mean_wait(),
                flow_blocked: Duration::from_nanos(load.blocked_ns),
                contended,
                round_trip: connection.round_trip(),
                ..LaneSample::default()
            };
            self.seen.push(seen);
            sample
        };
        let mut samples = Samples { interval, lanes: Vec::with_capacity(open.len() + closing.len()) };
        for lane in &open {
            let connection = lane.ready();
            let state = if connection.is_some() { LaneState::Ready } else { LaneState::Connecting };
            samples.lanes.push(sample(lane, connection, state));
        }
        for closing in &closing {
            let connection = Arc::clone(&closing.connection);
            samples.lanes.push(sample(&closing.lane, Some(connection), LaneState::Draining));
        }
        share_waiting(tended.queue().len(), &mut samples.lanes);
        samples
    }
}
