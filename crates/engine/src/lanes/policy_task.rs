//! Samples a channel's lanes periodically, and applies the decisions of the lane policy.
//!
//! The task runs only while there is activity: once its interval is over, activity on a lane wakes it. An idle channel
//! without surplus lanes has no timer.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use thalweg_lanes::{
    Decision, LaneSample, LaneState, Policy, PolicyConfig, Samples, Trial, distribute_waiting,
};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::lane::Lane;
use crate::connection::{Connection, StreamWaitQueue, TIMED_EACH_MAX};
use crate::scheduler::Load;

/// Interval of samples on a channel without activity, while it may have lanes to close.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The lanes managed by the task.
pub(crate) trait LaneControl: Send + Sync {
    /// Returns the connections that accept calls.
    fn connections(&self) -> Vec<Arc<Connection>>;

    /// Returns the queue of calls that wait for a free stream.
    fn queue(&self) -> &StreamWaitQueue;

    /// Returns the open lanes and the closing ones. Forgets those that are over.
    fn list(&self) -> (Vec<Arc<Lane>>, Vec<Closing>);

    /// Opens and connects `count` more lanes.
    fn open(&self, count: usize, reason: &str);

    /// Logs the result of a trial, which determines the next lanes to open or close.
    fn note_trial(&self, trial: &Trial);

    /// Closes lanes after their last call; they accept no more calls. The last lane stays.
    fn close(&self, ids: &[u64], reason: &str);
}

/// A closing lane with calls left.
#[derive(Clone)]
pub(crate) struct Closing {
    pub(crate) lane: Arc<Lane>,
    pub(crate) connection: Arc<Connection>,
    /// Reason for closing.
    pub(crate) reason: String,
}

/// Runs the one task that manages a channel's lanes.
#[derive(Debug)]
pub(super) struct PolicyTask {
    config: PolicyConfig,
    /// In place of the one in `config`: it changes with the number of endpoints.
    cap: Arc<AtomicUsize>,
    is_running: Arc<AtomicBool>,
    /// Triggers a sample without activity.
    resume: Arc<Notify>,
}

impl PolicyTask {
    pub(super) fn new(config: PolicyConfig) -> Self {
        let cap = Arc::new(AtomicUsize::new(config.cap));
        Self { config, cap, is_running: Arc::default(), resume: Arc::default() }
    }

    /// Changes the maximum number of lanes. The task closes lanes beyond it.
    pub(super) fn set_cap(&self, cap: usize) {
        if self.cap.swap(cap, Ordering::Relaxed) != cap {
            self.sample_now();
        }
    }

    /// Triggers a sample for a cause other than activity: a call waits for a stream.
    pub(super) fn sample_now(&self) {
        self.resume.notify_one();
    }

    /// Starts the task if it does not run: the first time, and after its runtime has ended. `context` returns the
    /// runtime, if any, and the lanes.
    pub(super) fn ensure_running(&self, context: impl FnOnce() -> Option<(Handle, Weak<dyn LaneControl>)>) {
        if self.config.floor == self.cap.load(Ordering::Relaxed) && !self.is_running.load(Ordering::Relaxed) {
            return;
        }
        if self.is_running.load(Ordering::Relaxed) {
            return self.sample_now();
        }
        let Some((runtime, lanes)) = context() else { return };
        if self.is_running.swap(true, Ordering::Relaxed) {
            return;
        }
        let running = Running(Arc::clone(&self.is_running));
        let state = TaskState {
            lanes,
            resume: Arc::clone(&self.resume),
            cap: Arc::clone(&self.cap),
            policy: Policy::new(self.config),
            tick: Duration::from_millis(self.config.tick_ms),
            floor: self.config.floor,
            started_at: Instant::now(),
            last_samples: Vec::new(),
        };
        runtime.spawn(async move {
            state.run().await;
            drop(running);
        });
    }
}

impl Drop for PolicyTask {
    fn drop(&mut self) {
        self.resume.notify_one();
    }
}

/// Marks the task as running until dropped.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// State of the task.
struct TaskState {
    lanes: Weak<dyn LaneControl>,
    resume: Arc<Notify>,
    cap: Arc<AtomicUsize>,
    policy: Policy,
    tick: Duration,
    floor: usize,
    started_at: Instant,
    /// The last sample of each connection.
    last_samples: Vec<ConnectionSample>,
}

/// Totals of a connection at a sample.
struct ConnectionSample {
    connection: Arc<Connection>,
    load: Load,
    streaming_calls: usize,
    contended: u64,
}

/// Minimum number of calls timed per interval; with fewer calls all are timed.
const TIMED_CALLS_MIN: u64 = 64;

impl ConnectionSample {
    fn now(connection: &Arc<Connection>) -> Self {
        let state = connection.lock();
        let (load, streaming_calls) = (state.load, state.streaming_calls());
        drop(state);
        Self { connection: Arc::clone(connection), load, streaming_calls, contended: connection.contended() }
    }
}

impl TaskState {
    async fn run(mut self) {
        let mut last = Instant::now();
        loop {
            let Some(lanes) = self.lanes.upgrade() else { return };
            let now = Instant::now();
            let samples = self.sample(&*lanes, now - last);
            let has_too_many = samples.lanes.len() > self.floor;
            last = now;
            self.policy.set_cap(self.cap.load(Ordering::Relaxed));
            let decision = self.policy.decide(&samples, now - self.started_at);
            if let Some(trial) = self.policy.take_trial() {
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

    /// Waits for activity, at `from` or later.
    ///
    /// It uses no timer: with one, an idle thread would look up the next expiry each time it goes to sleep, at a
    /// measurable cost per call.
    async fn next_tick(&self, from: Instant, has_too_many: bool) {
        loop {
            let mut notified = pin!(self.resume.notified());
            let Some(lanes) = self.lanes.upgrade() else { return };
            let connections = lanes.connections();
            let is_waited_for = !lanes.queue().is_empty();
            drop(lanes);
            if is_waited_for {
                // There may be no activity on any lane until another is opened.
                return sleep_until(from).await;
            }
            let mut is_watching = false;
            let moves = poll_fn(|cx| {
                let is_notified = notified.as_mut().poll(cx).is_ready();
                if is_notified || (is_watching && Instant::now() >= from) {
                    return Poll::Ready(());
                }
                is_watching = true;
                for connection in &connections {
                    let mut watcher = Some((from, cx.waker().clone()));
                    // The previous watcher is dropped without the lock.
                    std::mem::swap(&mut connection.lock().watcher, &mut watcher);
                }
                Poll::Pending
            });
            if !has_too_many {
                moves.await;
            } else if timeout(IDLE_INTERVAL, moves).await.is_err() {
                // The policy must see a sample without activity.
                return;
            }
            // An earlier notification means that the set of lanes has changed, or that a call waits.
            if Instant::now() >= from {
                return;
            }
        }
    }

    /// Returns what the lanes have done since the last sample.
    fn sample(&mut self, lanes: &dyn LaneControl, interval: Duration) -> Samples {
        let (open, closing) = lanes.list();
        let before = std::mem::take(&mut self.last_samples);
        let seconds = interval.as_secs_f64().max(1e-9);
        let mut sample = |lane: &Arc<Lane>, connection: Option<Arc<Connection>>, state: LaneState| {
            let Some(connection) = connection else {
                lane.set_busy(None);
                return LaneSample { id: lane.id, ..LaneSample::default() };
            };
            let current = ConnectionSample::now(&connection);
            let before = before.iter().find(|before| Arc::ptr_eq(&before.connection, &connection));
            let (load, contended) = match before {
                Some(before) => (current.load.since(&before.load), current.contended - before.contended),
                None => (current.load, current.contended),
            };
            let timed_each = (load.responses / TIMED_CALLS_MIN).clamp(1, u64::from(TIMED_EACH_MAX)) as u32;
            connection.lock().timed_each = 1 << timed_each.ilog2();
            lane.set_busy(Some(load.busy_ns as f64 / 1e9 / seconds));
            let sample = LaneSample {
                id: lane.id,
                state,
                busy: Duration::from_nanos(load.busy_ns),
                completed: load.completed,
                in_flight: connection.in_flight(),
                in_flight_mean: load.mean_unary_in_flight(seconds) + current.streaming_calls as f64,
                write_delay: load.mean_wait(),
                flow_blocked: Duration::from_nanos(load.blocked_ns),
                contended,
                round_trip: connection.round_trip(),
                ..LaneSample::default()
            };
            self.last_samples.push(current);
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
        distribute_waiting(lanes.queue().len(), &mut samples.lanes);
        samples
    }
}
