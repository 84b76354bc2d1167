//! Calls of clients with a stream of requests, of responses, or both: [`StreamCall`].

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Instant;

use http::HeaderMap;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use thalweg_core::Code;
use thalweg_engine::{self as engine, CallOptions, Method};

use crate::awaitable::{Awaitable, Operation, Poller, block_on};
use crate::blocking;
use crate::channel::{Channel, ChannelState, InFlight};
use crate::exchange::{Exchange, Outgoing, Received, Sent};
use crate::message::{self, Message};
use crate::metadata::{self, Given};
use crate::options;
use crate::queue::CompletionQueue;
use crate::runtime;
use crate::status::{self, CANCELLED, Ended};

/// A method of a channel with a stream of requests, of responses, or both.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct StreamMethod {
    channel: Py<Channel>,
    method: Arc<Method>,
    deserializer: Option<Py<PyAny>>,
    has_one_response: bool,
}

#[pymethods]
impl StreamMethod {
    /// Creates a method. The response of one with `has_one_response` is taken after the end of the call.
    #[new]
    #[pyo3(signature = (channel, method, deserializer, has_one_response = false))]
    fn new(
        channel: Py<Channel>,
        method: &str,
        deserializer: Option<Py<PyAny>>,
        has_one_response: bool,
    ) -> PyResult<Self> {
        Ok(Self { channel, method: options::method(method)?, deserializer, has_one_response })
    }

    /// Starts a call. Its callbacks and awaitables run on the loop or thread of `completions`.
    #[pyo3(signature = (completions, timeout = None, metadata = None, wait_for_ready = None, compression = None))]
    fn start(
        &self,
        py: Python<'_>,
        completions: Py<CompletionQueue>,
        timeout: Option<f64>,
        metadata: Option<Given>,
        wait_for_ready: Option<bool>,
        compression: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StreamCall> {
        let call_options = self.channel.get().state().call_options();
        let call_options = options::call_options(call_options, timeout, wait_for_ready, compression)?;
        let deadline = call_options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let exchange = Exchange::new(Arc::clone(completions.get().queue()));
        let weak: Weak<Exchange> = Arc::downgrade(&exchange);
        let (engine, key) = self.channel.get().state().start(weak)?;
        let start = Start {
            engine,
            channel: Arc::clone(self.channel.get().state()),
            key,
            method: Arc::clone(&self.method),
            options: call_options,
            metadata: metadata.map_or_else(HeaderMap::new, |given| given.0),
            exchange: Arc::clone(&exchange),
            has_one_response: self.has_one_response,
        };
        runtime::runtime()?.spawn(start.run());
        let deserializer = self.deserializer.as_ref().map(|it| it.clone_ref(py));
        Ok(StreamCall { exchange, completions, deadline, deserializer, generation: runtime::generation() })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.channel)?;
        visit.call(&self.deserializer)
    }
}

impl InFlight for Exchange {
    fn cancel(&self, details: &str) {
        self.end(Ended::cancelled(details));
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
    exchange: Arc<Exchange>,
    has_one_response: bool,
}

impl Start {
    async fn run(self) {
        let Self { engine, channel, key, method, options, metadata, exchange, has_one_response } = self;
        let sent = {
            let requests = Outgoing(Arc::clone(&exchange));
            let mut sent = pin!(engine.stream(&method, &metadata, requests, &options));
            poll_fn(
                |cx| if exchange.goes_on(cx) { sent.as_mut().poll(cx).map(Some) } else { Poll::Ready(None) },
            )
            .await
        };
        // Dropping the engine's call cancels it.
        let ended = match sent {
            None => None,
            Some(Err(status)) => Some(Ended::failed(&status)),
            Some(Ok((call, headers))) if has_one_response => {
                exchange.received_headers(headers.clone());
                let mut response = pin!(call.only_response(|payload| Ok(message::into_bytes(payload))));
                let received = poll_fn(|cx| {
                    if exchange.goes_on(cx) {
                        response.as_mut().poll(cx).map(Some)
                    } else {
                        Poll::Ready(None)
                    }
                })
                .await;
                received.map(|outcome| match outcome {
                    Ok((response, trailers)) => Ended::ok(headers, trailers, Some(response)),
                    Err(status) => Ended { initial_metadata: headers, ..Ended::failed(&status) },
                })
            }
            Some(Ok((call, headers))) => {
                exchange.received_headers(headers.clone());
                let mut responses = call.into_responses();
                let received = poll_fn(|cx| {
                    if !exchange.goes_on(cx) {
                        return Poll::Ready(None);
                    }
                    exchange.poll_fill(&mut responses, cx).map(Some)
                })
                .await;
                received.map(|outcome| match outcome {
                    Ok(()) => Ended::ok(headers, responses.take_trailers().unwrap_or_default(), None),
                    Err(status) => Ended { initial_metadata: headers, ..Ended::failed(&status) },
                })
            }
        };
        channel.ended(key);
        if let Some(ended) = ended {
            exchange.end(ended);
        }
    }
}

/// A call of a client. Python adds what differs between grpcio's interfaces and call types.
#[pyclass(frozen, weakref, module = "thalweg._native")]
pub(crate) struct StreamCall {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) completions: Py<CompletionQueue>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) deserializer: Option<Py<PyAny>>,
    /// Of the process that makes the call.
    pub(crate) generation: u64,
}

#[pymethods]
impl StreamCall {
    /// Returns a call that has failed before it was sent.
    #[staticmethod]
    fn failed(completions: Py<CompletionQueue>, code: i32, details: &str) -> PyResult<Self> {
        let exchange = Exchange::new(Arc::clone(completions.get().queue()));
        exchange.end(Ended::local(options::code(code)?, details));
        let generation = runtime::generation();
        Ok(Self { exchange, completions, deadline: None, deserializer: None, generation })
    }

    /// Returns an awaitable of the next response; `None` after the last one of a call that ended with OK.
    fn receive(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::new(self.receiving(py)), &self.completions)
    }

    /// Waits for the next response; `None` after the last one, whatever the status, or if it cannot be deserialized,
    /// which fails the call.
    fn receive_blocking(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.check_process()?;
        block_on(py, &ReceiveBlocking(self), None)
    }

    /// Returns the only response of an ended call, in bytes.
    fn response<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let ended = self.exchange.ended()?;
        ended.response.as_ref().map(|response| PyBytes::new(py, response))
    }

    /// Adds a request, and returns an awaitable of room for another. `False`: it was too late.
    fn send(&self, py: Python<'_>, message: Bound<'_, PyAny>) -> PyResult<Option<Py<Awaitable>>> {
        match self.exchange.send(Message::from_python(message)?) {
            Sent::Done => {
                Awaitable::create(py, Arc::new(Room(Arc::clone(&self.exchange))), &self.completions).map(Some)
            }
            Sent::TooLate => Ok(None),
        }
    }

    /// Adds a request and waits for room for another. Returns false if it was too late.
    fn send_blocking(&self, py: Python<'_>, message: Bound<'_, PyAny>) -> PyResult<bool> {
        self.check_process()?;
        match self.exchange.send(Message::from_python(message)?) {
            Sent::Done => block_on(py, &Room(Arc::clone(&self.exchange)), None).map(|_| true),
            Sent::TooLate => Ok(false),
        }
    }

    /// Adds the only request.
    fn send_only(&self, message: Bound<'_, PyAny>) -> PyResult<()> {
        self.exchange.send_only(Message::from_python(message)?);
        Ok(())
    }

    /// Ends the requests.
    fn done_sending(&self) {
        self.exchange.done_sending();
    }

    /// Cancels the call. Returns false if it had ended.
    #[pyo3(signature = (details = CANCELLED))]
    fn cancel(&self, details: &str) -> bool {
        self.exchange.end(Ended::cancelled(details))
    }

    /// Ends the call with this status, unless it has ended.
    fn fail(&self, code: i32, details: &str) -> PyResult<bool> {
        Ok(self.exchange.end(Ended::local(options::code(code)?, details)))
    }

    fn cancelled(&self) -> bool {
        self.exchange.ended().is_some_and(|ended| ended.is_cancelled)
    }

    fn done(&self) -> bool {
        self.exchange.ended().is_some()
    }

    fn time_remaining(&self) -> Option<f64> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Returns an awaitable of the server's initial metadata.
    fn initial_metadata(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::new(Headers(Arc::clone(&self.exchange))), &self.completions)
    }

    /// Waits for the server's initial metadata.
    fn initial_metadata_blocking(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.check_process()?;
        block_on(py, &Headers(Arc::clone(&self.exchange)), None)
    }

    /// Returns an awaitable of the end.
    fn end(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::new(End(Arc::clone(&self.exchange))), &self.completions)
    }

    /// Waits for the end, at most `timeout` seconds. Returns whether it has come.
    #[pyo3(signature = (timeout = None))]
    fn end_blocking(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if self.exchange.ended().is_some() {
            return Ok(true);
        }
        self.check_process()?;
        let deadline = options::timeout(timeout)?.and_then(|timeout| Instant::now().checked_add(timeout));
        block_on(py, &End(Arc::clone(&self.exchange)), deadline).map(|ended| ended.is_some())
    }

    /// Returns code, details, initial and trailing metadata of an ended call.
    fn outcome(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>, String, Py<PyTuple>, Py<PyTuple>)>> {
        let Some(ended) = self.exchange.ended() else { return Ok(None) };
        let initial = metadata::to_python(py, &ended.initial_metadata)?;
        let trailing = metadata::to_python(py, &ended.trailing_metadata)?;
        Ok(Some((status::code(py, ended.code)?, ended.details.clone(), initial, trailing)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.completions)?;
        visit.call(&self.deserializer)
    }

    /// Calls `callback` with `argument` once the call has ended. Returns false if it had ended.
    fn on_end(&self, callback: Py<PyAny>, argument: Py<PyAny>) -> bool {
        self.exchange.on_end(callback, argument).is_none()
    }
}

impl StreamCall {
    /// Returns an error in a child process made by `fork`, where nothing would ever happen to the call.
    fn check_process(&self) -> PyResult<()> {
        if self.generation == runtime::generation() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("the call belongs to the parent process; make a new call after fork"))
    }

    fn receiving(&self, py: Python<'_>) -> Receive {
        let deserializer = self.deserializer.as_ref().map(|it| it.clone_ref(py));
        Receive { exchange: Arc::clone(&self.exchange), deserializer }
    }
}

/// Takes the next response.
struct Receive {
    exchange: Arc<Exchange>,
    deserializer: Option<Py<PyAny>>,
}

impl Operation for Receive {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        Some(match self.exchange.poll_receive(py, poller)? {
            Received::Message(message) => {
                let bytes = PyBytes::new(py, &message);
                match &self.deserializer {
                    Some(deserializer) => deserializer.bind(py).call1((bytes,)).map(Bound::unbind),
                    None => Ok(bytes.into_any().unbind()),
                }
            }
            Received::Ended(ended) if ended.code != Code::Ok => Err(ended.aio_error(py)),
            Received::Over | Received::Ended(_) => Ok(py.None()),
        })
    }

    fn cancel(&self, _: Python<'_>) {
        self.exchange.end(Ended::cancelled(CANCELLED));
    }
}

/// Takes the next response, on behalf of a thread.
struct ReceiveBlocking<'a>(&'a StreamCall);

impl Operation for ReceiveBlocking<'_> {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        Some(match self.0.exchange.poll_receive(py, poller)? {
            Received::Message(message) => {
                let deserializer = self.0.deserializer.as_ref();
                blocking::deserialize(py, deserializer, &message).map(|response| {
                    response.unwrap_or_else(|| {
                        self.0.exchange.fail(Ended::local(Code::Internal, blocking::NOT_DESERIALIZED));
                        py.None()
                    })
                })
            }
            Received::Over | Received::Ended(_) => Ok(py.None()),
        })
    }

    fn cancel(&self, _: Python<'_>) {}
}

/// Waits for room for another request.
struct Room(Arc<Exchange>);

impl Operation for Room {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        self.0.poll_room(py, poller).then(|| Ok(py.None()))
    }

    fn cancel(&self, _: Python<'_>) {
        self.0.end(Ended::cancelled(CANCELLED));
    }
}

/// Waits for the server's initial metadata.
struct Headers(Arc<Exchange>);

impl Operation for Headers {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        let headers = self.0.poll_headers(py, poller)?;
        Some(metadata::to_python(py, &headers).map(Py::into_any))
    }

    fn cancel(&self, _: Python<'_>) {}
}

/// Waits for the end, whatever it is. Giving up waiting does not cancel the call.
struct End(Arc<Exchange>);

impl Operation for End {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        self.0.poll_ended(py, poller).map(|_| Ok(py.None()))
    }

    fn cancel(&self, _: Python<'_>) {}
}
