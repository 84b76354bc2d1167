//! The lanes of one endpoint: their choice for calls, opening and closing.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use thalweg_balance::ConnectivityState;
use thalweg_lanes::Trial;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::connecting::Connector;
use super::lane::Lane;
use super::number::Lanes;
use super::observers::{LaneObserver, LaneSetObserver};
use super::policy_task::{Closing, LaneControl, PolicyTask};
use super::target::Target;
use crate::bounded_time::bounded;
use crate::connection::{Connection, StreamWaitQueue};
use crate::executor::current_cpu;
use crate::per_thread::{PerThread, thread_number};
use crate::snapshot::{Counts, LaneDetails, SocketSnapshot};
use crate::status::Status;

/// The lanes of one endpoint. Dropping it closes each lane after its last call.
pub(crate) struct LaneSet {
    /// Notified of changes, if the channel balances over several endpoints.
    observer: Option<Weak<dyn LaneSetObserver>>,
    /// The lanes that accept calls, as seen by each thread.
    ready: PerThread<LaneChoice>,
    /// Notified when a lane becomes ready.
    became_ready: Notify,
    connector: Arc<Connector>,
    all: Mutex<LaneList>,
    policy_task: Option<PolicyTask>,
    weak: Weak<Self>,
}

/// Per-thread state for choosing a lane.
#[derive(Default)]
struct LaneChoice {
    ready: RwLock<Ready>,
    /// Index of the last call's lane.
    last: AtomicU32,
    /// Index of the lane that this thread's lane was last compared with.
    compared: AtomicU32,
}

/// The lanes that accept calls.
#[derive(Clone, Default)]
struct Ready {
    lanes: Vec<ReadyLane>,
    /// Whether their threads are pinned to processors.
    are_pinned: bool,
    /// Whether another lane has no connection and may connect: the next call starts that.
    is_repair_due: bool,
}

#[derive(Clone)]
struct ReadyLane {
    lane: Arc<Lane>,
    connection: Arc<Connection>,
}

/// Changed only under the lock of [`LaneSet::all`]. [`LaneSet::refresh`] updates the ready lanes from it.
struct LaneList {
    /// Lanes in the order of their opening; never empty.
    lanes: Vec<Arc<Lane>>,
    closing: Vec<Closing>,
    next_id: u64,
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
            let ids = 0..lanes.initial() as u64;
            let lane =
                |id| Arc::new(Lane::new(id, "initial".to_owned(), weak.clone() as _, Arc::clone(&connector)));
            Self {
                observer,
                ready: PerThread::default(),
                became_ready: Notify::new(),
                all: Mutex::new(LaneList {
                    next_id: ids.end,
                    lanes: ids.map(lane).collect(),
                    closing: Vec::new(),
                }),
                policy_task: lanes.policy(cores).map(PolicyTask::new),
                connector,
                weak: weak.clone(),
            }
        })
    }

    /// Returns the lanes, closing ones included.
    pub(crate) fn details(&self) -> Vec<LaneDetails> {
        let (lanes, closing) = self.list();
        let open = lanes.iter().map(|lane| lane.details(false));
        open.chain(closing.iter().map(|closing| closing.lane.details(true))).collect()
    }

    /// Returns the calls of the endpoint so far.
    pub(crate) fn calls(&self) -> Counts {
        let mut calls = *self.connector.calls.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in self.details() {
            calls += lane.calls;
        }
        calls
    }

    /// Returns the socket of this number, if it is one of these lanes.
    pub(crate) fn socket(&self, id: u64) -> Option<SocketSnapshot> {
        let (lanes, closing) = self.list();
        let mut all = lanes.iter().chain(closing.iter().map(|closing| &closing.lane));
        let connection = all.find_map(|lane| lane.socket(id))?;
        let traffic = Some(connection.lock().traffic());
        Some(SocketSnapshot { id, local: None, peer: Some(connection.peer.clone()), traffic })
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
        let lanes = ready.lanes.as_slice();
        let chosen = match affinity {
            Some(key) => lanes.iter().max_by_key(|ready| affinity_of(key, ready.lane.id))?,
            None => choice.least_loaded(lanes, ready.are_pinned)?,
        };
        Some(Arc::clone(&chosen.connection))
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
        self.connector.backoff.pause(failures, (self.connector.jitter)())
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

impl LaneChoice {
    #[inline]
    fn ready(&self) -> RwLockReadGuard<'_, Ready> {
        self.ready.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the least loaded lane, preferably the last call's. Prefers a lane on the caller's processor, or one
    /// whose responses arrive on the caller's thread if those of other lanes arrive elsewhere.
    ///
    /// So the next calls go together to the lanes whose responses have just arrived. A lane with its share of calls
    /// gets none: its next write would carry only some of its calls, and so would all later ones.
    fn least_loaded<'a>(&self, lanes: &'a [ReadyLane], are_pinned: bool) -> Option<&'a ReadyLane> {
        if lanes.len() < 2 {
            return lanes.first();
        }
        let last = self.last.load(Ordering::Relaxed) as usize % lanes.len();
        let load = |index: usize| lanes[index].load();
        if are_pinned && let Some(cpu) = current_cpu() {
            let least = least(last, lanes.len(), load);
            self.last.store(least as u32, Ordering::Relaxed);
            let cpus_and_loads = lanes.iter().map(|ready| (ready.lane.cpu(), ready.load()));
            return lanes.get(on_processor(cpu, load(least), cpus_and_loads).unwrap_or(least));
        }
        let thread = thread_number();
        let is_local = |index: usize| lanes[index].lane.response_thread() == thread;
        let compared = &self.compared;
        let next = || {
            let next = (compared.load(Ordering::Relaxed) as usize + 1) % lanes.len();
            compared.store(next as u32, Ordering::Relaxed);
            next
        };
        let chosen = on_thread(last, lanes.len(), load, is_local, next);
        if chosen != last {
            self.last.store(chosen as u32, Ordering::Relaxed);
        }
        lanes.get(chosen)
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
            let ids = all.next_id..all.next_id + count as u64;
            all.next_id = ids.end;
            let lane = |id| {
                Arc::new(Lane::new(
                    id,
                    reason.to_owned(),
                    self.weak.clone() as _,
                    Arc::clone(&self.connector),
                ))
            };
            let opened: Vec<_> = ids.map(lane).collect();
            all.lanes.extend_from_slice(&opened);
            opened
        };
        self.connector.measure.lanes(count.cast_signed());
        for lane in &opened {
            tracing::debug!(channel = %self.connector.addresses.target, lane = lane.id, reason, "lane opened");
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
        if is_empty {
            // The woken calls connect a lane, or fail.
            self.queue().wake_all();
        } else {
            self.became_ready.notify_waiters();
            self.queue().wake_next();
        }
        if let Some(policy_task) = &self.policy_task {
            policy_task.ensure_running(|| Some((self.runtime()?, self.weak.clone() as _)));
        }
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

impl ReadyLane {
    /// Returns the calls in flight plus one for the new call, weighted by the driver's utilization: 1 below 50 %, 1.5
    /// from 50 %, and 2 at 100 %. The steps are coarse, so that the less busy of two similar lanes does not get all
    /// calls until the next sample. Over three lanes with four calls in flight, permille steps made 47 k calls/s,
    /// quarters 66 k, and no weights 68 k.
    fn load(&self) -> u64 {
        let busy = u64::from(self.lane.busy_permille().unwrap_or(0));
        (self.connection.in_flight() as u64 + 1) * (1000 + busy / 500 * 500)
    }
}

/// Maximum number of lanes that a call compares.
const COMPARED_MAX: usize = 16;

/// Returns the index of the least loaded of `count` lanes, the first from `last` on if there are several. With more
/// than [`COMPARED_MAX`] lanes, only that many from `last` on are compared, so that in time all are.
fn least(last: usize, count: usize, load: impl Fn(usize) -> u64) -> usize {
    let mut least = (last, load(last));
    let mut index = last;
    for _ in 1..count.min(COMPARED_MAX) {
        index = if index + 1 < count { index + 1 } else { 0 };
        let load = load(index);
        if load < least.1 {
            least = (index, load);
        }
    }
    least.0
}

/// Returns the least loaded lane whose responses arrive on the caller's thread, since its data is in that processor's
/// cache. Returns another lane if that has less than half the load, or no calls at all.
///
/// Reading a lane's load takes it out of other processors' caches. So while the thread's own lane has some calls, its
/// load is compared with only one other lane, in turn.
fn on_thread(
    last: usize,
    count: usize,
    load: impl Fn(usize) -> u64,
    is_local: impl Fn(usize) -> bool,
    next: impl FnOnce() -> usize,
) -> usize {
    let mut all_local = true;
    let mut local: Option<(usize, u64)> = None;
    let mut index = last;
    for _ in 0..count.min(COMPARED_MAX) {
        if is_local(index) {
            let load = load(index);
            if local.is_none_or(|(_, least)| load < least) {
                local = Some((index, load));
            }
        } else {
            all_local = false;
        }
        index = if index + 1 < count { index + 1 } else { 0 };
    }
    match local {
        Some((local, _)) if all_local => local,
        Some((local, local_load)) if local_load >= COMPARED_WITH_ALL_MAX => {
            let other = next();
            if local_load <= LOCAL_LOAD_RATIO_MAX * load(other) { local } else { least(other, count, load) }
        }
        local => {
            let least = least(last, count, &load);
            let least_load = load(least);
            // No lane gets a second call while another has none.
            let max = if least_load >= LOAD_OF_ONE { LOCAL_LOAD_RATIO_MAX * least_load } else { least_load };
            local.filter(|(_, local_load)| *local_load <= max).map_or(least, |(local, _)| local)
        }
    }
}

/// Minimum load of a lane with a call.
const LOAD_OF_ONE: u64 = 2 * 1000;
/// From this load of its own lane (four calls), a thread compares it with only one other lane.
const COMPARED_WITH_ALL_MAX: u64 = 5 * 1000;

/// Returns the lane on the caller's processor, unless its load is more than [`LOCAL_LOAD_RATIO_MAX`] times `load`.
/// Waking a thread of the same processor wakes no sleeping processor. `lanes` yields each lane's processor and load.
fn on_processor(cpu: usize, load: u64, lanes: impl Iterator<Item = (Option<usize>, u64)>) -> Option<usize> {
    let local = lanes.enumerate().filter(|(_, (lane, _))| *lane == Some(cpu));
    let (index, (_, local)) = local.min_by_key(|(_, (_, load))| *load)?;
    (local <= LOCAL_LOAD_RATIO_MAX * load).then_some(index)
}

/// With callers on one processor only, its lane gets two thirds of their calls.
const LOCAL_LOAD_RATIO_MAX: u64 = 2;

/// Rendezvous hashing: a key takes the lane with the highest value. When a lane is added or removed, only the keys
/// move for which it has the highest value.
fn affinity_of(key: u64, lane: u64) -> u64 {
    // Finalizer of SplitMix64.
    let mut mixed = key ^ lane.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl fmt::Debug for LaneSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneSet").field("lanes", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of 10,000 keys change their lane when `before` lanes become `after`.
    fn moved(before: u64, after: u64) -> usize {
        let lane = |key, lanes| (0..lanes).max_by_key(|&lane| affinity_of(key, lane));
        (0..10_000).filter(|&key| lane(key, before) != lane(key, after)).count()
    }

    #[test]
    fn few_keys_move_when_number_of_lanes_changes() {
        let check = |before, after, expected: std::ops::Range<usize>| {
            let moved = moved(before, after);
            assert!(expected.contains(&moved), "{before} to {after} lanes: {moved} keys moved");
        };
        check(1, 2, 4800..5200);
        check(4, 5, 1800..2200);
        check(5, 4, 1800..2200);
        check(15, 16, 500..750);
    }

    #[test]
    fn calls_go_to_least_loaded_lanes_one_after_the_other() {
        let pick = |loads: &mut [u64], calls: usize| {
            let mut last = 0;
            let mut picked = Vec::new();
            for _ in 0..calls {
                last = least(last, loads.len(), |lane| loads[lane]);
                loads[last] += 1;
                picked.push(last);
            }
            picked
        };
        assert_eq!(pick(&mut [4, 4, 4, 4], 4), [0, 1, 2, 3], "each gets one");
        assert_eq!(pick(&mut [4, 2, 4, 4], 4), [1, 1, 1, 2], "the answers of one have come");
        assert_eq!(pick(&mut [1, 1, 0], 1), [2]);

        let mut many = [0; 100];
        pick(&mut many, 1000);
        assert!(many.iter().all(|&load| load == 10), "{many:?}");
        // A lane that has finished its calls is found by a later call.
        many[50] = 0;
        let picked = pick(&mut many, 100);
        assert!(many[50] >= 10, "{picked:?}");
    }

    #[test]
    fn caller_prefers_lane_of_its_processor_unless_much_more_loaded() {
        let check = |cpu, load, lanes: &[(Option<usize>, u64)], expected: Option<usize>| {
            assert_eq!(on_processor(cpu, load, lanes.iter().copied()), expected, "{cpu}, {load}: {lanes:?}");
        };
        check(1, 5, &[(Some(0), 5), (Some(1), 10)], Some(1));
        check(1, 5, &[(Some(0), 5), (Some(1), 11)], None);
        check(0, 5, &[(Some(0), 9), (Some(1), 5), (Some(0), 8)], Some(2));
        check(2, 5, &[(Some(0), 5), (None, 0)], None);
    }

    #[test]
    fn call_prefers_lane_of_its_thread_unless_another_has_much_less_load() {
        // Calls of each lane, and the lanes of the thread.
        let check = |calls: &[u64], local: &[usize], next: usize, expected: usize| {
            let load = |lane: usize| (calls[lane] + 1) * 1000;
            let chosen = on_thread(0, calls.len(), load, |lane| local.contains(&lane), || next);
            assert_eq!(chosen, expected, "{calls:?}, {local:?}, {next}");
        };
        check(&[8, 8, 8, 8], &[2], 3, 2);
        check(&[8, 7, 8, 6], &[0, 2], 3, 0);
        check(&[8, 7, 6, 6], &[0, 2], 3, 2);
        check(&[4, 3, 2, 1], &[0, 1, 2, 3], 0, 3);
        check(&[4, 3, 2, 1], &[], 0, 3);
        // A lane with less than half the load is found if it is compared, and then the least loaded is taken.
        check(&[9, 3, 8, 2], &[0], 1, 3);
        check(&[9, 3, 8, 2], &[0], 2, 0);
        check(&[0, 0], &[1], 0, 1);
        // With few calls all lanes are compared: no lane gets a second call while another has none.
        check(&[1, 1, 1, 0], &[0], 1, 3);
        check(&[1, 1, 1, 1], &[2], 1, 2);
        check(&[3, 3, 3, 1], &[2], 1, 2);
        check(&[3, 3, 4, 1], &[2], 1, 2);
        check(&[3, 3, 4, 1], &[2], 3, 3);
    }

    #[test]
    fn keys_are_spread_evenly() {
        let mut keys = [0; 8];
        for key in 0..8000 {
            let lane = (0..8).max_by_key(|&lane| affinity_of(key, lane)).expect("eight of them");
            keys[lane as usize] += 1;
        }
        assert!(keys.iter().all(|count| (850..1150).contains(count)), "{keys:?}");
    }
}
