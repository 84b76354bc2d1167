//! Unary calls of `grpc.aio`: from a request to its response.

use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use http::HeaderMap;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use thalweg_core::Code;
use thalweg_engine::{self as engine, CallOptions, Method};

use crate::awaitable::{Awaitable, Operation, Poller, Waiter};
use crate::channel::{Channel, ChannelState, InFlight};
use crate::loops;
use crate::message::{self, Message};
use crate::metadata::{self, Given};
use crate::options;
use crate::queue::{Completion, CompletionQueue, Queue};
use crate::runtime;
use crate::status::{self, CANCELLED, Ended};

/// A unary method of a channel, to be called from a coroutine.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct UnaryUnaryMultiCallable {
    channel: Py<Channel>,
    method: Arc<Method>,
    serializer: Option<Py<PyAny>>,
    deserializer: Option<Py<PyAny>>,
}

#[pymethods]
impl UnaryUnaryMultiCallable {
    #[new]
    fn new(
        channel: Py<Channel>,
        method: &str,
        serializer: Option<Py<PyAny>>,
        deserializer: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self { channel, method: options::method(method)?, serializer, deserializer })
    }

    /// Starts a call.
    #[pyo3(signature = (request, *, timeout = None, metadata = None, credentials = None, wait_for_ready = None, compression = None))]
    fn __call__(
        &self,
        py: Python<'_>,
        request: Bound<'_, PyAny>,
        timeout: Option<f64>,
        metadata: Option<Given>,
        credentials: Option<Py<PyAny>>,
        wait_for_ready: Option<bool>,
        compression: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<UnaryUnaryCall>> {
        let _ = credentials;
        let completions = loops::current(py)?;
        let request = match &self.serializer {
            Some(serializer) => serializer.bind(py).call1((request,))?,
            None => request,
        };
        let message = Message::from_python(request)?;
        let channel_options = self.channel.get().state().call_options();
        let call_options =
            options::call_options(channel_options, timeout, wait_for_ready, compression.as_ref())?;
        let deadline = call_options.timeout.map(|timeout| Instant::now() + timeout);
        let call = Arc::new(UnaryCall {
            state: Mutex::default(),
            queue: Arc::clone(completions.get().queue()),
            deserializer: self.deserializer.as_ref().map(|it| it.clone_ref(py)),
            response: Mutex::default(),
        });
        let weak: Weak<UnaryCall> = Arc::downgrade(&call);
        let (channel, key) = self.channel.get().state().start(weak)?;
        let start = Start {
            engine: channel,
            channel: Arc::clone(self.channel.get().state()),
            key,
            method: Arc::clone(&self.method),
            options: call_options,
            metadata: metadata.map_or_else(HeaderMap::new, |given| given.0),
            message,
            call: Arc::clone(&call),
        };
        runtime::runtime()?.spawn(start.run());
        Py::new(py, UnaryUnaryCall { call, completions, deadline })
    }
}

/// A call to be made on an I/O thread.
struct Start {
    engine: engine::Channel,
    channel: Arc<ChannelState>,
    key: usize,
    method: Arc<Method>,
    options: CallOptions,
    metadata: HeaderMap,
    message: Message,
    call: Arc<UnaryCall>,
}

impl Start {
    async fn run(self) {
        let Self { engine, channel, key, method, options, metadata, message, call } = self;
        let outcome = {
            let mut sent = pin!(engine.unary(&method, &metadata, &message, &options));
            poll_fn(|cx| if call.goes_on(cx) { sent.as_mut().poll(cx).map(Some) } else { Poll::Ready(None) })
                .await
        };
        channel.ended(key);
        let ended = match outcome {
            None => return,
            Some(Err(status)) => Ended::failed(&status),
            Some(Ok(mut response)) => match response.message().open().map(message::into_bytes) {
                Ok(bytes) => {
                    let (initial, trailing) = response.finish_apart();
                    let trailing = trailing.map_or_else(HeaderMap::new, |it| *it);
                    Ended::ok(initial, trailing, Some(bytes))
                }
                Err(status) => Ended::failed(&response.fail(status, &engine, &method)),
            },
        };
        call.end(ended);
    }
}

/// The state of a call, shared with its I/O task.
struct UnaryCall {
    state: Mutex<State>,
    queue: Arc<Queue>,
    deserializer: Option<Py<PyAny>>,
    /// The response, once deserialized.
    response: Mutex<Option<Py<PyAny>>>,
}

#[derive(Default)]
struct State {
    ended: Option<Arc<Ended>>,
    /// Wakes the I/O task.
    task: Option<Waker>,
    waiter: Option<Waiter>,
    /// Further waiters.
    waiters: Vec<Waiter>,
    /// Callbacks, and the call that they get.
    callbacks: Vec<(Py<PyAny>, Py<PyAny>)>,
}

impl UnaryCall {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns false if the call was cancelled. Keeps the I/O task's waker.
    fn goes_on(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if state.ended.is_some() {
            return false;
        }
        match &mut state.task {
            Some(task) => task.clone_from(cx.waker()),
            None => state.task = Some(cx.waker().clone()),
        }
        true
    }

    /// Ends the call. Returns false if it had ended.
    fn end(&self, ended: Ended) -> bool {
        let mut state = self.lock();
        if state.ended.is_some() {
            return false;
        }
        state.ended = Some(Arc::new(ended));
        let State { waiter, waiters, callbacks, task, .. } = &mut *state;
        let (waiter, waiters, callbacks) = (waiter.take(), mem::take(waiters), mem::take(callbacks));
        let task = task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
        for waiter in waiter.into_iter().chain(waiters) {
            waiter.wake();
        }
        for (callback, call) in callbacks {
            self.queue.push(Completion::Call(callback, call));
        }
        true
    }

    fn ended(&self) -> Option<Arc<Ended>> {
        self.lock().ended.clone()
    }

    /// Returns the end, or keeps a waiter.
    fn ended_or_wait(&self, py: Python<'_>, poller: Poller<'_>) -> Option<Arc<Ended>> {
        let waiter = poller.waiter(py);
        let mut state = self.lock();
        if let Some(ended) = &state.ended {
            let ended = Arc::clone(ended);
            drop(state);
            return Some(ended);
        }
        match &state.waiter {
            None => state.waiter = Some(waiter),
            Some(_) => state.waiters.push(waiter),
        }
        None
    }

    fn response(&self, py: Python<'_>, ended: &Ended) -> PyResult<Py<PyAny>> {
        let cached = self.response.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(response) = &*cached {
            return Ok(response.clone_ref(py));
        }
        drop(cached);
        let bytes = PyBytes::new(py, ended.response.as_deref().unwrap_or_default());
        let response = match &self.deserializer {
            Some(deserializer) => deserializer.bind(py).call1((bytes,))?.unbind(),
            None => bytes.into_any().unbind(),
        };
        *self.response.lock().unwrap_or_else(PoisonError::into_inner) = Some(response.clone_ref(py));
        Ok(response)
    }
}

impl InFlight for UnaryCall {
    fn cancel(&self, details: &str) {
        self.end(Ended::cancelled(details));
    }
}

/// Awaits the response.
impl Operation for UnaryCall {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        let ended = self.ended_or_wait(py, poller)?;
        Some(if ended.code == Code::Ok { self.response(py, &ended) } else { Err(ended.aio_error(py)) })
    }

    fn cancel(&self, _: Python<'_>) {
        self.end(Ended::cancelled(CANCELLED));
    }
}

/// Awaits the end of a call, whatever it is. Giving up waiting does not cancel the call.
struct End(Arc<UnaryCall>);

impl Operation for End {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        self.0.ended_or_wait(py, poller).map(|_| Ok(py.None()))
    }

    fn cancel(&self, _: Python<'_>) {}
}

/// A unary call of `grpc.aio`. Its coroutines are added in Python, on top of `_end`.
#[pyclass(frozen, weakref, module = "thalweg._native")]
pub(crate) struct UnaryUnaryCall {
    call: Arc<UnaryCall>,
    completions: Py<CompletionQueue>,
    deadline: Option<Instant>,
}

#[pymethods]
impl UnaryUnaryCall {
    fn __await__(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::clone(&self.call) as _, &self.completions)
    }

    /// Returns an awaitable of the end.
    fn _end(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::new(End(Arc::clone(&self.call))), &self.completions)
    }

    /// Returns code, details, initial and trailing metadata of an ended call.
    fn _outcome(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>, String, Py<PyTuple>, Py<PyTuple>)>> {
        let Some(ended) = self.call.ended() else { return Ok(None) };
        let initial = metadata::to_python(py, &ended.initial_metadata)?;
        let trailing = metadata::to_python(py, &ended.trailing_metadata)?;
        Ok(Some((status::code(py, ended.code)?, ended.details.clone(), initial, trailing)))
    }

    fn cancel(&self) -> bool {
        self.call.end(Ended::cancelled(CANCELLED))
    }

    fn cancelled(&self) -> bool {
        self.call.ended().is_some_and(|ended| ended.is_cancelled)
    }

    fn done(&self) -> bool {
        self.call.ended().is_some()
    }

    /// Returns the seconds until the deadline, or `None`.
    fn time_remaining(&self) -> Option<f64> {
        self.deadline.map(|deadline| (deadline - Instant::now()).as_secs_f64())
    }

    /// Calls `callback` with the call once it has ended.
    fn add_done_callback(slf: &Bound<'_, Self>, callback: Py<PyAny>) -> PyResult<()> {
        let call = &slf.get().call;
        let mut state = call.lock();
        if state.ended.is_none() {
            state.callbacks.push((callback, slf.clone().into_any().unbind()));
            return Ok(());
        }
        drop(state);
        callback.call1(slf.py(), (slf,)).map(drop)
    }
}
