//! A lane: one connection of a channel, which is connected again when it is lost.
//!
//! ```text
//!                     a call comes              SETTINGS arrive
//!            ┌─► Idle ─────────────► Connecting ───────────────► Ready ─┐
//!            │                       ▲        │ all addresses failed    │ closed, lost,
//!            │          a call comes,│        ▼                         │ or got GOAWAY
//!            │       backoff is over └───── Failed                      │
//!            └──────────────────────────────────────────────────────────┘
//! ```

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use thalweg_balance::ConnectivityState;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::connecting::Connector;
use super::observers::{ConnectionObserver, LaneObserver};
use crate::connection::Connection;
use crate::executor::ThreadSlot;
use crate::registry;
use crate::snapshot::{LaneDetails, PeerCalls, SentCalls};
use crate::status::{Code, Status};

pub(crate) struct Lane {
    /// Unique in the process.
    pub(crate) id: u64,
    /// Number of lanes that its set had opened before.
    pub(super) ordinal: u64,
    /// Reason for opening.
    pub(crate) reason: String,
    pub(crate) opened_at: Instant,
    /// The set that the lane belongs to.
    observer: Weak<dyn LaneObserver>,
    connector: Arc<Connector>,
    /// Thread of its connection, if not the caller's.
    thread_slot: Option<ThreadSlot>,
    state: RwLock<State>,
    /// Wakes calls that wait for another state, in order of arrival. tokio's `watch` would wake them in random order,
    /// and a simulation would not replay.
    changed: Notify,
    /// Utilization in thousandths, or [`UNKNOWN`].
    busy_permille: AtomicU32,
    /// Number of the thread on which responses last arrived; 0 before the first.
    response_thread: AtomicU32,
    totals: Mutex<LaneTotals>,
    outage: Mutex<Outage>,
}

/// Totals of a lane's connections.
#[derive(Debug, Default)]
struct LaneTotals {
    /// Connections that are not over, in the order of their opening.
    connections: Vec<Arc<Connection>>,
    /// Calls of connections that are over.
    calls: SentCalls,
    /// The same by peer: at most [`PEERS_MAX`], in the order of their first connection's end.
    peers: Vec<PeerCalls>,
}

/// Maximum number of peers whose calls a lane remembers. A lane of a balanced channel has one. A lane of `pick_first`
/// has another one after each failover, for as long as the process runs.
const PEERS_MAX: usize = 16;

/// The failed attempts to connect since the last success.
#[derive(Debug, Default)]
struct Outage {
    failures: u32,
    /// Failures counted by the backoff.
    failures_of_backoff: u32,
    /// Time of the first failure, and the reason of the last one.
    failing_since: Option<(Instant, Status)>,
}

impl Outage {
    fn note_failure(&mut self, status: &Status) {
        self.failures = self.failures.saturating_add(1);
        self.failures_of_backoff = self.failures_of_backoff.saturating_add(1);
        let since = self.failing_since.take().map_or_else(Instant::now, |(since, _)| since);
        self.failing_since = Some((since, status.clone()));
    }
}

const UNKNOWN: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum State {
    Idle,
    Connecting,
    Ready(Arc<Connection>),
    Failed { status: Status, retry_at: Instant },
}

impl Lane {
    pub(super) fn new(
        ordinal: u64,
        reason: String,
        observer: Weak<dyn LaneObserver>,
        connector: Arc<Connector>,
    ) -> Self {
        let thread_slot = connector.connection.executor.as_ref().map(|executor| executor.reserve_slot());
        Self {
            id: registry::next_id(),
            ordinal,
            reason,
            opened_at: Instant::now(),
            observer,
            connector,
            thread_slot,
            state: RwLock::new(State::Idle),
            changed: Notify::new(),
            busy_permille: AtomicU32::new(UNKNOWN),
            response_thread: AtomicU32::new(0),
            totals: Mutex::default(),
            outage: Mutex::default(),
        }
    }

    /// Returns the connection, if there is one at the moment.
    pub(crate) fn ready(&self) -> Option<Arc<Connection>> {
        match &*self.state() {
            State::Ready(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Waits for the lane's connection, and makes one if necessary.
    ///
    /// # Errors
    /// UNAVAILABLE if connecting fails, or has failed and the backoff is not over yet; never with `wait_for_ready`.
    pub(super) async fn connection(
        self: &Arc<Self>,
        wait_for_ready: bool,
    ) -> Result<Arc<Connection>, Status> {
        loop {
            // Created before checking the state, so that later changes are not missed.
            let changed = self.changed.notified();
            let state = self.state().clone();
            match state {
                State::Ready(connection) => return Ok(connection),
                State::Idle => {
                    // A runtime that shuts down drops new tasks. Trying again would never end.
                    let is_dropped = self.start_connecting().is_some_and(|task| task.is_finished());
                    if is_dropped && matches!(&*self.state(), State::Idle) {
                        return Err(Status::local(
                            Code::Unavailable,
                            "failed to connect: the runtime of the call is shutting down",
                        ));
                    }
                }
                State::Connecting => {
                    changed.await;
                    // A call that saw the attempt fail fails with it, even if another call restarts it meanwhile.
                    if let State::Failed { status, .. } = &*self.state()
                        && !wait_for_ready
                    {
                        return Err(status.clone());
                    }
                }
                State::Failed { retry_at, .. } if retry_at <= Instant::now() => {
                    self.start_connecting();
                }
                State::Failed { status, .. } if !wait_for_ready => return Err(status),
                State::Failed { retry_at, .. } => tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(retry_at) => {}
                    () = changed => {}
                },
            }
        }
    }

    /// Gives up a connection that accepts no more calls. It closes after its last call; the next call makes another.
    pub(super) fn abandon(&self, connection: &Arc<Connection>) {
        let dismissed = self.change(|state| {
            let dismissed = matches!(state, State::Ready(current) if Arc::ptr_eq(current, connection));
            dismissed.then(|| *state = State::Idle)
        });
        if dismissed.is_some() {
            connection.lock().drain();
            let ended = connection.lock().ended().map(|status| status.message().to_owned());
            let why = ended.as_deref().unwrap_or("it accepts no more calls");
            let (channel, peer) = (&self.connector.addresses.target, &*connection.peer);
            tracing::debug!(%channel, lane = self.id, peer, why, "disconnected");
            self.connector.events.note(format!("disconnected from {peer}: {why}"));
        }
    }

    /// Like [`abandon`](Self::abandon), for the current connection.
    pub(super) fn dismiss(&self) -> Option<Arc<Connection>> {
        let connection = self.ready()?;
        shut_down(&connection);
        self.abandon(&connection);
        Some(connection)
    }

    /// Returns the lane's state and totals. `closes`: it accepts no more calls.
    pub(super) fn details(&self, closes: bool) -> LaneDetails {
        let totals = self.totals();
        let (mut calls, mut peers) = (totals.calls, totals.peers.clone());
        let connections = totals.connections.clone();
        drop(totals);
        for connection in &connections {
            let its_calls = connection.lock().traffic().sent_calls();
            calls += its_calls;
            PeerCalls::add(&mut peers, &connection.peer, its_calls.counts);
        }
        let sockets = connections.iter().map(|connection| connection.id).collect();
        let state = if closes { ConnectivityState::Shutdown } else { self.own_state() };
        let (SentCalls { counts: calls, last: last_call }, reason) = (calls, self.reason.clone());
        LaneDetails { id: self.id, state, reason, calls, last_call, peers, sockets }
    }

    /// Returns its connection of this number.
    pub(super) fn socket(&self, id: u64) -> Option<Arc<Connection>> {
        self.totals().connections.iter().find(|connection| connection.id == id).cloned()
    }

    fn totals(&self) -> MutexGuard<'_, LaneTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state at the moment.
    pub(crate) fn own_state(&self) -> ConnectivityState {
        match &*self.state() {
            State::Idle => ConnectivityState::Idle,
            State::Connecting => ConnectivityState::Connecting,
            State::Ready(_) => ConnectivityState::Ready,
            State::Failed { .. } => ConnectivityState::TransientFailure,
        }
    }

    /// Returns the state, with a failure that lasts until a connection is ready (gRFC A62).
    pub(super) fn connectivity(&self) -> ConnectivityState {
        match self.own_state() {
            ConnectivityState::Idle | ConnectivityState::Connecting if self.last_failure().is_some() => {
                ConnectivityState::TransientFailure
            }
            state => state,
        }
    }

    pub(super) fn is_failed(&self) -> bool {
        matches!(&*self.state(), State::Failed { .. })
    }

    /// Returns whether the lane may connect: it has no connection or running attempt, and no backoff to wait for.
    pub(super) fn is_due(&self) -> bool {
        match &*self.state() {
            State::Idle => true,
            State::Failed { retry_at, .. } => *retry_at <= Instant::now(),
            State::Connecting | State::Ready(_) => false,
        }
    }

    /// Returns the runtime of its connection: the channel's own thread's, or the caller's.
    pub(super) fn runtime(&self) -> Option<Handle> {
        self.thread_slot
            .as_ref()
            .map_or_else(|| Handle::try_current().ok(), |thread_slot| Some(thread_slot.runtime.clone()))
    }

    /// Returns the processor that its thread is pinned to.
    pub(super) fn cpu(&self) -> Option<usize> {
        self.thread_slot.as_ref().and_then(|thread_slot| thread_slot.cpu)
    }

    /// Returns the last known share of time that its driver was busy, in thousandths.
    pub(crate) fn busy_permille(&self) -> Option<u32> {
        let busy = self.busy_permille.load(Ordering::Relaxed);
        (busy != UNKNOWN).then_some(busy)
    }

    /// Returns the number of the thread on which its responses last arrived.
    #[inline]
    pub(super) fn response_thread(&self) -> u32 {
        self.response_thread.load(Ordering::Relaxed)
    }

    pub(super) fn set_busy(&self, share: Option<f64>) {
        let permille = share.map_or(UNKNOWN, |share| (share * 1000.0).clamp(0.0, 1000.0) as u32);
        self.busy_permille.store(permille, Ordering::Relaxed);
    }

    /// Starts an attempt in a task, which is returned, unless there is a connection or an attempt in progress.
    pub(super) fn start_connecting(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        let started = self.change(|state| {
            let may_start = matches!(state, State::Idle | State::Failed { .. });
            may_start.then(|| *state = State::Connecting)
        });
        started?;
        let attempt = Attempt { lane: Arc::clone(self), outcome: State::Idle };
        let runtime = self.runtime().expect("calls are made on a tokio runtime");
        let task = runtime.spawn(async move {
            let connector = &attempt.lane.connector;
            let lane: Weak<dyn ConnectionObserver> = Arc::<Lane>::downgrade(&attempt.lane);
            let status = match connector.connect(&lane).await {
                Ok(connection) => {
                    let (lane, peer) = (attempt.lane.id, &*connection.peer);
                    tracing::debug!(channel = %connector.addresses.target, lane, peer, "connected");
                    connector.events.note(format!("connected to {peer}"));
                    *attempt.lane.outage() = Outage::default();
                    return attempt.end(State::Ready(connection));
                }
                Err(status) => status,
            };
            let observer = attempt.lane.observer.clone();
            let (failures, of_backoff) = {
                let mut outage = attempt.lane.outage();
                outage.note_failure(&status);
                (outage.failures, outage.failures_of_backoff)
            };
            let retry_at = Instant::now() + connector.backoff_after(of_backoff);
            let (lane, why) = (attempt.lane.id, status.message());
            tracing::debug!(channel = %connector.addresses.target, lane, why, failures, "failed to connect");
            connector.events.note_failure(why);
            let lane = attempt.lane.id;
            attempt.end(State::Failed { status, retry_at });
            if observer.upgrade().is_some_and(|observer| observer.waits_for_backoff()) {
                sleep_until(retry_at).await;
                if let Some(observer) = observer.upgrade() {
                    observer.backoff_ended(lane);
                }
            }
        });
        Some(task)
    }

    /// Resets the backoff; the next attempt may start at once.
    pub(super) fn reset_backoff(&self) {
        self.outage().failures_of_backoff = 0;
        self.change(|state| match state {
            State::Failed { retry_at, .. } => {
                *retry_at = Instant::now();
                Some(())
            }
            State::Idle | State::Connecting | State::Ready(_) => None,
        });
    }

    /// Returns the number of failed attempts and the time of the next one, for messages; `None` if the last attempt
    /// has not failed.
    pub(super) fn failures(&self) -> Option<String> {
        let outage = self.outage();
        let (failures, (since, _)) = (outage.failures, outage.failing_since.as_ref()?);
        let since = since.elapsed();
        drop(outage);
        let next = match &*self.state() {
            State::Failed { retry_at, .. } => {
                let left = retry_at.saturating_duration_since(Instant::now());
                format!("next attempt in {}", seconds(left))
            }
            State::Idle | State::Connecting | State::Ready(_) => "another attempt is in progress".to_owned(),
        };
        Some(match failures {
            1 => next,
            _ => format!("{failures} attempts failed in {}, {next}", seconds(since)),
        })
    }

    /// Returns why the last attempt to connect failed, if it did.
    pub(super) fn last_failure(&self) -> Option<Status> {
        self.outage().failing_since.as_ref().map(|(_, status)| status.clone())
    }

    fn outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, unless `change` returns `None`.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> Option<T>) -> Option<T> {
        let changed = change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        if changed.is_some() {
            self.changed.notify_waiters();
            if let Some(observer) = self.observer.upgrade() {
                observer.refresh();
            }
        }
        changed
    }
}

/// Formats a duration for messages.
fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// An attempt to connect. It keeps its lane alive, so that a channel dropped meanwhile closes the new connection. It
/// never leaves the lane connecting, even if the task is dropped.
struct Attempt {
    lane: Arc<Lane>,
    outcome: State,
}

impl Attempt {
    fn end(mut self, outcome: State) {
        self.outcome = outcome;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, State::Idle);
        self.lane.change(|state| Some(std::mem::replace(state, outcome)));
    }
}

impl ConnectionObserver for Lane {
    fn lost(&self, connection: &Arc<Connection>) {
        self.abandon(connection);
    }

    fn responses_moved_to(&self, thread: u32) {
        self.response_thread.store(thread, Ordering::Relaxed);
    }

    fn opened(&self, connection: &Arc<Connection>) {
        self.totals().connections.push(Arc::clone(connection));
    }

    fn ended(&self, connection: &Arc<Connection>) {
        let calls = connection.lock().traffic().sent_calls();
        let mut totals = self.totals();
        totals.connections.retain(|other| !Arc::ptr_eq(other, connection));
        totals.calls += calls;
        PeerCalls::add(&mut totals.peers, &connection.peer, calls.counts);
        if totals.peers.len() > PEERS_MAX {
            totals.peers.remove(0);
        }
    }
}

impl Drop for Lane {
    /// The connection closes after its last call.
    fn drop(&mut self) {
        if let Some(connection) = self.ready() {
            shut_down(&connection);
            connection.lock().drain();
        }
        let calls = self.details(true).sent_calls();
        *self.connector.calls.lock().unwrap_or_else(PoisonError::into_inner) += calls;
    }
}

/// Notes that the channel shuts the connection down.
fn shut_down(connection: &Connection) {
    connection.measure.note_shutdown();
    connection.measure.disconnected();
}
