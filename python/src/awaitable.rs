//! The object that a coroutine awaits while an operation is under way: [`Awaitable`].
//!
//! It has the interface that `asyncio.Task` needs of a future, so that awaiting costs neither an `asyncio.Future` nor a
//! second trip through the event loop.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyBaseException, PyRuntimeError, PyStopAsyncIteration, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::queue::{Completion, CompletionQueue, Queue};

/// An operation that ends at some time.
pub(crate) trait Operation: Send + Sync {
    /// Returns the operation's result, or keeps a waiter of `poller` and wakes it when there may be one.
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>>;

    /// Called when the awaiting task is cancelled.
    fn cancel(&self, py: Python<'_>);
}

/// The poller of an operation.
#[derive(Clone, Copy)]
pub(crate) enum Poller<'a> {
    /// A task of an event loop.
    Task(&'a Py<Awaitable>),
    /// The current thread, which parks.
    Thread,
}

/// Wakes a poller. Needs no GIL.
pub(crate) enum Waiter {
    Task { awaitable: Py<Awaitable>, queue: Arc<Queue> },
    Thread(Thread),
}

impl Poller<'_> {
    pub(crate) fn waiter(self, py: Python<'_>) -> Waiter {
        match self {
            Self::Task(awaitable) => {
                let queue = Arc::clone(awaitable.get().completions.get().queue());
                Waiter::Task { awaitable: awaitable.clone_ref(py), queue }
            }
            Self::Thread => Waiter::Thread(thread::current()),
        }
    }
}

impl Waiter {
    /// Returns whether both wake the same thread.
    pub(crate) fn is_same_thread(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Thread(one), Self::Thread(other)) if one.id() == other.id())
    }

    pub(crate) fn wake(self) {
        match self {
            Self::Task { awaitable, queue } => queue.push(Completion::Wake(awaitable)),
            Self::Thread(thread) => thread.unpark(),
        }
    }
}

/// Time after which a blocked thread handles signals, such as Ctrl-C.
pub(crate) const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// Blocks the current thread until the operation ends, or `deadline` passes: then it returns `None`.
pub(crate) fn block_on(
    py: Python<'_>,
    operation: &dyn Operation,
    deadline: Option<Instant>,
) -> PyResult<Option<Py<PyAny>>> {
    loop {
        if let Some(result) = operation.poll(py, Poller::Thread) {
            return result.map(Some);
        }
        let mut pause = SIGNAL_INTERVAL;
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            pause = pause.min(left);
        }
        py.detach(|| thread::park_timeout(pause));
        py.check_signals()?;
    }
}

/// An operation in progress, awaited by one task.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct Awaitable {
    operation: Arc<dyn Operation>,
    completions: Py<CompletionQueue>,
    /// The result `EOF` ends an asynchronous iteration.
    is_next: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The protocol between `asyncio.Task` and its futures: set when yielded, reset by the task.
    is_blocking: bool,
    is_awaited: bool,
    /// The message of a cancellation.
    cancelled: Option<Py<PyAny>>,
    is_woken: bool,
    /// Functions to call once woken, and their contexts.
    callbacks: Vec<(Py<PyAny>, Option<Py<PyAny>>)>,
}

impl Awaitable {
    pub(crate) fn create(
        py: Python<'_>,
        operation: Arc<dyn Operation>,
        completions: &Py<CompletionQueue>,
    ) -> PyResult<Py<Self>> {
        let completions = completions.clone_ref(py);
        Py::new(py, Self { operation, completions, is_next: false, state: Mutex::default() })
    }

    /// Creates the awaitable of an iterator's next item. The result `EOF` ends the iteration.
    pub(crate) fn create_next(
        py: Python<'_>,
        operation: Arc<dyn Operation>,
        completions: &Py<CompletionQueue>,
    ) -> PyResult<Py<Self>> {
        let completions = completions.clone_ref(py);
        Py::new(py, Self { operation, completions, is_next: true, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the callbacks, on the loop's thread.
    pub(crate) fn wake(&self, py: Python<'_>, this: &Py<Self>) -> PyResult<()> {
        let mut state = self.lock();
        state.is_woken = true;
        let callbacks = mem::take(&mut state.callbacks);
        drop(state);
        for (callback, context) in callbacks {
            match context {
                Some(context) => context.call_method1(py, pyo3::intern!(py, "run"), (callback, this))?,
                None => callback.call1(py, (this,))?,
            };
        }
        Ok(())
    }
}

#[pymethods]
impl Awaitable {
    fn __await__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Polls the operation.
    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (this, py) = (slf.get(), slf.py());
        {
            let mut state = this.lock();
            let cancelled = state.cancelled.as_ref().map(|message| message.clone_ref(py));
            if let Some(message) = cancelled {
                drop(state);
                return Err(cancelled_error(py, message)?);
            }
            state.is_woken = false;
        }
        match this.operation.poll(py, Poller::Task(slf.as_unbound())) {
            Some(Ok(value)) if this.is_next && end_of_stream(py).is_ok_and(|end| end.is(&value)) => {
                Err(PyStopAsyncIteration::new_err(()))
            }
            Some(Ok(value)) => Err(stop_iteration(py, value)),
            Some(Err(error)) => Err(error),
            None => {
                let mut state = this.lock();
                (state.is_blocking, state.is_awaited) = (true, true);
                drop(state);
                Ok(slf.clone().into_any().unbind())
            }
        }
    }

    /// Needed in place of `__next__` by tasks that send values.
    fn send(slf: &Bound<'_, Self>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::__next__(slf)
    }

    /// `None` until awaited: only then is it a future to asyncio, which would otherwise wait without polling it.
    #[getter]
    fn _asyncio_future_blocking(&self) -> Option<bool> {
        let state = self.lock();
        state.is_awaited.then_some(state.is_blocking)
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, value: bool) {
        self.lock().is_blocking = value;
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.completions.get().event_loop().clone_ref(py)
    }

    #[pyo3(signature = (callback, *, context = None))]
    fn add_done_callback(
        slf: &Bound<'_, Self>,
        callback: Py<PyAny>,
        context: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let this = slf.get();
        let mut state = this.lock();
        if !state.is_woken {
            state.callbacks.push((callback, context));
            return Ok(());
        }
        drop(state);
        this.call_soon(slf, vec![(callback, context)])
    }

    fn remove_done_callback(&self, py: Python<'_>, callback: &Bound<'_, PyAny>) -> PyResult<usize> {
        let callbacks = mem::take(&mut self.lock().callbacks);
        let before = callbacks.len();
        let mut kept = Vec::with_capacity(before);
        for it in callbacks {
            if !it.0.bind(py).eq(callback)? {
                kept.push(it);
            }
        }
        let removed = before - kept.len();
        self.lock().callbacks = kept;
        Ok(removed)
    }

    /// Cancels the operation; the task gets `asyncio.CancelledError`.
    #[pyo3(signature = (msg = None))]
    fn cancel(slf: &Bound<'_, Self>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        let (this, py) = (slf.get(), slf.py());
        let mut state = this.lock();
        if state.cancelled.is_some() || state.is_woken {
            return Ok(false);
        }
        state.cancelled = Some(msg.unwrap_or_else(|| py.None()));
        state.is_woken = true;
        let callbacks = mem::take(&mut state.callbacks);
        drop(state);
        this.operation.cancel(py);
        this.call_soon(slf, callbacks)?;
        Ok(true)
    }

    fn cancelled(&self) -> bool {
        self.lock().cancelled.is_some()
    }

    fn done(&self) -> bool {
        self.lock().is_woken
    }

    fn exception(&self, py: Python<'_>) -> PyResult<()> {
        self.result(py)
    }

    /// Returns nothing: the task resumes and polls again. A cancellation is raised here.
    fn result(&self, py: Python<'_>) -> PyResult<()> {
        let state = self.lock();
        let cancelled = state.cancelled.as_ref().map(|message| message.clone_ref(py));
        let is_woken = state.is_woken;
        drop(state);
        match cancelled {
            Some(message) => Err(cancelled_error(py, message)?),
            None if is_woken => Ok(()),
            None => Err(PyRuntimeError::new_err("the operation is not done")),
        }
    }

    /// Leaves out the operation, which others share. The lock is free unless the collection was started under it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.completions)?;
        let Ok(state) = self.state.try_lock() else { return Ok(()) };
        visit.call(&state.cancelled)?;
        for (callback, context) in &state.callbacks {
            visit.call(callback)?;
            visit.call(context)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let callbacks = mem::take(&mut self.lock().callbacks);
        drop(callbacks);
    }
}

impl Awaitable {
    fn call_soon(
        &self,
        slf: &Bound<'_, Self>,
        callbacks: Vec<(Py<PyAny>, Option<Py<PyAny>>)>,
    ) -> PyResult<()> {
        let py = slf.py();
        let event_loop = self.completions.get().event_loop().bind(py);
        for (callback, context) in callbacks {
            let arguments = PyTuple::new(py, [callback.into_bound(py), slf.clone().into_any()])?;
            let keywords = PyDict::new(py);
            if let Some(context) = context {
                keywords.set_item("context", context)?;
            }
            event_loop.call_method("call_soon", arguments, Some(&keywords))?;
        }
        Ok(())
    }
}

/// Returns the exception with the result of an awaitable.
fn stop_iteration(py: Python<'_>, value: Py<PyAny>) -> PyErr {
    let must_be_wrapped = {
        let value = value.bind(py);
        value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyBaseException>()
    };
    // CPython 3.10 and 3.11 take a plain value without creating the exception object.
    if must_be_wrapped { PyStopIteration::new_err((value,)) } else { PyStopIteration::new_err(value) }
}

/// Returns `grpc.aio.EOF`.
pub(crate) fn end_of_stream(py: Python<'_>) -> PyResult<Py<PyAny>> {
    static EOF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let eof = EOF
        .get_or_try_init(py, || PyResult::Ok(py.import("thalweg.grpc.aio._eof")?.getattr("EOF")?.unbind()))?;
    Ok(eof.clone_ref(py))
}

fn cancelled_error(py: Python<'_>, message: Py<PyAny>) -> PyResult<PyErr> {
    static CANCELLED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CANCELLED
        .get_or_try_init(py, || PyResult::Ok(py.import("asyncio")?.getattr("CancelledError")?.unbind()))?;
    let error = if message.is_none(py) { class.call0(py)? } else { class.call1(py, (message,))? };
    Ok(PyErr::from_value(error.into_bound(py)))
}
