//! The last decision of a balanced channel's policy, and picks by it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use thalweg_balance::ConnectivityState;
use thalweg_balance::policy::{NoneReady, Pick, PickArgs, Picker};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::connection::{Connection, StreamWaitQueue};
use crate::lanes::{FreeStream, LaneSet};
use crate::per_thread::PerThread;
use crate::random::random_unit;

/// The last decision of a channel's policy, as seen by each thread.
pub(super) struct Views {
    threads: PerThread<ThreadView>,
    /// Notified after each decision.
    decided: Notify,
    /// Calls that wait for a free stream.
    queue: Arc<StreamWaitQueue>,
    has_hash_header: AtomicBool,
    /// Request header whose value the policy hashes.
    hash_header: RwLock<Option<Arc<str>>>,
}

/// A thread's copy of the last decision, so that threads do not contend for its reference count.
struct ThreadView {
    view: RwLock<Arc<View>>,
    turn: AtomicU64,
}

/// A decision, and the endpoints that it is about.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) endpoints: Vec<Arc<LaneSet>>,
    /// Whether an endpoint takes no calls although it is connected: it is unhealthy or ejected. May be shorter.
    pub(super) withheld: Vec<bool>,
    pub(super) picker: Arc<dyn Picker>,
    /// Name of the policy that has made the decision; `None` if none has.
    pub(super) policy: Option<&'static str>,
    pub(super) state: ConnectivityState,
}

impl View {
    #[inline]
    fn connection(&self, at: usize, affinity: Option<u64>) -> Option<Arc<Connection>> {
        self.endpoints.get(at)?.pick(affinity)
    }

    fn failure_for(&self, reason: Arc<str>) -> PickFailure {
        PickFailure { policy: self.policy, reason }
    }

    /// Returns why all calls fail at the moment, if they do.
    pub(super) fn failure(&self) -> Option<PickFailure> {
        self.picker.failure().map(|reason| self.failure_for(reason))
    }

    fn connect(&self, at: usize) {
        if let Some(set) = self.endpoints.get(at) {
            set.connect();
        }
    }
}

/// Result of a pick.
pub(super) enum Picked {
    Connection(Arc<Connection>),
    /// Wait for the next decision.
    Wait,
    /// Wait for the next decision, and until then at the latest.
    WaitUntil(Instant),
    Failed(PickFailure),
}

/// Why a pick failed: displays the policy and its reason.
pub(super) struct PickFailure {
    policy: Option<&'static str>,
    reason: Arc<str>,
}

impl fmt::Display for PickFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy {
            Some(policy) => write!(f, "{policy}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// Maximum number of picks per call. A picked endpoint may have lost its connection since the decision.
const PICKS_MAX: usize = 16;

impl Views {
    pub(super) fn new(queue: Arc<StreamWaitQueue>) -> Self {
        Self {
            threads: PerThread::new(ThreadView::new),
            decided: Notify::new(),
            queue,
            has_hash_header: AtomicBool::new(false),
            hash_header: RwLock::default(),
        }
    }

    /// Returns whether the policy hashes the value of a request header.
    #[inline]
    pub(super) fn has_hash_header(&self) -> bool {
        self.has_hash_header.load(Ordering::Relaxed)
    }

    /// Returns the request header whose value the policy hashes, if it does.
    pub(super) fn hash_header(&self) -> Option<Arc<str>> {
        self.hash_header.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the request header whose value the policy hashes.
    pub(super) fn set_hash_header(&self, name: Option<&str>) {
        if self.hash_header().as_deref() != name {
            *self.hash_header.write().unwrap_or_else(PoisonError::into_inner) = name.map(Arc::from);
            self.has_hash_header.store(name.is_some(), Ordering::Relaxed);
        }
    }

    /// Waits for the next decision, also if that comes before the future is polled.
    pub(super) fn decided(&self) -> Notified<'_> {
        self.decided.notified()
    }

    /// Returns this thread's copy of the last decision.
    pub(super) fn current(&self) -> Arc<View> {
        self.threads.current().view()
    }

    /// Returns how often endpoints were picked so far, in total.
    pub(super) fn picks(&self) -> u64 {
        let turns = self.threads.all().map(|own| own.turn.load(Ordering::Relaxed));
        turns.fold(0, u64::wrapping_add)
    }

    /// Picks an endpoint, and a connection to it.
    #[inline]
    pub(super) fn pick(&self, affinity: Option<u64>) -> Picked {
        let own = self.threads.current();
        // The lock is this thread's, and only a decision replaces the view.
        let view = own.view.read().unwrap_or_else(PoisonError::into_inner);
        let in_flight = |at: usize| view.endpoints.get(at).map_or(0, |set| set.in_flight());
        let mut picks = 0;
        loop {
            let turn = own.turn.fetch_add(1, Ordering::Relaxed);
            let mut call = PickArgs::new(turn, &in_flight);
            call.hash = affinity;
            let at = match view.picker.pick(&call) {
                Pick::Endpoint(at) => at,
                Pick::EndpointAndConnect { ready, connect } => {
                    view.connect(connect);
                    ready
                }
                Pick::Connect(at) => {
                    view.connect(at);
                    return Picked::Wait;
                }
                Pick::Queue => return Picked::Wait,
                Pick::QueueUntil(at) => return Picked::WaitUntil(at),
                Pick::Fail(reason) => return Picked::Failed(view.failure_for(reason)),
            };
            if let Some(connection) = view.connection(at, affinity) {
                return Picked::Connection(connection);
            }
            picks += 1;
            if picks > view.endpoints.len().min(PICKS_MAX) {
                return Picked::Wait;
            }
        }
    }

    /// Returns a connection that may have a free stream, of the least loaded endpoint.
    pub(super) fn with_free_stream(&self) -> FreeStream {
        let view = self.current();
        let is_withheld = |at: usize| view.withheld.get(at).is_some_and(|&is_withheld| is_withheld);
        let sets = view.endpoints.iter().enumerate().filter(|(at, _)| !is_withheld(*at));
        let mut sets: Vec<_> = sets.map(|(_, set)| set).collect();
        sets.sort_by_cached_key(|set| set.in_flight());
        let mut best = FreeStream::NoLane;
        for set in sets {
            match set.with_free_stream() {
                free @ FreeStream::MaybeOn(_) => return free,
                FreeStream::None => best = FreeStream::None,
                FreeStream::NoLane => {}
            }
        }
        best
    }

    /// Publishes a decision, and wakes the calls that wait for one.
    pub(super) fn publish(&self, view: &View) {
        let replace = |own: &ThreadView| {
            let mut slot = own.view.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *slot, Arc::new(view.clone()))
        };
        let former: Vec<Arc<View>> = self.threads.all().map(replace).collect();
        // An endpoint whose last reference this is gets dropped without a lock.
        drop(former);
        self.decided.notify_waiters();
        self.wake_queue();
    }

    /// Wakes calls that wait for a free stream: of one when there may be one, of all when there is no connection.
    fn wake_queue(&self) {
        match self.with_free_stream() {
            FreeStream::MaybeOn(_) => self.queue.wake_next(),
            FreeStream::NoLane => self.queue.wake_all(),
            FreeStream::None => {}
        }
    }
}

impl ThreadView {
    fn new() -> Self {
        let view = View {
            endpoints: Vec::new(),
            withheld: Vec::new(),
            picker: Arc::new(NoneReady::waiting()),
            policy: None,
            state: ConnectivityState::Idle,
        };
        let turn = (random_unit() * u64::from(u32::MAX) as f64) as u64;
        Self { view: RwLock::new(Arc::new(view)), turn: AtomicU64::new(turn) }
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }
}
