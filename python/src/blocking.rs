//! Unary calls of grpcio's blocking interface: [`BlockingUnaryUnary`].
//!
//! The caller's thread polls the call itself, without the GIL, and parks until the connection's I/O thread wakes it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use http::HeaderMap;
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use thalweg_core::Code;
use thalweg_engine::{self as engine, CallOptions, Method};

use crate::awaitable::SIGNAL_INTERVAL;
use crate::channel::{Channel, InFlight, Registration};
use crate::exchange::Exchange;
use crate::message::Message;
use crate::metadata::{self, Given, InvalidMetadata};
use crate::options;
use crate::queue::CompletionQueue;
use crate::runtime;
use crate::status::{self, Ended};
use crate::stream::StreamCall;
use crate::unary::whole_response;

/// Details of a call whose response the application's deserializer rejects, as grpcio's.
pub(crate) const NOT_DESERIALIZED: &str = "Exception deserializing response!";
/// Details of a call whose request the application's serializer rejects, as grpcio's.
const NOT_SERIALIZED: &str = "Exception serializing request!";
/// Start of the details of a call with metadata that cannot be sent, as grpcio's.
const INVALID_METADATA: &str = "Invalid metadata";

/// A unary method of a channel, to be called from any thread.
#[pyclass(frozen, subclass, weakref, module = "thalweg._native")]
pub(crate) struct BlockingUnaryUnary {
    channel: Py<Channel>,
    method: Arc<Method>,
    serializer: Option<Py<PyAny>>,
    deserializer: Option<Py<PyAny>>,
    /// Adds the metadata of credentials to that of a call, see `thalweg.grpc._channel.Authorize`.
    authorize: Py<PyAny>,
    /// Whether that is called for calls without credentials of their own.
    always_authorizes: bool,
}

#[expect(clippy::too_many_arguments, reason = "they are the arguments of the Python methods")]
#[pymethods]
impl BlockingUnaryUnary {
    #[new]
    fn new(
        channel: Py<Channel>,
        method: &str,
        serializer: Option<Py<PyAny>>,
        deserializer: Option<Py<PyAny>>,
        authorize: Py<PyAny>,
        always_authorizes: bool,
    ) -> PyResult<Self> {
        let method = options::method(method)?;
        Ok(Self { channel, method, serializer, deserializer, authorize, always_authorizes })
    }

    /// Calls the method and returns the response.
    #[pyo3(signature = (
        request, timeout = None, metadata = None, credentials = None, wait_for_ready = None, compression = None
    ))]
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
        let arguments = Arguments { timeout, metadata, wait_for_ready, compression };
        let ended = self.run(py, request, credentials, arguments)?;
        self.response(py, &ended)
    }

    /// Calls the method and returns the response and the call.
    #[pyo3(signature = (
        request, timeout = None, metadata = None, credentials = None, wait_for_ready = None, compression = None
    ))]
    fn with_call(
        &self,
        py: Python<'_>,
        request: Bound<'_, PyAny>,
        timeout: Option<f64>,
        metadata: Option<Bound<'_, PyAny>>,
        credentials: Option<Py<PyAny>>,
        wait_for_ready: Option<bool>,
        compression: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        static CALL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let arguments = Arguments { timeout, metadata, wait_for_ready, compression };
        let ended = self.run(py, request, credentials, arguments)?;
        let response = self.response(py, &ended)?;
        let class = of_calls(py, &CALL, "EndedCall")?;
        let initial = metadata::to_python(py, &ended.initial_metadata)?;
        let trailing = metadata::to_python(py, &ended.trailing_metadata)?;
        let call = class.call1(py, (response.clone_ref(py), &ended.details, initial, trailing))?;
        Ok((response, call))
    }

    /// Starts a call without waiting for it. Its credentials are in its metadata.
    #[pyo3(signature = (
        completions, request, timeout = None, metadata = None, wait_for_ready = None, compression = None
    ))]
    fn start(
        &self,
        py: Python<'_>,
        completions: Py<CompletionQueue>,
        request: Bound<'_, PyAny>,
        timeout: Option<f64>,
        metadata: Option<Bound<'_, PyAny>>,
        wait_for_ready: Option<bool>,
        compression: Option<Bound<'_, PyAny>>,
    ) -> PyResult<StreamCall> {
        let arguments = Arguments { timeout, metadata, wait_for_ready, compression };
        let (options, metadata) = arguments.prepare(py, self)?;
        let message = self.serialize(py, request)?;
        let deadline = options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let exchange = Exchange::new(Arc::clone(completions.get().queue()));
        match metadata {
            Err(ended) => drop(exchange.end(ended)),
            Ok(metadata) => {
                let weak: Weak<Exchange> = Arc::downgrade(&exchange);
                let (engine, registration) = self.channel.get().register(weak)?;
                let method = Arc::clone(&self.method);
                let call = Background {
                    engine,
                    registration,
                    method,
                    options,
                    metadata,
                    message,
                    exchange: Arc::clone(&exchange),
                };
                runtime::runtime()?.spawn(call.run());
            }
        }
        Ok(StreamCall::new(exchange, completions, deadline, None))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.channel)?;
        visit.call(&self.serializer)?;
        visit.call(&self.authorize)?;
        visit.call(&self.deserializer)
    }
}

/// Arguments of a call.
struct Arguments<'py> {
    timeout: Option<f64>,
    metadata: Option<Bound<'py, PyAny>>,
    wait_for_ready: Option<bool>,
    compression: Option<Bound<'py, PyAny>>,
}

/// Metadata, or the end of a call whose metadata cannot be sent.
type Prepared = (CallOptions, Result<HeaderMap, Ended>);

impl Arguments<'_> {
    fn prepare(self, py: Python<'_>, method: &BlockingUnaryUnary) -> PyResult<Prepared> {
        let Self { timeout, metadata, wait_for_ready, compression } = self;
        let channel = method.channel.get().state().call_options();
        let options = options::call_options(channel, timeout, wait_for_ready, compression.as_ref())?;
        let metadata = match metadata.map(|metadata| metadata.extract::<Given>()).transpose() {
            Ok(given) => Ok(given.map_or_else(HeaderMap::new, |given| given.0)),
            Err(error) if error.is_instance_of::<InvalidMetadata>(py) => {
                let text = error.value(py).to_string();
                let pair = text.split_once(": ").map_or("", |(_, pair)| pair);
                Err(Ended::local(Code::Internal, format!("{INVALID_METADATA}: {pair}")))
            }
            Err(error) => return Err(error),
        };
        Ok((options, metadata))
    }
}

impl BlockingUnaryUnary {
    /// Returns the metadata of a call with that of its credentials and the channel's, and the time left.
    fn authorized<'py>(
        &self,
        py: Python<'py>,
        metadata: Option<Bound<'py, PyAny>>,
        credentials: Option<Py<PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, Option<f64>)> {
        if credentials.is_none() && !self.always_authorizes {
            return Ok((metadata, timeout));
        }
        self.authorize.bind(py).call1((self.method.path(), credentials, metadata, timeout))?.extract()
    }

    fn serialize(&self, py: Python<'_>, request: Bound<'_, PyAny>) -> PyResult<Message> {
        let Some(serializer) = &self.serializer else { return Message::from_python(request) };
        match serializer.bind(py).call1((request,)) {
            Ok(message) if !message.is_none() => Message::from_python(message),
            Ok(_) => Err(not_serialized(py, None)),
            Err(error) if error.is_instance_of::<PyException>(py) => Err(not_serialized(py, Some(error))),
            Err(error) => Err(error),
        }
    }

    /// Makes a call, and waits for its end.
    fn run<'py>(
        &self,
        py: Python<'py>,
        request: Bound<'py, PyAny>,
        credentials: Option<Py<PyAny>>,
        arguments: Arguments<'py>,
    ) -> PyResult<Ended> {
        let Arguments { timeout, metadata, wait_for_ready, compression } = arguments;
        let (metadata, timeout) = self.authorized(py, metadata, credentials, timeout)?;
        let arguments = Arguments { timeout, metadata, wait_for_ready, compression };
        let (options, metadata) = arguments.prepare(py, self)?;
        let message = self.serialize(py, request)?;
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(ended) => return Ok(ended),
        };
        let call = Arc::new(Foreground { thread: thread::current(), cancelled: Mutex::default() });
        let weak: Weak<Foreground> = Arc::downgrade(&call);
        let (engine, _registration) = self.channel.get().register(weak)?;
        let runtime = runtime::runtime()?;
        let mut sent = pin!(whole_response(&engine, &self.method, &metadata, &message, &options));
        let waker = Waker::from(Arc::clone(&call));
        loop {
            let ended = py.detach(|| {
                let _entered = runtime.enter();
                call.wait(sent.as_mut(), &mut Context::from_waker(&waker))
            });
            match ended {
                Some(ended) => return Ok(ended),
                // Dropping the engine's call cancels it.
                None => py.check_signals()?,
            }
        }
    }

    fn response(&self, py: Python<'_>, ended: &Ended) -> PyResult<Py<PyAny>> {
        if ended.code != Code::Ok {
            return Err(error_of(py, ended));
        }
        let message = ended.response.as_deref().unwrap_or_default();
        match deserialize(py, self.deserializer.as_ref(), message)? {
            Some(response) => Ok(response),
            None => Err(error_of(py, &Ended::local(Code::Internal, NOT_DESERIALIZED))),
        }
    }
}

/// A call that its caller's thread waits for.
struct Foreground {
    thread: Thread,
    /// Set if the channel has cancelled the call.
    cancelled: Mutex<Option<Ended>>,
}

impl Foreground {
    fn cancelled(&self) -> MutexGuard<'_, Option<Ended>> {
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the call until it has ended, or it is time to handle signals: then it returns `None`.
    fn wait(&self, mut call: Pin<&mut impl Future<Output = Ended>>, cx: &mut Context<'_>) -> Option<Ended> {
        let mut until = None;
        loop {
            if let Poll::Ready(ended) = call.as_mut().poll(cx) {
                return Some(ended);
            }
            if let Some(cancelled) = self.cancelled().take() {
                return Some(cancelled);
            }
            let now = Instant::now();
            let until = *until.get_or_insert(now + SIGNAL_INTERVAL);
            if until <= now {
                return None;
            }
            thread::park_timeout(until - now);
        }
    }
}

impl Wake for Foreground {
    fn wake(self: Arc<Self>) {
        self.thread.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.thread.unpark();
    }
}

impl InFlight for Foreground {
    fn cancel(&self, details: &str) {
        *self.cancelled() = Some(Ended::cancelled(details));
        self.thread.unpark();
    }
}

/// A call made on an I/O thread.
struct Background {
    engine: engine::Channel,
    registration: Registration,
    method: Arc<Method>,
    options: CallOptions,
    metadata: HeaderMap,
    message: Message,
    exchange: Arc<Exchange>,
}

impl Background {
    async fn run(self) {
        let Self { engine, registration, method, options, metadata, message, exchange } = self;
        let ended = {
            let mut sent = pin!(whole_response(&engine, &method, &metadata, &message, &options));
            poll_fn(
                |cx| if exchange.goes_on(cx) { sent.as_mut().poll(cx).map(Some) } else { Poll::Ready(None) },
            )
            .await
        };
        drop(registration);
        if let Some(ended) = ended {
            exchange.end(ended);
        }
    }
}

/// Deserializes a message. Returns `None`, and logs the exception, if the application's deserializer fails.
pub(crate) fn deserialize(
    py: Python<'_>,
    deserializer: Option<&Py<PyAny>>,
    message: &[u8],
) -> PyResult<Option<Py<PyAny>>> {
    let bytes = PyBytes::new(py, message);
    let Some(deserializer) = deserializer else { return Ok(Some(bytes.into_any().unbind())) };
    match deserializer.bind(py).call1((bytes,)) {
        Ok(response) if response.is_none() => Ok(None),
        Ok(response) => Ok(Some(response.unbind())),
        Err(error) if error.is_instance_of::<PyException>(py) => {
            static LOG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            of_calls(py, &LOG, "log_not_deserialized")?.call1(py, (error.value(py),))?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns a member of the Python module for calls.
fn of_calls<'a>(py: Python<'_>, cell: &'a PyOnceLock<Py<PyAny>>, name: &str) -> PyResult<&'a Py<PyAny>> {
    cell.get_or_try_init(py, || Ok(py.import("thalweg.grpc._call")?.getattr(name)?.unbind()))
}

/// Returns the exception of a request that cannot be serialized.
#[cold]
fn not_serialized(py: Python<'_>, cause: Option<PyErr>) -> PyErr {
    static LOG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let error = error_of(py, &Ended::local(Code::Internal, NOT_SERIALIZED));
    if let Some(cause) = cause {
        let logged =
            of_calls(py, &LOG, "log_not_serialized").and_then(|log| log.call1(py, (cause.value(py),)));
        if let Err(failure) = logged {
            return failure;
        }
        error.set_cause(py, Some(cause));
    }
    error
}

/// Returns the exception of a call that has failed.
#[cold]
fn error_of(py: Python<'_>, ended: &Ended) -> PyErr {
    static ERROR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let created = of_calls(py, &ERROR, "_InactiveRpcError").and_then(|class| {
        let code = status::code(py, ended.code)?;
        let initial = metadata::to_python(py, &ended.initial_metadata)?;
        let trailing = metadata::to_python(py, &ended.trailing_metadata)?;
        class.call1(py, (code, &ended.details, initial, trailing))
    });
    match created {
        Ok(error) => PyErr::from_value(error.into_bound(py)),
        Err(error) => error,
    }
}
