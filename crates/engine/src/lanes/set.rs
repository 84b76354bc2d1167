//! The lanes of one endpoint: their choice for calls, opening and closing.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard, Weak};
use std::time::Duration;

use thalweg_balance::ConnectivityState;
use thalweg_lanes::Trial;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::choice::{LaneChoice, Ready, ReadyLane};
use super::connecting::Connector;
use super::lane::Lane;
use super::number::Lanes;
use super::observers::{LaneObserver, LaneSetObserver};
use super::policy_task::{Closing, LaneControl, PolicyTask};
use super::target::Target;
use crate::bounded_time::bounded;
use crate::connection::{Connection, StreamWaitQueue};
use crate::event_log::EventLog;
use crate::measure::EndpointMeasure;
use crate::per_thread::PerThread;
use crate::registry;
use crate::snapshot::{Counts, EndpointSnapshot, LaneDetails, SentCalls, SocketSnapshot};
use crate::status::Status;

/// The lanes of one endpoint. Dropping it closes each lane after its last call.
pub(crate) struct LaneSet {
    /// Unique in the process.
    pub(crate) id: u64,
    /// Notified of changes, if the channel balances over several endpoints.
    observer: Option<Weak<dyn LaneSetObserver>>,
    /// The lanes that accept calls, as seen by each thread.
    ready: PerThread<LaneChoice>,
    /// Notified when a lane becomes ready.
    became_ready: Notify,
    /// Notified when the state of a lane has changed.
    changed: Notify,
    connector: Arc<Connector>,
    all: Mutex<LaneList>,
    policy_task: Option<PolicyTask>,
    weak: Weak<Self>,
}

/// Changed only under the lock of [`LaneSet::all`]. [`LaneSet::refresh`] updates the ready lanes from it.
struct LaneList {
    /// Lanes in the order of their opening; never empty.
    lanes: Vec<Arc<Lane>>,
    closing: Vec<Closing>,
    /// Number of lanes opened so far.
    opened: u64,
}

impl LaneSet {
    pub(crate) fn new(
        lanes: &Lanes,
        connector: Connector,
        observer: Option<Weak<dyn LaneSetObserver>>,
    ) -> Arc<Self> {
        let connector = Arc::new(connector);
        connector.measure.lanes(lanes.initial().cast_signed());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new_cyclic(|weak: &Weak<Self>| {
            let opened = lanes.initial() as u64;
            let lane = |ordinal| {
                Arc::new(Lane::new(ordinal, "initial".to_owned(), weak.clone() as _, Arc::clone(&connector)))
            };
            Self {
                id: registry::next_id(),
                observer,
                ready: PerThread::default(),
                became_ready: Notify::new(),
                changed: Notify::new(),
                all: Mutex::new(LaneList {
                    lanes: (0..opened).map(lane).collect(),
                    closing: Vec::new(),
                    opened,
                }),
                policy_task: lanes.policy(cores).map(PolicyTask::new),
                connector,
                weak: weak.clone(),
            }
        })
    }

    /// Returns the lanes, closing ones included.
    fn details(&self) -> Vec<LaneDetails> {
        let (lanes, closing) = self.list();
        let open = lanes.iter().map(|lane| lane.details(false));
        open.chain(closing.iter().map(|closing| closing.lane.details(true))).collect()
    }

    /// Returns the calls of the endpoint so far.
    pub(crate) fn calls(&self) -> Counts {
        self.sent_calls(&self.details()).counts
    }

    fn sent_calls(&self, lanes: &[LaneDetails]) -> SentCalls {
        let mut calls = *self.connector.calls.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in lanes {
            calls += lane.sent_calls();
        }
        calls
    }

    /// Returns the addresses, or the channel's target if they are its.
    pub(crate) fn name(&self) -> String {
        self.connector.addresses.name()
    }

    pub(crate) fn measure(&self) -> &EndpointMeasure {
        &self.connector.measure
    }

    pub(crate) fn events(&self) -> &EventLog {
        &self.connector.events
    }

    pub(crate) fn snapshot(&self) -> EndpointSnapshot {
        let lanes = self.details();
        let SentCalls { counts: calls, last: last_call } = self.sent_calls(&lanes);
        let state = self.connectivity();
        let is_ready = state == ConnectivityState::Ready;
        let lead = Arc::clone(&self.all().lanes[0]);
        let failure = lead.last_failure().filter(|_| !is_ready);
        EndpointSnapshot {
            id: self.id,
            name: self.name(),
            addresses: self.connector.addresses.count(),
            last_connect_error: failure.map(|status| status.message().to_owned()),
            state,
            calls,
            last_call,
            events: self.connector.events.snapshot(),
            lanes,
        }
    }

    /// Returns the socket of this number, if it is one of these lanes.
    pub(crate) fn socket(&self, id: u64) -> Option<SocketSnapshot> {
        let (lanes, closing) = self.list();
        let mut all = lanes.iter().chain(closing.iter().map(|closing| &closing.lane));
        let connection = all.find_map(|lane| lane.socket(id))?;
        let traffic = Some(connection.lock().traffic());
        Some(SocketSnapshot { id, local: None, peer: Some(connection.peer.to_string()), traffic })
    }

    /// Returns the connection for the next call; `None` if there is none at all.
    #[inline]
    pub(crate) fn pick(&self, affinity: Option<u64>) -> Option<Arc<Connection>> {
        let choice = self.ready.current();
        let ready = choice.ready();
        // Most channels have one lane.
        if let [only] = ready.lanes.as_slice()
            && !ready.is_repair_due
        {
            return Some(Arc::clone(&only.connection));
        }
        self.pick_of(choice, ready, affinity)
    }

    fn pick_of<'a>(
        &'a self,
        choice: &'a LaneChoice,
        mut ready: RwLockReadGuard<'a, Ready>,
        affinity: Option<u64>,
    ) -> Option<Arc<Connection>> {
        if ready.is_repair_due {
            drop(ready);
            self.repair();
            ready = choice.ready();
        }
        Some(Arc::clone(&choice.lane(&ready, affinity)?.connection))
    }

    /// Waits for a connection, and makes one if necessary.
    ///
    /// # Errors
    /// UNAVAILABLE if connecting fails, or has failed and the backoff is not over yet; never with `wait_for_ready`.
    pub(crate) async fn connected(&self, wait_for_ready: bool) -> Result<Arc<Connection>, Status> {
        loop {
            // Created before checking the ready lanes, so that later changes are not missed.
            let became_ready = self.became_ready.notified();
            if let Some(connection) = self.pick(None) {
                return Ok(connection);
            }
            // Only the first lane tries to reach a lost server. The others follow it.
            let lead = Arc::clone(&self.all().lanes[0]);
            tokio::select! {
                biased;
                outcome = lead.connection(wait_for_ready) => {
                    return outcome.map_err(|status| status.with_detail(lead.failures()));
                }
                () = became_ready => {}
            }
        }
    }

    /// Skips the backoff after a failed attempt: the first lane connects at once, and the others follow.
    pub(crate) fn reset_backoff(&self) {
        let lanes = self.all().lanes.clone();
        for lane in &lanes {
            lane.reset_backoff();
        }
        if let [lead, ..] = lanes.as_slice()
            && lead.is_failed()
            && lead.runtime().is_some()
        {
            lead.start_connecting();
        }
    }

    /// Returns why there is no connection, if an attempt to connect has failed.
    #[cold]
    pub(crate) fn last_connect_error(&self) -> Option<String> {
        let lead = Arc::clone(&self.all().lanes[0]);
        Some(lead.last_failure()?.with_detail(lead.failures()).message().to_owned())
    }

    /// Connects every lane, one after the other.
    pub(crate) async fn connect_all(&self) -> Result<(), Status> {
        let lanes = self.all().lanes.clone();
        for lane in lanes {
            lane.connection(false).await?;
        }
        Ok(())
    }

    /// Returns a connection that may have a free stream.
    pub(crate) fn with_free_stream(&self) -> FreeStream {
        let ready = self.ready();
        if ready.lanes.is_empty() {
            return FreeStream::NoLane;
        }
        let open = ready.lanes.iter().filter(|ready| ready.connection.may_have_free_stream());
        match open.min_by_key(|ready| ready.load()) {
            Some(ready) => FreeStream::MaybeOn(Arc::clone(&ready.connection)),
            None => FreeStream::None,
        }
    }

    /// Notes that a connection accepts no more calls. Its lane makes another for the next call. Returns whether it is
    /// the current connection of a lane.
    pub(crate) fn lost(&self, connection: &Arc<Connection>) -> bool {
        let is_its = |lane: &&Arc<Lane>| lane.ready().is_some_and(|ready| Arc::ptr_eq(&ready, connection));
        let lane = self.all().lanes.iter().find(is_its).cloned();
        if let Some(lane) = &lane {
            lane.abandon(connection);
        }
        lane.is_some()
    }

    /// Updates the ready lanes.
    pub(crate) fn update(&self) {
        self.refresh();
    }

    /// Returns the state of the endpoint. A failure lasts until a connection is ready (gRFC A62).
    pub(crate) fn connectivity(&self) -> ConnectivityState {
        if !self.ready().lanes.is_empty() {
            return ConnectivityState::Ready;
        }
        let lead = Arc::clone(&self.all().lanes[0]);
        lead.connectivity()
    }

    /// Waits until the state of the endpoint may have changed, also if it does before the future is polled.
    pub(crate) fn state_changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn note_state(&self) {
        let state = self.connectivity();
        if let Some(former) = self.connector.events.note_state(state) {
            let (channel, endpoint) = (&self.connector.addresses.target, self.name());
            tracing::debug!(%channel, endpoint, %former, %state, "endpoint changed state");
        }
    }

    /// Connects the first lane, unless it is connected, connecting or in backoff.
    pub(crate) fn connect(&self) {
        let lead = Arc::clone(&self.all().lanes[0]);
        if lead.is_due() && lead.runtime().is_some() {
            lead.start_connecting();
        }
    }

    /// Closes all connections after their last calls.
    pub(crate) fn dismiss_all(&self) {
        let lanes = self.all().lanes.clone();
        for lane in lanes {
            lane.dismiss();
        }
    }

    /// Returns the connections that accept calls.
    pub(crate) fn ready_connections(&self) -> Vec<Arc<Connection>> {
        self.ready().lanes.iter().map(|ready| Arc::clone(&ready.connection)).collect()
    }

    /// Returns the target of the channel.
    pub(crate) fn target(&self) -> &Target {
        &self.connector.addresses.target
    }

    /// Returns the delay after a number of failures in a row.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        self.connector.backoff_after(failures)
    }

    /// Returns the shortest backoff after a failed attempt to connect.
    pub(crate) fn backoff_min(&self) -> Duration {
        bounded(self.connector.backoff.base_delay)
    }

    /// Returns the calls in flight on all lanes that accept calls.
    pub(crate) fn in_flight(&self) -> u64 {
        self.ready().lanes.iter().map(|ready| ready.connection.in_flight() as u64).sum()
    }

    /// Returns the open lanes and the closing ones.
    pub(crate) fn lists(&self) -> (Vec<Arc<Lane>>, Vec<Closing>) {
        self.list()
    }

    /// Opens and connects `count` more lanes.
    #[cfg(feature = "testing")]
    pub(crate) fn open_lanes(&self, count: usize, reason: &str) {
        self.open(count, reason);
    }

    /// Closes lanes after their last call.
    #[cfg(feature = "testing")]
    pub(crate) fn close_lanes(&self, ids: &[u64], reason: &str) {
        self.close(ids, reason);
    }

    /// Connects the lanes that have lost their connections.
    #[cold]
    fn repair(&self) {
        let due: Vec<_> = self.all().lanes.iter().filter(|lane| lane.is_due()).cloned().collect();
        for lane in &due {
            lane.start_connecting();
        }
        if due.is_empty() {
            self.refresh();
        }
    }

    /// Changes the maximum of adaptive lanes, which the endpoints of a channel share.
    pub(crate) fn set_cap(&self, cap: usize) {
        if let Some(policy_task) = &self.policy_task {
            policy_task.set_cap(cap);
            self.ensure_policy_task();
        }
    }

    fn ensure_policy_task(&self) {
        if let Some(policy_task) = &self.policy_task {
            policy_task.ensure_running(|| Some((self.runtime()?, self.weak.clone() as _)));
        }
    }

    /// Notes that a call has to wait for a stream, which may be a reason to open another lane.
    pub(crate) fn note_waiting(&self) {
        if let Some(policy_task) = &self.policy_task {
            policy_task.sample_now();
        }
    }

    /// Returns the number of lanes, without closing ones.
    pub(super) fn len(&self) -> usize {
        self.all().lanes.len()
    }

    /// Returns the runtime of the first lane, if any.
    fn runtime(&self) -> Option<Handle> {
        self.all().lanes[0].runtime()
    }

    fn ready(&self) -> RwLockReadGuard<'_, Ready> {
        self.ready.current().ready()
    }

    fn all(&self) -> MutexGuard<'_, LaneList> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The interface for the policy task.
impl LaneControl for LaneSet {
    fn queue(&self) -> &StreamWaitQueue {
        &self.connector.connection.queue
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        self.ready_connections()
    }

    fn list(&self) -> (Vec<Arc<Lane>>, Vec<Closing>) {
        let mut all = self.all();
        all.closing.retain(|closing| closing.connection.lock().ended().is_none());
        (all.lanes.clone(), all.closing.clone())
    }

    fn open(&self, count: usize, reason: &str) {
        let opened: Vec<_> = {
            let mut all = self.all();
            let ordinals = all.opened..all.opened + count as u64;
            all.opened = ordinals.end;
            let lane = |ordinal| {
                Arc::new(Lane::new(
                    ordinal,
                    reason.to_owned(),
                    self.weak.clone() as _,
                    Arc::clone(&self.connector),
                ))
            };
            let opened: Vec<_> = ordinals.map(lane).collect();
            all.lanes.extend_from_slice(&opened);
            opened
        };
        self.connector.measure.lanes(count.cast_signed());
        for lane in &opened {
            tracing::debug!(channel = %self.connector.addresses.target, lane = lane.id, reason, "lane opened");
            self.connector.events.note(format!("lane {} opened: {reason}", lane.id));
            lane.start_connecting();
        }
    }

    fn note_trial(&self, trial: &Trial) {
        let message = if trial.is_kept { "trial lanes kept" } else { "trial lanes dropped" };
        let channel = &self.connector.addresses.target;
        tracing::debug!(%channel, lanes = trial.tried.lanes, reason = %trial, "{message}");
    }

    fn close(&self, ids: &[u64], reason: &str) {
        let closed: Vec<_> = {
            let mut all = self.all();
            let close = |id: &u64| {
                let index = all.lanes.iter().position(|lane| lane.id == *id)?;
                (all.lanes.len() > 1).then(|| all.lanes.remove(index))
            };
            ids.iter().filter_map(close).collect()
        };
        self.connector.measure.lanes(-closed.len().cast_signed());
        for lane in closed {
            tracing::debug!(channel = %self.connector.addresses.target, lane = lane.id, reason, "lane closed");
            self.connector.events.note(format!("lane {} closed: {reason}", lane.id));
            if let Some(connection) = lane.dismiss() {
                let reason = reason.to_owned();
                self.all().closing.push(Closing { lane, connection, reason });
            }
        }
        self.refresh();
    }
}

impl LaneObserver for LaneSet {
    fn refresh(&self) {
        let all = self.all();
        let connected = |lane: &Arc<Lane>| {
            let connection = lane.ready()?;
            Some(ReadyLane { lane: Arc::clone(lane), connection })
        };
        let lanes: Vec<_> = all.lanes.iter().filter_map(connected).collect();
        let is_empty = lanes.is_empty();
        let ready = Ready {
            are_pinned: lanes.iter().any(|ready| ready.lane.cpu().is_some()),
            // Without ready lanes, a call that finds none connects the first lane.
            is_repair_due: !is_empty && all.lanes.iter().any(|lane| lane.is_due()),
            lanes,
        };
        let replace = |choice: &LaneChoice| {
            let mut of_thread = choice.ready.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *of_thread, ready.clone())
        };
        let former: Vec<Ready> = self.ready.all().map(replace).collect();
        drop((ready, all));
        // A lane or connection whose last reference this is gets dropped without a lock.
        drop(former);
        self.note_state();
        self.changed.notify_waiters();
        if is_empty {
            // The woken calls connect a lane, or fail.
            self.queue().wake_all();
        } else {
            self.became_ready.notify_waiters();
            self.queue().wake_next();
        }
        self.ensure_policy_task();
        if let Some(observer) = self.observer.as_ref().and_then(Weak::upgrade) {
            observer.changed();
        }
    }

    fn waits_for_backoff(&self) -> bool {
        // Calls use the other lanes or endpoints, and none waits for this lane.
        self.observer.is_some() || self.len() > 1
    }

    fn backoff_ended(&self, lane: u64) {
        let lead = Arc::clone(&self.all().lanes[0]);
        if self.observer.is_some() && lead.id == lane && lead.is_due() {
            lead.start_connecting();
        } else {
            self.refresh();
        }
    }
}

impl Drop for LaneSet {
    fn drop(&mut self) {
        self.connector.measure.lanes(-self.len().cast_signed());
    }
}

/// Result of the search for a free stream for a waiting call.
pub(crate) enum FreeStream {
    MaybeOn(Arc<Connection>),
    None,
    /// There is no connection at all.
    NoLane,
}

impl fmt::Debug for LaneSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneSet").field("lanes", &self.len()).finish_non_exhaustive()
    }
}
