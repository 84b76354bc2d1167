//! The endpoints of a channel that balances over several: the choice of one for each call.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg_balance::ConnectivityState;
use tokio::runtime::Handle;
use tokio::sync::futures::Notified;
use tokio::time::timeout_at;

use super::control::{BalancedConfig, Control, EndpointFactory, Signals};
use super::views::{Picked, Views};
use crate::connection::Connection;
use crate::event_log::EventLog;
use crate::lanes::{Connector, FreeStream, LaneSet, Lanes};
use crate::request_headers::Origin;
use crate::status::{Code, Status};

/// The endpoints of one channel that balances over them.
pub(crate) struct Balanced {
    views: Arc<Views>,
    signals: Arc<Signals>,
    events: Arc<EventLog>,
    /// Holds the control's state while its task does not run.
    parked: Arc<Mutex<Option<Box<Control>>>>,
    /// Dropped after `views`, so that the woken control finds them gone.
    _end_of_task: EndOfTask,
}

/// Wakes the control when dropped.
struct EndOfTask(Arc<Signals>);

impl Drop for EndOfTask {
    fn drop(&mut self) {
        self.0.endpoint_changed();
    }
}

impl Balanced {
    pub(super) fn new(
        lanes: Lanes,
        connector: Connector,
        config: BalancedConfig,
        origin: Origin<'_>,
    ) -> Self {
        let signals = Arc::new(Signals::default());
        let views = Arc::new(Views::new(Arc::clone(&connector.connection.queue)));
        let events = Arc::new(EventLog::new());
        let factory = EndpointFactory { lanes, connector };
        let control = Control::new(config, factory, Arc::clone(&signals), Arc::clone(&events), origin);
        views.set_hash_header(control.hash_header());
        let parked = Arc::new(Mutex::new(Some(Box::new(control))));
        Self { _end_of_task: EndOfTask(Arc::clone(&signals)), views, signals, events, parked }
    }

    /// Returns whether the policy hashes the value of a request header.
    #[inline]
    pub(super) fn has_hash_header(&self) -> bool {
        self.views.has_hash_header()
    }

    /// Returns the request header whose value the policy hashes, if it does.
    pub(super) fn hash_header(&self) -> Option<Arc<str>> {
        self.views.hash_header()
    }

    /// Returns the connection for the next call; `None` if it has to wait or fails. Not inlined, so that it does not
    /// make calls of channels with one address larger.
    #[inline(never)]
    pub(super) fn pick(&self, affinity: Option<u64>) -> Option<Arc<Connection>> {
        match self.views.pick(affinity) {
            Picked::Connection(connection) => Some(connection),
            Picked::Wait | Picked::WaitUntil(_) | Picked::Failed(_) => None,
        }
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
            let decided = self.views.decided();
            let mut wait_until = None;
            match self.views.pick(affinity) {
                Picked::Connection(connection) => return Ok(connection),
                Picked::Failed(failure) if !wait_for_ready => {
                    return Err(Status::local(Code::Unavailable, failure.to_string()));
                }
                Picked::WaitUntil(at) => wait_until = Some(at),
                Picked::Failed(_) | Picked::Wait => {}
            }
            self.signals.call_waits();
            if !self.ensure_running() {
                return Err(Status::local(
                    Code::Unavailable,
                    "failed to connect: the runtime of the call shuts down",
                ));
            }
            match wait_until {
                None => decided.await,
                // Elapsed or decided: the choice is made again.
                Some(at) => drop(timeout_at(at.into(), decided).await),
            }
        }
    }

    /// Waits for the next decision. Returns false if calls fail at the moment, except those that `wait_for_ready`.
    pub(super) async fn decided(&self, wait_for_ready: bool) -> bool {
        let decided = self.views.decided();
        if !wait_for_ready && self.error().is_some() {
            return false;
        }
        self.signals.call_waits();
        if !self.ensure_running() {
            return false;
        }
        decided.await;
        true
    }

    /// Returns a connection that may have a free stream, of the least loaded endpoint.
    pub(super) fn with_free_stream(&self) -> FreeStream {
        self.views.with_free_stream()
    }

    pub(super) fn sets(&self) -> Vec<Arc<LaneSet>> {
        self.views.current().endpoints.clone()
    }

    pub(super) fn state(&self) -> ConnectivityState {
        self.views.current().state
    }

    /// Waits for the next decision, also if that comes before the future is polled.
    pub(super) fn state_changed(&self) -> Notified<'_> {
        self.views.decided()
    }

    pub(super) fn events(&self) -> &EventLog {
        &self.events
    }

    /// Returns why calls fail at the moment, if they do. This is no call: it connects nothing.
    pub(super) fn error(&self) -> Option<String> {
        Some(self.views.current().failure()?.to_string())
    }

    /// Starts the control's task if it does not run: the first time, and after its runtime has ended. Returns false if
    /// there is no runtime that runs it.
    fn ensure_running(&self) -> bool {
        let parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(control) = parked else { return true };
        let running = Running { control: Some(control), parked: Arc::clone(&self.parked) };
        let Some(runtime) = running.runtime() else { return false };
        let views = Arc::downgrade(&self.views);
        let task = runtime.spawn(async move {
            let mut running = running;
            if let Some(control) = &mut running.control {
                control.run(&views).await;
            }
        });
        !task.is_finished() || self.parked.lock().unwrap_or_else(PoisonError::into_inner).is_none()
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
