//! A channel, for both of grpcio's interfaces: [`Channel`].

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg_engine as engine;

use crate::credentials::ChannelCredentials;
use crate::options::ChannelSettings;
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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    engine: Option<(u64, engine::Channel)>,
    is_closed: bool,
    calls: slab::Slab<Weak<dyn InFlight>>,
}

impl Channel {
    pub(crate) fn state(&self) -> &Arc<ChannelState> {
        &self.0
    }
}

impl ChannelState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the options of calls that set none of their own.
    pub(crate) fn call_options(&self) -> &engine::CallOptions {
        &self.settings.config.call_options
    }

    /// Returns the engine's channel and registers the call as in flight.
    pub(crate) fn start(&self, call: Weak<dyn InFlight>) -> PyResult<(engine::Channel, usize)> {
        let mut state = self.lock();
        let engine = self.engine(&mut state)?;
        Ok((engine, state.calls.insert(call)))
    }

    /// Unregisters the call.
    pub(crate) fn ended(&self, key: usize) {
        self.lock().calls.try_remove(key);
    }

    fn engine(&self, state: &mut State) -> PyResult<engine::Channel> {
        if let Some((generation, engine)) = &state.engine
            && *generation == runtime::generation()
        {
            return Ok(engine.clone());
        }
        self.create(state)
    }

    #[cold]
    fn create(&self, state: &mut State) -> PyResult<engine::Channel> {
        let runtime = runtime::runtime()?;
        let _entered = runtime.enter();
        let mut config = self.settings.config.clone();
        self.settings.set_resolver(&self.target, &mut config)?;
        let created = engine::Channel::new(&self.target, config)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let old = state.engine.replace((runtime::generation(), created.clone()));
        // It belongs to the parent process.
        mem::forget(old);
        Ok(created)
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
        Ok(Self(Arc::new(ChannelState { target, settings, state: Mutex::default() })))
    }

    /// Returns the number of calls in flight.
    fn in_flight(&self) -> usize {
        self.0.lock().calls.len()
    }

    /// Cancels all calls and closes the connections.
    fn close(&self, details: &str) {
        let mut state = self.0.lock();
        state.is_closed = true;
        let calls = mem::take(&mut state.calls);
        let engine = state.engine.take();
        drop(state);
        for (_, call) in calls {
            if let Some(call) = call.upgrade() {
                call.cancel(details);
            }
        }
        drop(engine);
    }
}

impl Drop for ChannelState {
    fn drop(&mut self) {
        let engine = self.lock().engine.take();
        match engine {
            Some((generation, engine)) if generation != runtime::generation() => mem::forget(engine),
            other => drop(other),
        }
    }
}
