//! A lane: one connection's place in a channel, through all its connecting, breaking and connecting again.
//!
//! ```text
//!                     a call comes              SETTINGS arrive
//!            ┌─► Idle ─────────────► Connecting ───────────────► Ready ─┐
//!            │                       ▲        │ all addresses failed    │ closed, lost,
//!            │          a call comes,│        ▼                         │ or told GOAWAY
//!            │       backoff is over └───── Failed                      │
//!            └──────────────────────────────────────────────────────────┘
//! ```

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::Status;

use super::backoff;
use super::connect::Connector;
use crate::connection::Connection;
use crate::executor::Seat;

#[derive(Debug)]
pub(crate) struct Lane {
    connector: Arc<Connector>,
    /// Where it connects and its connection runs, if not where the call runs that asks for it.
    seat: Option<Seat>,
    state: RwLock<State>,
    /// Calls that wait for another state. They go on in the order of their coming: with tokio's `watch` it would be a
    /// random one, and a simulation would not replay.
    changed: Notify,
}

#[derive(Clone, Debug)]
enum State {
    Idle,
    Connecting,
    Ready(Arc<Connection>),
    /// `attempt` counts failures in a row.
    Failed {
        status: Status,
        attempt: u32,
        retry_at: Instant,
    },
}

impl Lane {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        let seat = connector.connection.executor.as_ref().map(|executor| executor.seat());
        Self { connector, seat, state: RwLock::new(State::Idle), changed: Notify::new() }
    }

    /// The connection, if there is one at this moment.
    pub(crate) fn ready(&self) -> Option<Arc<Connection>> {
        match &*self.state() {
            State::Ready(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Waits for the lane's connection, making one if need be.
    ///
    /// # Errors
    /// UNAVAILABLE when connecting fails, or has failed and is not to be tried again yet; with `wait_for_ready`
    /// never.
    pub(crate) async fn connection(
        self: &Arc<Self>,
        wait_for_ready: bool,
    ) -> Result<Arc<Connection>, Status> {
        loop {
            // Made before the look at the state: a change after it is not missed.
            let changed = self.changed.notified();
            let state = self.state().clone();
            match state {
                State::Ready(connection) => return Ok(connection),
                State::Idle => self.start_connecting(),
                State::Connecting => {
                    changed.await;
                    // A call that saw the attempt fail fails with it, even if another one restarts it meanwhile.
                    if let State::Failed { status, .. } = &*self.state()
                        && !wait_for_ready
                    {
                        return Err(status.clone());
                    }
                }
                State::Failed { retry_at, .. } if retry_at <= Instant::now() => self.start_connecting(),
                State::Failed { status, .. } if !wait_for_ready => return Err(status),
                State::Failed { retry_at, .. } => tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(retry_at) => {}
                    () = changed => {}
                },
            }
        }
    }

    /// The connection can take no more calls: the next one makes another, and it closes when its last call has ended.
    pub(crate) fn lost(&self, connection: &Arc<Connection>) {
        let dismissed = self.change(|state| {
            let dismissed = matches!(state, State::Ready(current) if Arc::ptr_eq(current, connection));
            dismissed.then(|| *state = State::Idle)
        });
        if dismissed.is_some() {
            drain(connection);
        }
    }

    pub(crate) fn state_name(&self) -> &'static str {
        match &*self.state() {
            State::Idle => "IDLE",
            State::Connecting => "CONNECTING",
            State::Ready(_) => "READY",
            State::Failed { .. } => "TRANSIENT_FAILURE",
        }
    }

    /// Connects, unless there is a connection, or an attempt under way, or a failure too young to try again.
    pub(crate) fn connect_if_due(self: &Arc<Self>) {
        let is_due = match &*self.state() {
            State::Idle => true,
            State::Failed { retry_at, .. } => *retry_at <= Instant::now(),
            State::Connecting | State::Ready(_) => false,
        };
        if is_due {
            self.start_connecting();
        }
    }

    fn start_connecting(self: &Arc<Self>) {
        let begun = self.change(|state| {
            let failures = match state {
                State::Idle => 0,
                State::Failed { attempt, .. } => *attempt,
                State::Connecting | State::Ready(_) => return None,
            };
            *state = State::Connecting;
            Some(failures)
        });
        let Some(failures) = begun else { return };
        let attempt = Attempt { lane: Arc::clone(self), outcome: State::Idle };
        let runtime = self.seat.as_ref().map_or_else(Handle::current, |seat| seat.runtime.clone());
        runtime.spawn(async move {
            let connector = &attempt.lane.connector;
            let outcome = match connector.connect().await {
                Ok(connection) => State::Ready(connection),
                Err(status) => {
                    let attempt = failures.saturating_add(1);
                    let pause = backoff::pause(attempt, (connector.jitter)());
                    State::Failed { status, attempt, retry_at: Instant::now() + pause }
                }
            };
            attempt.end(outcome);
        });
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, or leaves it as it is and says `None`.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> Option<T>) -> Option<T> {
        let changed = change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        if changed.is_some() {
            self.changed.notify_waiters();
        }
        changed
    }
}

/// An attempt to connect. It keeps its lane alive, so that a channel which is dropped meanwhile closes the connection that
/// comes of it; and it never leaves the lane connecting, whatever becomes of the task.
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

impl Drop for Lane {
    /// Calls under way go on; the connection closes after the last of them.
    fn drop(&mut self) {
        if let Some(connection) = self.ready() {
            drain(&connection);
        }
    }
}

fn drain(connection: &Connection) {
    let mut state = connection.lock();
    state.http2.drain(Instant::now().into_std());
    state.notify_driver();
}
