//! A call at a server: [`ServerCall`].

use std::sync::Arc;

use http::HeaderMap;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use thalweg_core::Code;
use thalweg_engine::ConnectionInfo;
use tokio::time::Instant;

use crate::awaitable::{Awaitable, Operation, Poller, block_on};
use crate::credentials;
use crate::exchange::{Exchange, Received, Sent};
use crate::loops;
use crate::message::Message;
use crate::metadata::{self, Given};

/// The native part of a `ServicerContext`.
#[pyclass(frozen, weakref, module = "thalweg._native")]
pub(crate) struct ServerCall {
    path: Arc<str>,
    metadata: HeaderMap,
    deadline: Option<Instant>,
    connection: Option<Arc<ConnectionInfo>>,
    /// Whether the port has local credentials.
    is_local: bool,
    exchange: Arc<Exchange>,
}

impl ServerCall {
    pub(crate) fn new(
        path: Arc<str>,
        metadata: HeaderMap,
        deadline: Option<Instant>,
        connection: Option<Arc<ConnectionInfo>>,
        is_local: bool,
        exchange: Arc<Exchange>,
    ) -> Self {
        Self { path, metadata, deadline, connection, is_local, exchange }
    }
}

#[pymethods]
impl ServerCall {
    /// The path, `/package.Service/Method`.
    #[getter]
    fn method(&self) -> &str {
        &self.path
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
        self.exchange.ended().is_none()
    }

    /// Returns an awaitable of the next request, `None` after the last.
    fn receive(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        let operation = Receive(Arc::clone(&self.exchange));
        Awaitable::create(py, Arc::new(operation), &loops::current(py)?)
    }

    /// Waits for the next request; returns `None` after the last.
    fn receive_blocking(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        block_on(py, &Receive(Arc::clone(&self.exchange)), None)
    }

    /// Returns an awaitable that completes when there is room for another response.
    fn send(&self, py: Python<'_>, message: Bound<'_, PyAny>) -> PyResult<Py<Awaitable>> {
        self.add(message)?;
        let operation = Room(Arc::clone(&self.exchange));
        Awaitable::create(py, Arc::new(operation), &loops::current(py)?)
    }

    /// Sends a response and waits for room for another.
    fn send_blocking(&self, py: Python<'_>, message: Bound<'_, PyAny>) -> PyResult<()> {
        self.add(message)?;
        block_on(py, &Room(Arc::clone(&self.exchange)), None).map(drop)
    }

    /// Sends the initial metadata. Returns false if it was sent before.
    fn send_initial_metadata(&self, metadata: Given) -> bool {
        self.exchange.send_headers(metadata.0)
    }

    /// Ends the call.
    #[pyo3(signature = (code, details, trailing_metadata, message = None))]
    fn finish(
        &self,
        code: i32,
        details: String,
        trailing_metadata: Option<Given>,
        message: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let message = message.map(Message::from_python).transpose()?;
        let trailers = trailing_metadata.map_or_else(HeaderMap::new, |given| given.0);
        self.exchange.finish(Code::from_i32(code), details, trailers, message);
        Ok(())
    }

    /// Calls `callback` with `argument` once the call has ended. Returns false if it had ended.
    fn on_end(&self, callback: Py<PyAny>, argument: Py<PyAny>) -> bool {
        self.exchange.on_end(callback, argument).is_none()
    }
}

impl ServerCall {
    fn add(&self, message: Bound<'_, PyAny>) -> PyResult<()> {
        match self.exchange.send(Message::from_python(message)?) {
            Sent::Done => Ok(()),
            Sent::TooLate(_) => Err(PyRuntimeError::new_err("the call has ended")),
        }
    }
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
