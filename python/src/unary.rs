//! Unary calls of `grpc.aio`: from a request to its response.

use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use http::HeaderMap;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg_core::Code;
use thalweg_engine::{self as engine, CallOptions, Method};

use crate::awaitable::{Awaitable, Operation, Poller, Waiter};
use crate::channel::{Channel, InFlight, Registration};
use crate::exchange::Exchange;
use crate::message::{self, Message};
use crate::metadata::{self, Given};
use crate::options;
use crate::queue::{Completion, CompletionQueue, Queue, Submission};
use crate::status::{CANCELLED, Ended, Outcome};
use crate::stream;

/// A unary method of a channel, to be called from a coroutine.
#[pyclass(frozen, weakref, module = "thalweg._native")]
pub(crate) struct UnaryUnaryMultiCallable {
    channel: Py<Channel>,
    method: Arc<Method>,
    serializer: Option<Py<PyAny>>,
    deserializer: Option<Py<PyAny>>,
    /// Called in place of this object for calls with credentials, whose metadata must be awaited first.
    authenticated: Option<Py<PyAny>>,
}

#[pymethods]
impl UnaryUnaryMultiCallable {
    #[new]
    #[pyo3(signature = (channel, method, serializer, deserializer, authenticated = None))]
    fn new(
        channel: Py<Channel>,
        method: &str,
        serializer: Option<Py<PyAny>>,
        deserializer: Option<Py<PyAny>>,
        authenticated: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self { channel, method: options::method(method)?, serializer, deserializer, authenticated })
    }

    /// `authenticated` refers to this object. The collector clears that one: it is a Python object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.channel)?;
        visit.call(&self.serializer)?;
        visit.call(&self.deserializer)?;
        visit.call(&self.authenticated)
    }

    /// Starts a call.
    #[expect(clippy::too_many_arguments, reason = "the arguments of a call in Python")]
    #[pyo3(signature = (request, *, timeout = None, metadata = None, credentials = None, wait_for_ready = None, compression = None))]
    fn __call__(
        &self,
        py: Python<'_>,
        request: Bound<'_, PyAny>,
        timeout: Option<f64>,
        metadata: Option<Bound<'_, PyAny>>,
        credentials: Option<Py<PyAny>>,
        wait_for_ready: Option<bool>,
        compression: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if let (Some(credentials), Some(authenticated)) = (credentials, &self.authenticated) {
            let keywords = PyDict::new(py);
            keywords.set_item("timeout", timeout)?;
            keywords.set_item("metadata", metadata)?;
            keywords.set_item("credentials", credentials)?;
            keywords.set_item("wait_for_ready", wait_for_ready)?;
            keywords.set_item("compression", compression)?;
            return authenticated.call(py, (request,), Some(&keywords));
        }
        let completions = self.channel.get().loop_queue(py)?;
        let request = match &self.serializer {
            Some(serializer) => serializer.bind(py).call1((request,))?,
            None => request,
        };
        let message = Message::from_python(request)?;
        let channel = self.channel.get().state();
        let metadata = metadata.map(|given| given.extract::<Given>()).transpose()?;
        let call_options =
            options::call_options(channel.call_options(), timeout, wait_for_ready, compression.as_ref())?;
        let deadline = call_options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let call = Arc::new(UnaryCall {
            state: Mutex::default(),
            io: Mutex::default(),
            is_queued: AtomicBool::new(false),
            queue: Arc::clone(completions.get().queue()),
            deserializer: self.deserializer.as_ref().map(|it| it.clone_ref(py)),
            response: Mutex::default(),
        });
        let weak = Arc::downgrade(&call);
        let (engine, registration) = self.channel.get().register(Weak::clone(&weak) as _)?;
        let start = Start {
            engine,
            method: Arc::clone(&self.method),
            options: call_options,
            metadata: metadata.map_or_else(HeaderMap::new, |given| given.0),
            message,
            call: weak,
            _registration: registration,
        };
        *call.io() = Some(Box::pin(start.run()));
        CompletionQueue::submit(completions.bind(py), Submission::Unary(Arc::clone(&call)))?;
        Ok(Py::new(py, UnaryUnaryCall { call, completions, deadline })?.into_any())
    }
}

/// A call that has not started.
struct Start {
    engine: engine::Channel,
    method: Arc<Method>,
    options: CallOptions,
    metadata: HeaderMap,
    message: Message,
    call: Weak<UnaryCall>,
    _registration: Registration,
}

impl Start {
    async fn run(self) -> Ended {
        match self.call.upgrade().filter(|call| call.lock().wants_headers) {
            None => {
                let Self { engine, method, options, metadata, message, .. } = &self;
                whole_response(engine, method, metadata, message, options).await
            }
            Some(call) => Box::pin(self.in_parts(call)).await,
        }
    }

    /// Takes the response's metadata before its message. It costs more, so it is done only if someone waits for it.
    async fn in_parts(&self, call: Arc<UnaryCall>) -> Ended {
        let Self { engine, method, options, metadata, message, .. } = self;
        let request = Exchange::new(Arc::clone(&call.queue));
        request.send(message.clone());
        request.done_sending();
        let received = |headers: &HeaderMap| call.received_headers(headers.clone());
        stream::only_response(engine, method, options, metadata, request, received).await
    }
}

/// Makes a call on the engine and waits for the whole response.
pub(crate) async fn whole_response(
    engine: &engine::Channel,
    method: &Method,
    metadata: &HeaderMap,
    message: &Message,
    options: &CallOptions,
) -> Ended {
    match engine.unary(method, metadata, message, options).await {
        Err(status) => Ended::failed(&status),
        Ok(mut response) => match response.message().open().map(message::into_bytes) {
            Ok(bytes) => {
                let (initial, trailing) = response.finish_apart();
                Ended::ok(initial, trailing.map_or_else(HeaderMap::new, |it| *it), Some(bytes))
            }
            Err(status) => Ended::failed(&response.fail(status, engine, method)),
        },
    }
}

/// State of a call. Its I/O is a future that is woken by news from the connection. The first poll is on an I/O thread;
/// the others are on the event loop's thread, which needs the result.
pub(crate) struct UnaryCall {
    state: Mutex<State>,
    io: Mutex<Option<Io>>,
    /// The queue has a completion that polls the future.
    is_queued: AtomicBool,
    queue: Arc<Queue>,
    deserializer: Option<Py<PyAny>>,
    /// The response, once deserialized.
    response: Mutex<Option<Py<PyAny>>>,
}

type Io = Pin<Box<dyn Future<Output = Ended> + Send>>;

#[derive(Default)]
struct State {
    ended: Option<Arc<Ended>>,
    /// Set before the start if someone waits for the server's initial metadata.
    wants_headers: bool,
    headers: Option<Arc<HeaderMap>>,
    headers_waiters: Vec<Waiter>,
    followers: Followers,
}

/// Waiters for the end of a call, and callbacks.
#[derive(Default)]
struct Followers {
    waiter: Option<Waiter>,
    /// Further waiters.
    waiters: Vec<Waiter>,
    /// Callbacks, and the call that they get.
    callbacks: Vec<(Py<PyAny>, Py<PyAny>)>,
}

impl Followers {
    fn notify(self, queue: &Queue) {
        self.waiter.into_iter().chain(self.waiters).for_each(Waiter::wake);
        for (callback, call) in self.callbacks {
            queue.push(Completion::Call(callback, call));
        }
    }
}

impl Wake for UnaryCall {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            let queue = Arc::clone(&self.queue);
            queue.push(Completion::Advance(self));
        }
    }
}

impl UnaryCall {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn io(&self) -> MutexGuard<'_, Option<Io>> {
        self.io.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the request, on an I/O thread.
    pub(crate) fn start(self: Arc<Self>) {
        if let Some(followers) = self.poll() {
            followers.notify(&self.queue);
        }
    }

    /// Continues after news from the connection, on the event loop's thread.
    pub(crate) fn advance(self: Arc<Self>, py: Python<'_>) -> PyResult<()> {
        self.is_queued.store(false, Ordering::Release);
        let Some(mut followers) = self.poll() else { return Ok(()) };
        let waiter = followers.waiter.take();
        followers.notify(&self.queue);
        match waiter {
            // The task that awaits the response goes on here and now.
            Some(Waiter::Task { awaitable, .. }) => awaitable.get().wake(py, &awaitable),
            Some(waiter @ Waiter::Thread(_)) => {
                waiter.wake();
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Polls the future. Returns who is to be notified when the call has ended.
    fn poll(self: &Arc<Self>) -> Option<Followers> {
        let mut io = self.io();
        let future = io.as_mut()?;
        let waker = Waker::from(Arc::clone(self));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let done = if polled.is_ready() { io.take() } else { None };
        drop(io);
        drop(done);
        match polled {
            Poll::Ready(ended) => self.end(ended),
            Poll::Pending => {
                // A canceller that found the future locked has left it to be dropped here. Only now that the lock is
                // free no later one can miss it.
                if self.lock().ended.is_some() {
                    self.drop_io();
                }
                None
            }
        }
    }

    /// Drops the future, which cancels the call at the server. If it is being polled, its poller drops it.
    fn drop_io(&self) {
        let io = match self.io.try_lock() {
            Ok(mut io) => io.take(),
            Err(TryLockError::Poisoned(io)) => io.into_inner().take(),
            Err(TryLockError::WouldBlock) => None,
        };
        drop(io);
    }

    /// Ends the call and returns who is to be notified, unless it had ended.
    fn end(&self, ended: Ended) -> Option<Followers> {
        let ended = Arc::new(ended);
        let mut state = self.lock();
        if state.ended.is_some() {
            return None;
        }
        state.ended = Some(ended);
        let mut followers = mem::take(&mut state.followers);
        if !state.headers_waiters.is_empty() {
            followers.waiters.append(&mut state.headers_waiters);
        }
        Some(followers)
    }

    /// Ends the call with CANCELLED, at the server, too. Returns false if it had ended.
    fn cancel_with(&self, details: &str) -> bool {
        let Some(followers) = self.end(Ended::cancelled(details)) else { return false };
        self.drop_io();
        followers.notify(&self.queue);
        true
    }

    fn received_headers(&self, headers: HeaderMap) {
        let headers = Arc::new(headers);
        let mut state = self.lock();
        state.headers = Some(headers);
        let waiters = mem::take(&mut state.headers_waiters);
        drop(state);
        waiters.into_iter().for_each(Waiter::wake);
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
        match &state.followers.waiter {
            None => state.followers.waiter = Some(waiter),
            Some(_) => state.followers.waiters.push(waiter),
        }
        None
    }

    /// Returns the server's initial metadata, or keeps a waiter.
    fn headers_or_wait(&self, py: Python<'_>, poller: Poller<'_>) -> Option<Arc<HeaderMap>> {
        let waiter = poller.waiter(py);
        let mut state = self.lock();
        if let Some(headers) = &state.headers {
            let headers = Arc::clone(headers);
            drop(state);
            return Some(headers);
        }
        if let Some(ended) = &state.ended {
            let headers = Arc::new(ended.initial_metadata.clone());
            drop(state);
            return Some(headers);
        }
        state.headers_waiters.push(waiter);
        None
    }

    fn response(&self, py: Python<'_>, ended: &Ended) -> PyResult<Py<PyAny>> {
        let cached = self.response.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(response) = &*cached {
            return Ok(response.clone_ref(py));
        }
        drop(cached);
        let response = ended.response(py, self.deserializer.as_ref())?;
        let kept = response.clone_ref(py);
        let old = self.response.lock().unwrap_or_else(PoisonError::into_inner).replace(kept);
        drop(old);
        Ok(response)
    }
}

impl InFlight for UnaryCall {
    fn cancel(&self, details: &str) {
        self.cancel_with(details);
    }
}

/// Awaits the response.
impl Operation for UnaryCall {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        let ended = self.ended_or_wait(py, poller)?;
        Some(if ended.code == Code::Ok { self.response(py, &ended) } else { Err(ended.aio_error(py)) })
    }

    fn cancel(&self, _: Python<'_>) {
        self.cancel_with(CANCELLED);
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

/// Awaits the server's initial metadata.
struct Headers(Arc<UnaryCall>);

impl Operation for Headers {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        let headers = self.0.headers_or_wait(py, poller)?;
        Some(metadata::to_python(py, &headers).map(Py::into_any))
    }

    fn cancel(&self, _: Python<'_>) {}
}

/// A unary call of `grpc.aio`. Its coroutines are added in Python, on top of `_end` and `_headers`.
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

    /// Returns an awaitable of the server's initial metadata. It completes before the response only if this is called
    /// before the event loop has sent the request.
    fn _headers(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        self.call.lock().wants_headers = true;
        Awaitable::create(py, Arc::new(Headers(Arc::clone(&self.call))), &self.completions)
    }

    /// Returns code, details, initial and trailing metadata of an ended call.
    fn _outcome(&self, py: Python<'_>) -> PyResult<Option<Outcome>> {
        self.call.ended().map(|ended| ended.outcome(py)).transpose()
    }

    /// Raises the exception of an ended call, unless it ended with OK.
    fn _raise_for_status(&self, py: Python<'_>) -> PyResult<()> {
        match self.call.ended() {
            Some(ended) if ended.code != Code::Ok => Err(ended.aio_error(py)),
            _ => Ok(()),
        }
    }

    fn cancel(&self) -> bool {
        self.call.cancel_with(CANCELLED)
    }

    fn cancelled(&self) -> bool {
        self.call.ended().is_some_and(|ended| ended.code == Code::Cancelled)
    }

    /// Returns whether this side has cancelled the call.
    fn _is_cancelled_here(&self) -> bool {
        self.call.ended().is_some_and(|ended| ended.is_cancelled)
    }

    fn done(&self) -> bool {
        self.call.ended().is_some()
    }

    /// Returns the seconds until the deadline, or `None`.
    fn time_remaining(&self) -> Option<f64> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Calls `callback` with the call once it has ended.
    fn add_done_callback(slf: &Bound<'_, Self>, callback: Py<PyAny>) -> PyResult<()> {
        let call = &slf.get().call;
        let mut state = call.lock();
        if state.ended.is_none() {
            state.followers.callbacks.push((callback, slf.clone().into_any().unbind()));
            return Ok(());
        }
        drop(state);
        callback.call1(slf.py(), (slf,)).map(drop)
    }

    /// Leaves out the call, which its I/O shares.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.completions)
    }
}
