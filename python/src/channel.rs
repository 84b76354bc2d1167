//! A channel, for both of grpcio's interfaces: [`Channel`].

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg_engine::{self as engine, ConnectivityState};
use tokio::task::AbortHandle;

use crate::credentials::ChannelCredentials;
use crate::loops;
use crate::options::ChannelSettings;
use crate::queue::{Completion, CompletionQueue, Queue};
use crate::runtime;

/// A call that a channel can cancel.
pub(crate) trait InFlight: Send + Sync {
    /// Ends the call with CANCELLED, unless it has ended.
    fn cancel(&self, details: &str);
}

/// A channel of the engine, created when it is first used, and again in a child process after `fork`.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct Channel(Arc<ChannelState>);

/// The state of a channel, shared with the I/O tasks of its calls.
pub(crate) struct ChannelState {
    target: String,
    settings: ChannelSettings,
    is_closed: AtomicBool,
    /// In the process that created the channel.
    first: OfProcess,
}

/// The state of a channel in one process. A child process cannot use that of its parent: a thread that `fork` has not
/// copied may hold the lock.
struct OfProcess {
    generation: u64,
    state: Mutex<State>,
    /// In a child process made by `fork`, once used there.
    child: OnceLock<Box<OfProcess>>,
}

#[derive(Default)]
struct State {
    engine: Option<engine::Channel>,
    calls: slab::Slab<Weak<dyn InFlight>>,
    /// Callbacks, with their queue and argument, for the time when there are no calls.
    idle: Vec<(Arc<Queue>, Py<PyAny>, Py<PyAny>)>,
    watches: BTreeMap<u64, Arc<Watch>>,
    /// Number of watches so far. The key of a watch is not used again.
    watched: u64,
    /// The task that connects the channel without a call.
    connecting: Option<AbortHandle>,
}

impl OfProcess {
    fn new(generation: u64) -> Self {
        Self { generation, state: Mutex::default(), child: OnceLock::new() }
    }
}

/// Calls a function once when the connectivity of a channel has changed.
struct Watch {
    queue: Arc<Queue>,
    callback: Mutex<Option<Py<PyAny>>>,
    task: OnceLock<AbortHandle>,
}

impl Watch {
    fn take(&self) -> Option<Py<PyAny>> {
        self.callback.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn changed(&self, state: ConnectivityState) {
        if let Some(callback) = self.take() {
            self.queue.push(Completion::StateChanged(callback, number(state)));
        }
    }

    fn abort(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// Returns the number of a state, that of `grpc.ChannelConnectivity`.
fn number(state: ConnectivityState) -> i32 {
    match state {
        ConnectivityState::Idle => 0,
        ConnectivityState::Connecting => 1,
        ConnectivityState::Ready => 2,
        ConnectivityState::TransientFailure => 3,
        ConnectivityState::Shutdown => 4,
    }
}

/// Returns the state of a number; `None` for -1, which is no state.
fn state_of(number: i32) -> PyResult<Option<ConnectivityState>> {
    Ok(Some(match number {
        -1 => return Ok(None),
        0 => ConnectivityState::Idle,
        1 => ConnectivityState::Connecting,
        2 => ConnectivityState::Ready,
        3 => ConnectivityState::TransientFailure,
        4 => ConnectivityState::Shutdown,
        _ => return Err(PyValueError::new_err(format!("no connectivity state has the number {number}"))),
    }))
}

impl Channel {
    pub(crate) fn state(&self) -> &Arc<ChannelState> {
        &self.0
    }

    /// Returns the queue of the running event loop, for a new call.
    ///
    /// # Errors
    /// Returns `RuntimeError` outside of a coroutine or callback, and `UsageError` if the channel is closed.
    pub(crate) fn loop_queue(&self, py: Python<'_>) -> PyResult<Py<CompletionQueue>> {
        if self.0.is_closed() {
            let error = py.import("thalweg.grpc.aio._errors")?.getattr("UsageError")?;
            return Err(PyErr::from_value(error.call1(("Channel is closed.",))?));
        }
        loops::current(py)
    }

    /// Returns the engine's channel, and registers the call as in flight until the registration is dropped.
    ///
    /// # Errors
    /// Returns `ValueError` if the channel is closed or its target is invalid.
    pub(crate) fn register(&self, call: Weak<dyn InFlight>) -> PyResult<(engine::Channel, Registration)> {
        let mut state = self.0.lock();
        if self.0.is_closed() {
            return Err(PyValueError::new_err("Cannot invoke RPC on closed channel!"));
        }
        let engine = self.0.engine(&mut state)?;
        let key = state.calls.insert(call);
        Ok((engine, Registration { channel: Arc::clone(&self.0), key, generation: runtime::generation() }))
    }
}

/// A call in flight.
pub(crate) struct Registration {
    channel: Arc<ChannelState>,
    key: usize,
    /// The generation of the process that has registered it.
    generation: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // In a child process, the key may be that of another call.
        if self.generation == runtime::generation() {
            self.channel.ended(self.key);
        }
    }
}

impl ChannelState {
    fn lock(&self) -> MutexGuard<'_, State> {
        let generation = runtime::generation();
        let mut of_process = &self.first;
        while of_process.generation != generation {
            of_process = of_process.child.get_or_init(|| Box::new(OfProcess::new(generation)));
        }
        of_process.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the options of calls that set none of their own.
    pub(crate) fn call_options(&self) -> &engine::CallOptions {
        &self.settings.config.call_options
    }

    /// Unregisters the call.
    fn ended(&self, key: usize) {
        let mut state = self.lock();
        state.calls.try_remove(key);
        if !state.idle.is_empty() && state.calls.is_empty() {
            let idle = mem::take(&mut state.idle);
            drop(state);
            for (queue, callback, argument) in idle {
                queue.push(Completion::Call(callback, argument));
            }
        }
    }

    /// Changes only under the lock.
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn engine(&self, state: &mut State) -> PyResult<engine::Channel> {
        match &state.engine {
            Some(engine) => Ok(engine.clone()),
            None => self.create(state),
        }
    }

    #[cold]
    fn create(&self, state: &mut State) -> PyResult<engine::Channel> {
        let runtime = runtime::runtime()?;
        let _entered = runtime.enter();
        let mut config = self.settings.config.clone();
        let target = self.settings.set_resolver(&self.target, &mut config)?;
        let created =
            engine::Channel::new(target, config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        state.engine = Some(created.clone());
        Ok(created)
    }

    fn forget_watch(&self, key: u64) -> Option<Arc<Watch>> {
        self.lock().watches.remove(&key)
    }
}

#[pymethods]
impl Channel {
    /// Creates a channel with the settings of `thalweg.grpc._options`. It is insecure without credentials.
    #[new]
    #[pyo3(signature = (target, settings = None, credentials = None))]
    fn new(
        target: String,
        settings: Option<&Bound<'_, PyDict>>,
        credentials: Option<&Bound<'_, ChannelCredentials>>,
    ) -> PyResult<Self> {
        let mut settings = ChannelSettings::from_python(settings)?;
        let name = settings.tls_name.clone();
        let credentials = credentials.map(Bound::get);
        ChannelCredentials::apply(credentials, &target, name.as_deref(), &mut settings.config)?;
        let (first, is_closed) = (OfProcess::new(runtime::generation()), AtomicBool::new(false));
        Ok(Self(Arc::new(ChannelState { target, settings, is_closed, first })))
    }

    /// Returns the number of the connectivity state. With `try_to_connect`, a channel that is not connected starts to
    /// connect, and retries until it is.
    #[pyo3(name = "state")]
    fn connectivity(&self, try_to_connect: bool) -> PyResult<i32> {
        let mut state = self.0.lock();
        if self.0.is_closed() {
            return Ok(number(ConnectivityState::Shutdown));
        }
        if !try_to_connect && state.engine.is_none() {
            return Ok(number(ConnectivityState::Idle));
        }
        let engine = self.0.engine(&mut state)?;
        let current = engine.state();
        let is_connecting = state.connecting.as_ref().is_some_and(|task| !task.is_finished());
        if try_to_connect && current != ConnectivityState::Ready && !is_connecting {
            let task = runtime::runtime()?.spawn(async move {
                // It fails only if the runtime shuts down.
                let _ = engine.connect_with_retries().await;
            });
            state.connecting = Some(task.abort_handle());
        }
        Ok(number(current))
    }

    /// Calls `callback(state)` once, by `completions`, when the connectivity state differs from `last`; at once if it
    /// does, or if `last` is -1. Returns a key for `forget_state_change`.
    fn on_state_change(
        &self,
        completions: &Bound<'_, CompletionQueue>,
        last: i32,
        callback: Py<PyAny>,
    ) -> PyResult<Option<u64>> {
        let queue = Arc::clone(completions.get().queue());
        let last = state_of(last)?;
        let mut state = self.0.lock();
        if self.0.is_closed() {
            drop(state);
            if last != Some(ConnectivityState::Shutdown) {
                let shutdown = number(ConnectivityState::Shutdown);
                queue.push(Completion::StateChanged(callback, shutdown));
            }
            return Ok(None);
        }
        let engine = self.0.engine(&mut state)?;
        let watch = Arc::new(Watch { queue, callback: Mutex::new(Some(callback)), task: OnceLock::new() });
        state.watched += 1;
        let key = state.watched;
        state.watches.insert(key, Arc::clone(&watch));
        let channel = Arc::downgrade(&self.0);
        let changed = Arc::clone(&watch);
        let task = runtime::runtime()?.spawn(async move {
            let state = match last {
                Some(last) => engine.state_changed(last).await,
                None => engine.state(),
            };
            drop(engine);
            if let Some(channel) = channel.upgrade() {
                channel.forget_watch(key);
            }
            changed.changed(state);
        });
        let _ = watch.task.set(task.abort_handle());
        Ok(Some(key))
    }

    /// Gives up a call of `on_state_change`, if it has not come yet.
    fn forget_state_change(&self, key: u64) {
        if let Some(watch) = self.0.forget_watch(key) {
            watch.abort();
            drop(watch.take());
        }
    }

    /// Refuses further calls. Those in flight go on.
    fn refuse_calls(&self) {
        let _state = self.0.lock();
        self.0.is_closed.store(true, Ordering::Relaxed);
    }

    /// Calls `callback` with `argument`, by `completions`, once there are no calls in flight.
    fn on_idle(&self, completions: &Bound<'_, CompletionQueue>, callback: Py<PyAny>, argument: Py<PyAny>) {
        let queue = Arc::clone(completions.get().queue());
        let mut state = self.0.lock();
        if state.calls.is_empty() {
            drop(state);
            return queue.push(Completion::Call(callback, argument));
        }
        state.idle.push((queue, callback, argument));
    }

    /// Cancels all calls and closes the connections.
    fn close(&self, details: &str) {
        let mut state = self.0.lock();
        self.0.is_closed.store(true, Ordering::Relaxed);
        let State { engine, calls, idle, watches, watched: _, connecting } = mem::take(&mut *state);
        drop(state);
        if let Some(connecting) = connecting {
            connecting.abort();
        }
        for watch in watches.into_values() {
            watch.abort();
            watch.changed(ConnectivityState::Shutdown);
        }
        for (_, call) in calls {
            if let Some(call) = call.upgrade() {
                call.cancel(details);
            }
        }
        for (queue, callback, argument) in idle {
            queue.push(Completion::Call(callback, argument));
        }
        drop(engine);
    }
}

impl Drop for OfProcess {
    fn drop(&mut self) {
        let state = mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        if self.generation != runtime::generation() {
            // It belongs to the parent process.
            return mem::forget(state);
        }
        if let Some(connecting) = &state.connecting {
            connecting.abort();
        }
        for watch in state.watches.values() {
            watch.abort();
        }
    }
}
