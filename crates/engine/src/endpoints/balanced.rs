//! The endpoints of a channel that balances over several: the choice of one for each call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use thalweg_balance::ConnectivityState;
use thalweg_balance::policy::{NoneReady, Pick, PickArgs, Picker, Policy};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::control::{Control, EndpointFactory, Signals};
use crate::connection::Connection;
use crate::lanes::{Connector, FreeStream, LaneSet, LaneSetObserver, Lanes};
use crate::per_thread::PerThread;
use crate::random::random_unit;
use crate::resolver::Resolver;
use crate::status::Status;

/// Settings of a balanced channel.
#[derive(Debug)]
pub(crate) struct BalancedConfig {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) resolver: Arc<dyn Resolver>,
    /// Period of resolutions without a reason, for resolvers that look up names.
    pub(crate) refresh: Option<Duration>,
    /// Minimum time between two resolutions.
    pub(crate) interval_min: Duration,
    /// Time without calls after which the connections are closed.
    pub(crate) idle_timeout: Option<Duration>,
}

/// The endpoints of one channel, with its policy's last decision.
pub(crate) struct Balanced {
    views: PerThread<ThreadView>,
    /// Notified after each decision.
    decided: Notify,
    signals: Arc<Signals>,
    /// Request header whose value the policy hashes.
    hash_header: Option<String>,
    /// Holds the control's state while its task does not run.
    parked: Arc<Mutex<Option<Box<Control>>>>,
    weak: Weak<Self>,
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
    pub(super) picker: Arc<dyn Picker>,
    pub(super) state: ConnectivityState,
}

impl View {
    fn connection(&self, at: usize, affinity: Option<u64>) -> Option<Arc<Connection>> {
        self.endpoints.get(at)?.pick(affinity)
    }

    fn connect(&self, at: usize) {
        if let Some(set) = self.endpoints.get(at) {
            set.connect();
        }
    }
}

/// Result of a pick.
enum Picked {
    Connection(Arc<Connection>),
    /// Wait for the next decision.
    Wait,
    /// The reason why no endpoint is ready.
    Failed(Arc<str>),
}

/// Maximum number of picks per call. A picked endpoint may have lost its connection since the decision.
const PICKS_MAX: usize = 16;

impl Balanced {
    pub(super) fn new(lanes: Lanes, connector: Connector, config: BalancedConfig) -> Arc<Self> {
        let signals = Arc::new(Signals::default());
        Arc::new_cyclic(|weak: &Weak<Self>| {
            let hash_header = config.policy.hash_header().map(str::to_owned);
            let factory = EndpointFactory { lanes, connector, observer: weak.clone() };
            let control = Control::new(config, factory, Arc::clone(&signals));
            Self {
                views: PerThread::new(ThreadView::new),
                decided: Notify::new(),
                signals,
                hash_header,
                parked: Arc::new(Mutex::new(Some(Box::new(control)))),
                weak: weak.clone(),
            }
        })
    }

    /// Returns how often endpoints were picked so far, in total.
    pub(super) fn picks(&self) -> u64 {
        let turns = self.views.all().map(|own| own.turn.load(Ordering::Relaxed));
        turns.fold(0, u64::wrapping_add)
    }

    pub(super) fn hash_header(&self) -> Option<&str> {
        self.hash_header.as_deref()
    }

    /// Returns the connection for the next call; `None` if it has to wait or fails.
    pub(super) fn pick(&self, affinity: Option<u64>) -> Option<Arc<Connection>> {
        match self.choose(affinity) {
            Picked::Connection(connection) => Some(connection),
            Picked::Wait | Picked::Failed(_) => None,
        }
    }

    fn choose(&self, affinity: Option<u64>) -> Picked {
        let own = self.views.current();
        // No lock is held while the picker runs, which may be the application's.
        let view = own.view();
        let in_flight = |at: usize| view.endpoints.get(at).map_or(0, |set| set.in_flight());
        for _ in 0..PICKS_MAX.min(view.endpoints.len() + 1) {
            let turn = own.turn.fetch_add(1, Ordering::Relaxed);
            let mut call = PickArgs::new(turn, &in_flight);
            call.hash = affinity;
            match view.picker.pick(&call) {
                Pick::Endpoint(at) => {
                    if let Some(connection) = view.connection(at, affinity) {
                        return Picked::Connection(connection);
                    }
                }
                Pick::EndpointAndConnect { ready, connect } => {
                    view.connect(connect);
                    if let Some(connection) = view.connection(ready, affinity) {
                        return Picked::Connection(connection);
                    }
                }
                Pick::Connect(at) => {
                    view.connect(at);
                    return Picked::Wait;
                }
                Pick::Queue => return Picked::Wait,
                Pick::Fail(message) => return Picked::Failed(message),
            }
        }
        Picked::Wait
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// UNAVAILABLE if no endpoint is ready and none is connecting; never with `wait_for_ready`.
    pub(super) async fn connected(
        &self,
        affinity: Option<u64>,
        wait_for_ready: bool,
    ) -> Result<Arc<Connection>, Status> {
        loop {
            // Created before the choice, so that a later decision is not missed.
            let decided = self.decided.notified();
            match self.choose(affinity) {
                Picked::Connection(connection) => return Ok(connection),
                Picked::Failed(message) if !wait_for_ready => {
                    return Err(Status::unavailable(message.to_string()));
                }
                Picked::Failed(_) | Picked::Wait => {}
            }
            self.signals.call_waits();
            if !self.ensure_running() {
                return Err(Status::unavailable("failed to connect: the runtime of the call shuts down"));
            }
            decided.await;
        }
    }

    /// Returns a connection that may have a free stream, of the least loaded endpoint.
    pub(super) fn with_free_stream(&self) -> FreeStream {
        let view = self.views.current().view();
        let mut sets: Vec<_> = view.endpoints.iter().collect();
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

    pub(super) fn sets(&self) -> Vec<Arc<LaneSet>> {
        self.views.current().view().endpoints.clone()
    }

    pub(super) fn state(&self) -> ConnectivityState {
        self.views.current().view().state
    }

    /// Returns why calls fail at the moment, if they do.
    pub(super) fn error(&self) -> Option<String> {
        match self.choose(None) {
            Picked::Failed(message) => Some(message.to_string()),
            Picked::Connection(_) | Picked::Wait => None,
        }
    }

    /// Publishes a decision.
    pub(super) fn publish(&self, view: &View) {
        let replace = |own: &ThreadView| {
            let mut slot = own.view.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *slot, Arc::new(view.clone()))
        };
        let former: Vec<Arc<View>> = self.views.all().map(replace).collect();
        // An endpoint whose last reference this is gets dropped without a lock.
        drop(former);
        self.decided.notify_waiters();
    }

    /// Wakes calls that wait for a free stream: of one when there may be one, of all when there is no connection.
    pub(super) fn wake_queue(&self, queue: &crate::connection::StreamWaitQueue) {
        match self.with_free_stream() {
            FreeStream::MaybeOn(_) => queue.wake_next(),
            FreeStream::NoLane => queue.wake_all(),
            FreeStream::None => {}
        }
    }

    /// Starts the control's task if it does not run: the first time, and after its runtime has ended. Returns false if
    /// there is no runtime that runs it.
    fn ensure_running(&self) -> bool {
        let parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(control) = parked else { return true };
        let running = Running { control: Some(control), parked: Arc::clone(&self.parked) };
        let Some(runtime) = running.runtime() else { return false };
        let balanced = self.weak.clone();
        let task = runtime.spawn(async move {
            let mut running = running;
            if let Some(control) = &mut running.control {
                control.run(&balanced).await;
            }
        });
        !task.is_finished() || self.parked.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl LaneSetObserver for Balanced {
    fn changed(&self) {
        self.signals.endpoint_changed();
    }
}

impl Drop for Balanced {
    fn drop(&mut self) {
        // Ends the task.
        self.signals.endpoint_changed();
    }
}

impl ThreadView {
    fn new() -> Self {
        let view = View {
            endpoints: Vec::new(),
            picker: Arc::new(NoneReady::waiting()),
            state: ConnectivityState::Idle,
        };
        let turn = (random_unit() * u64::from(u32::MAX) as f64) as u64;
        Self { view: RwLock::new(Arc::new(view)), turn: AtomicU64::new(turn) }
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The control's state while its task runs. It is parked again when the task ends, even if its runtime drops it.
struct Running {
    control: Option<Box<Control>>,
    parked: Arc<Mutex<Option<Box<Control>>>>,
}

impl Running {
    fn runtime(&self) -> Option<Handle> {
        self.control.as_ref().and_then(|control| control.runtime())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = self.control.take();
    }
}
