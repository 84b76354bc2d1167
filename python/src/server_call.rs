//! A call at a server: [`ServerCall`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use thalweg_core::Code;
use thalweg_engine::{ConnectionInfo, Encoding};
use tokio::time::Instant;

use crate::awaitable::{Awaitable, Operation, Poller, block_on};
use crate::credentials;
use crate::exchange::{Exchange, Received, Sent};
use crate::loops;
use crate::message::Message;
use crate::metadata::{self, Given, InvalidMetadata};
use crate::options;
use crate::server::Active;
use crate::status;

/// A path that a server was called with.
pub(crate) struct Path {
    text: Box<str>,
    name: PyOnceLock<Py<PyString>>,
    /// The handler that Python has found for all calls of the path.
    handler: PyOnceLock<Py<PyAny>>,
}

impl Path {
    pub(crate) fn new(path: &str) -> Arc<Self> {
        Arc::new(Self { text: path.into(), name: PyOnceLock::new(), handler: PyOnceLock::new() })
    }
}

/// The native part of a `ServicerContext`.
#[pyclass(frozen, weakref, module = "thalweg._native")]
pub(crate) struct ServerCall {
    path: Arc<Path>,
    metadata: HeaderMap,
    deadline: Option<Instant>,
    connection: Option<Arc<ConnectionInfo>>,
    /// Whether the port has local credentials.
    is_local: bool,
    exchange: Arc<Exchange>,
    active: Active,
    is_released: AtomicBool,
}

impl ServerCall {
    pub(crate) fn new(
        path: Arc<Path>,
        metadata: HeaderMap,
        deadline: Option<Instant>,
        connection: Option<Arc<ConnectionInfo>>,
        is_local: bool,
        exchange: Arc<Exchange>,
        active: Active,
    ) -> Self {
        let is_released = AtomicBool::new(false);
        Self { path, metadata, deadline, connection, is_local, exchange, active, is_released }
    }
}

#[pymethods]
impl ServerCall {
    /// The path, `/package.Service/Method`.
    #[getter]
    fn method(&self, py: Python<'_>) -> Py<PyString> {
        self.path.name.get_or_init(py, || PyString::new(py, &self.path.text).unbind()).clone_ref(py)
    }

    /// The object that was kept by `keep_handler`, or `None`.
    #[getter]
    fn handler(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.path.handler.get(py).map(|handler| handler.clone_ref(py))
    }

    /// Keeps an object for all calls of the path.
    fn keep_handler(&self, py: Python<'_>, handler: Py<PyAny>) {
        // The first one wins.
        let _ = self.path.handler.set(py, handler);
    }

    fn invocation_metadata(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        metadata::to_python(py, &self.metadata)
    }

    fn peer(&self) -> String {
        match self.connection.as_ref().and_then(|it| it.remote_addr()) {
            Some(address) if address.is_ipv6() => {
                format!("ipv6:%5B{}%5D:{}", address.ip(), address.port())
            }
            Some(address) => format!("ipv4:{address}"),
            None => "unix:".to_owned(),
        }
    }

    /// Returns the properties of the connection's authentication.
    fn auth_context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let properties = match &self.connection {
            _ if self.is_local => credentials::local_auth_context(),
            Some(connection) => credentials::auth_context(connection),
            None => Vec::new(),
        };
        let context = PyDict::new(py);
        for (name, values) in properties {
            let values: Vec<_> = values.iter().map(|value| PyBytes::new(py, value)).collect();
            context.set_item(name, values)?;
        }
        Ok(context)
    }

    fn time_remaining(&self) -> Option<f64> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Returns whether the call goes on.
    fn is_active(&self) -> bool {
        self.exchange.ended().is_none() && !self.exchange.is_finished()
    }

    /// Returns whether the call has ended without a response: by the client, the deadline or the server's stop.
    fn cancelled(&self) -> bool {
        self.exchange.ended().is_some_and(|ended| ended.is_cancelled)
    }

    /// Takes the next request if it has arrived; `None` if not.
    fn take<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.exchange.take_received().map(|message| PyBytes::new(py, &message))
    }

    /// Returns an awaitable of the next request, `None` after the last and when the call has ended.
    fn receive(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        let operation = Receive(Arc::clone(&self.exchange));
        Awaitable::create(py, Arc::new(operation), &loops::current(py)?)
    }

    /// Waits for the next request; returns `None` after the last and when the call has ended.
    fn receive_blocking(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        block_on(py, &Receive(Arc::clone(&self.exchange)), None)
    }

    /// Adds a response. Returns whether there is room for another, or `None` if the call has ended.
    fn send(&self, message: Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        Ok(match self.exchange.send(Message::from_python(message)?) {
            Sent::Done => Some(self.exchange.has_room()),
            Sent::TooLate => None,
        })
    }

    /// Returns an awaitable that completes when there is room for another response, or the call has ended.
    fn room(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        let operation = Room(Arc::clone(&self.exchange));
        Awaitable::create(py, Arc::new(operation), &loops::current(py)?)
    }

    /// Waits until there is room for another response, or the call has ended.
    fn room_blocking(&self, py: Python<'_>) -> PyResult<()> {
        block_on(py, &Room(Arc::clone(&self.exchange)), None).map(drop)
    }

    /// Sends the initial metadata. Returns false if it is too late.
    fn send_initial_metadata(&self, metadata: Given) -> bool {
        self.exchange.send_headers(metadata.0)
    }

    /// Sets the compression of the responses: a member of `grpc.Compression` or its number. Returns false if it is too
    /// late.
    fn set_compression(&self, compression: i32) -> PyResult<bool> {
        Ok(self.exchange.set_compression(encoding(compression)?))
    }

    /// Sends the next response uncompressed.
    fn disable_next_message_compression(&self) {
        self.exchange.skip_compression();
    }

    /// Ends the call with OK and a response. Returns false if it had ended.
    fn respond(&self, message: Bound<'_, PyAny>) -> PyResult<bool> {
        let message = Message::from_python(message)?;
        Ok(self.exchange.finish(Code::Ok, String::new(), HeaderMap::new(), Some(message)))
    }

    /// Ends the call with a member of `grpc.StatusCode` or its number. Returns false if it had ended.
    ///
    /// # Errors
    /// Returns `InvalidMetadata` for trailing metadata that cannot be sent, whatever is wrong with it, and `TypeError`
    /// for a message or details of another type.
    #[pyo3(signature = (code, details, trailing_metadata, message = None))]
    fn finish(
        &self,
        code: &Bound<'_, PyAny>,
        details: String,
        trailing_metadata: Option<Bound<'_, PyAny>>,
        message: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let message = message.map(Message::from_python).transpose()?;
        let trailers = trailing_metadata.map_or_else(|| Ok(HeaderMap::new()), |given| trailers(&given))?;
        Ok(self.exchange.finish(Code::from_i32(status::number(code)?), details, trailers, message))
    }

    /// Ends the call, and cancels its handler.
    fn cancel(&self) {
        self.exchange.end_with(Code::Cancelled, "CANCELLED");
    }

    /// Notes that the handler has returned.
    fn release(&self) {
        if !self.is_released.swap(true, Ordering::Relaxed) {
            self.active.release();
        }
    }

    /// Calls `callback` with `argument` once the call has ended. Returns false if it had ended.
    fn on_end(&self, callback: Py<PyAny>, argument: Py<PyAny>) -> bool {
        self.exchange.on_end(callback, argument).is_none()
    }

    /// Calls `callback` with `argument` when the call ends without the handler's doing. Returns false if it had ended.
    fn on_cancel(&self, callback: Py<PyAny>, argument: Py<PyAny>) -> bool {
        self.exchange.on_cancel(callback, argument).is_none()
    }
}

impl Drop for ServerCall {
    fn drop(&mut self) {
        self.release();
        // A handler that never ran, or was discarded.
        if !self.exchange.is_finished() {
            self.exchange.end_with(Code::Unavailable, "the handler was discarded");
        }
    }
}

/// Returns trailing metadata, or `InvalidMetadata` with the text of the exception that its conversion has raised.
fn trailers(given: &Bound<'_, PyAny>) -> PyResult<HeaderMap> {
    let py = given.py();
    given.extract::<Given>().map(|given| given.0).map_err(|error| {
        if error.is_instance_of::<InvalidMetadata>(py) || !error.is_instance_of::<PyException>(py) {
            return error;
        }
        let invalid = InvalidMetadata::new_err(error.value(py).to_string());
        invalid.set_cause(py, Some(error));
        invalid
    })
}

/// Returns the encoding of a member of `grpc.Compression`.
fn encoding(compression: i32) -> PyResult<Encoding> {
    usize::try_from(compression).ok().and_then(options::encoding_of).ok_or_else(|| {
        PyValueError::new_err(format!("{compression} is not a compression; use a member of grpc.Compression"))
    })
}

/// Takes the next request.
struct Receive(Arc<Exchange>);

impl Operation for Receive {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        Some(match self.0.poll_receive(py, poller)? {
            Received::Message(message) => Ok(PyBytes::new(py, &message).into_any().unbind()),
            Received::Over | Received::Ended(_) => Ok(py.None()),
        })
    }

    fn cancel(&self, _: Python<'_>) {}
}

/// Waits for room for another response.
struct Room(Arc<Exchange>);

impl Operation for Room {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        self.0.poll_room(py, poller).then(|| Ok(py.None()))
    }

    fn cancel(&self, _: Python<'_>) {}
}
