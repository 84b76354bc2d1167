//! Calls of clients with a stream of requests, of responses, or both: [`StreamCall`].

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use std::time::Instant;

use http::HeaderMap;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use thalweg_core::{Code, Status};
use thalweg_engine::{self as engine, CallOptions, Method};
use tokio::time::sleep_until;

use crate::awaitable::{Awaitable, Operation, Poller, block_on, end_of_stream};
use crate::blocking;
use crate::channel::{Channel, InFlight, Registration};
use crate::exchange::{Exchange, Outgoing, Received, Sent};
use crate::message::{self, Message};
use crate::metadata::{self, Given};
use crate::options;
use crate::queue::{CompletionQueue, Submission};
use crate::runtime;
use crate::status::{CANCELLED, Ended, Outcome};

/// Messages that a task may take, or send, before others have a turn, even if it need not wait.
const TURN_LEN: u32 = 64;

/// Details of a call whose responses were not taken before its deadline.
const UNREAD: &str = "deadline exceeded before all responses were read";

/// A method of a channel with a stream of requests, of responses, or both.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct StreamMethod {
    channel: Py<Channel>,
    method: Arc<Method>,
    deserializer: Option<Py<PyAny>>,
    /// The response is one message, which is part of the end of a call.
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

    /// Starts a call. Its callbacks and awaitables run on the loop or thread of `completions`. By default that is the
    /// running event loop, and the call starts after the loop's current callbacks, together with others.
    #[pyo3(signature = (completions, timeout = None, metadata = None, wait_for_ready = None, compression = None))]
    fn start(
        &self,
        py: Python<'_>,
        completions: Option<Py<CompletionQueue>>,
        timeout: Option<f64>,
        metadata: Option<Given>,
        wait_for_ready: Option<bool>,
        compression: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StreamCall> {
        let is_soon = completions.is_none();
        let completions = match completions {
            Some(completions) => completions,
            None => self.channel.get().loop_queue(py)?,
        };
        let channel = self.channel.get().state();
        let call_options =
            options::call_options(channel.call_options(), timeout, wait_for_ready, compression)?;
        let deadline = call_options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let exchange = Exchange::new(Arc::clone(completions.get().queue()));
        let weak: Weak<Exchange> = Arc::downgrade(&exchange);
        let (engine, registration) = self.channel.get().register(weak)?;
        let start = Start {
            engine,
            registration,
            method: Arc::clone(&self.method),
            options: call_options,
            metadata: metadata.map_or_else(HeaderMap::new, |given| given.0),
            deadline,
            exchange: Arc::clone(&exchange),
            has_one_response: self.has_one_response,
        };
        if is_soon {
            let submission = Submission::Stream(Arc::clone(&exchange), Box::pin(start.run()));
            CompletionQueue::submit(completions.bind(py), submission)?;
        } else {
            runtime::runtime()?.spawn(start.run());
        }
        let deserializer = self.deserializer.as_ref().map(|it| it.clone_ref(py));
        Ok(StreamCall::new(exchange, completions, deadline, deserializer))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.channel)?;
        visit.call(&self.deserializer)
    }
}

impl InFlight for Exchange {
    fn cancel(&self, details: &str) {
        self.break_off(Ended::cancelled(details));
    }
}

/// A call to be made on an I/O thread.
struct Start {
    engine: engine::Channel,
    registration: Registration,
    method: Arc<Method>,
    options: CallOptions,
    metadata: HeaderMap,
    deadline: Option<Instant>,
    exchange: Arc<Exchange>,
    has_one_response: bool,
}

impl Start {
    async fn run(self) {
        let ended = {
            // Dropping it cancels the call at the server.
            let mut io = pin!(self.io());
            poll_fn(|cx| {
                if self.exchange.goes_on(cx) { io.as_mut().poll(cx).map(Some) } else { Poll::Ready(None) }
            })
            .await
        };
        let Self { registration, exchange, deadline, .. } = self;
        let Some(ended) = ended else { return };
        if exchange.settle(ended, registration) {
            return;
        }
        let Some(deadline) = deadline else { return };
        let mut passed = pin!(sleep_until(deadline.into()));
        poll_fn(|cx| if exchange.goes_on(cx) { passed.as_mut().poll(cx) } else { Poll::Ready(()) }).await;
        exchange.break_off(Ended::local(Code::DeadlineExceeded, UNREAD));
    }

    async fn io(&self) -> Ended {
        let Self { engine, method, options, metadata, exchange, .. } = self;
        if self.has_one_response {
            let received = |headers: &HeaderMap| exchange.received_headers(headers.clone());
            return only_response(engine, method, options, metadata, Arc::clone(exchange), received).await;
        }
        let requests = Outgoing(Arc::clone(exchange));
        let (call, headers) = match engine.stream(method, metadata, requests, options).await {
            Ok(started) => started,
            Err(status) => return Ended::failed(&status),
        };
        exchange.received_headers(headers.clone());
        let mut responses = call.into_responses();
        let mut passed = None;
        let received = poll_fn(|cx| {
            let filled = exchange.poll_fill(&mut responses, cx);
            // The engine's deadline is not polled while Python takes no responses.
            if let Some(deadline) = self.deadline
                && filled.is_pending()
                && exchange.is_full()
            {
                let passed = passed.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
                return passed.as_mut().poll(cx).map(|()| Err(Status::new(Code::DeadlineExceeded, UNREAD)));
            }
            filled
        });
        match received.await {
            Ok(()) => Ended::ok(headers, responses.take_trailers().unwrap_or_default(), None),
            Err(status) => Ended { initial_metadata: headers, ..Ended::failed(&status) },
        }
    }
}

/// Sends the requests of `exchange` and waits for the only response. `received` gets the server's initial metadata.
pub(crate) async fn only_response(
    engine: &engine::Channel,
    method: &Method,
    options: &CallOptions,
    metadata: &HeaderMap,
    exchange: Arc<Exchange>,
    received: impl FnOnce(&HeaderMap),
) -> Ended {
    let (call, headers) = match engine.stream(method, metadata, Outgoing(exchange), options).await {
        Ok(started) => started,
        Err(status) => return Ended::failed(&status),
    };
    received(&headers);
    match call.only_response(|message| Ok(message::into_bytes(message))).await {
        Ok((message, trailers)) => Ended::ok(headers, trailers, Some(message)),
        Err(status) => Ended { initial_metadata: headers, ..Ended::failed(&status) },
    }
}

/// State of a call that its awaitables share.
struct ClientStream {
    exchange: Arc<Exchange>,
    deserializer: Option<Py<PyAny>>,
    /// The only response, once deserialized.
    response: Mutex<Option<Py<PyAny>>>,
    /// Messages that were taken or sent without waiting, modulo the length of a turn.
    turn: AtomicU32,
}

impl ClientStream {
    /// Counts a message. Returns whether others are to have a turn.
    fn is_turn_over(&self) -> bool {
        (self.turn.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(TURN_LEN)
    }

    fn deserialized(&self, py: Python<'_>, message: &[u8]) -> PyResult<Py<PyAny>> {
        let bytes = PyBytes::new(py, message);
        match &self.deserializer {
            Some(deserializer) => deserializer.call1(py, (bytes,)),
            None => Ok(bytes.into_any().unbind()),
        }
    }
}

/// A call of a client. Python adds what differs between grpcio's interfaces and call types.
#[pyclass(frozen, weakref, module = "thalweg._native")]
pub(crate) struct StreamCall {
    stream: Arc<ClientStream>,
    completions: Py<CompletionQueue>,
    deadline: Option<Instant>,
    /// Generation of the process that makes the call.
    generation: u64,
}

impl StreamCall {
    pub(crate) fn new(
        exchange: Arc<Exchange>,
        completions: Py<CompletionQueue>,
        deadline: Option<Instant>,
        deserializer: Option<Py<PyAny>>,
    ) -> Self {
        let (response, turn) = (Mutex::default(), AtomicU32::new(0));
        let stream = Arc::new(ClientStream { exchange, deserializer, response, turn });
        Self { stream, completions, deadline, generation: runtime::generation() }
    }

    /// Returns an error in a child process made by `fork`, where nothing would ever happen to the call.
    fn check_process(&self) -> PyResult<()> {
        if self.generation == runtime::generation() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("the call belongs to the parent process; make a new call after fork"))
    }
}

#[pymethods]
impl StreamCall {
    /// Returns a call that has failed before it was sent.
    #[staticmethod]
    fn failed(completions: Py<CompletionQueue>, code: i32, details: &str) -> PyResult<Self> {
        let exchange = Exchange::new(Arc::clone(completions.get().queue()));
        exchange.end(Ended::local(options::code(code)?, details));
        Ok(Self::new(exchange, completions, None, None))
    }

    /// Returns an awaitable of the next response; `EOF` after the last one of a call that ended with OK.
    fn receive(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::clone(&self.stream) as _, &self.completions)
    }

    /// Returns an asynchronous iterator of the responses. It keeps `call`.
    fn responses(&self, py: Python<'_>, call: Py<PyAny>) -> Responses {
        let (stream, completions) = (Arc::clone(&self.stream), self.completions.clone_ref(py));
        Responses { stream, completions, call }
    }

    /// Waits for the next response; `None` after the last one, whatever the status, or if it cannot be deserialized,
    /// which fails the call.
    fn receive_blocking(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.check_process()?;
        block_on(py, &ReceiveBlocking(&self.stream), None)
    }

    /// Returns the only response of an ended call, in bytes.
    fn response<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let ended = self.stream.exchange.ended()?;
        ended.response.as_ref().map(|response| PyBytes::new(py, response))
    }

    /// Returns an awaitable of the only response.
    fn awaited_response(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::new(OnlyResponse(Arc::clone(&self.stream))), &self.completions)
    }

    /// Adds a request. Returns `False` if it was too late, `True` if there is room for another, or an awaitable of it.
    fn send(&self, py: Python<'_>, message: Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let exchange = &self.stream.exchange;
        match exchange.send(Message::from_python(message)?) {
            Sent::TooLate => false.into_py_any(py),
            Sent::Done if !exchange.has_room() => {
                let room = Arc::new(Room(Arc::clone(exchange)));
                Ok(Awaitable::create(py, room, &self.completions)?.into_any())
            }
            Sent::Done if self.stream.is_turn_over() => {
                Ok(Awaitable::create(py, Arc::<Pause>::default(), &self.completions)?.into_any())
            }
            Sent::Done => true.into_py_any(py),
        }
    }

    /// Adds a request and waits for room for another. Returns false if it was too late.
    fn send_blocking(&self, py: Python<'_>, message: Bound<'_, PyAny>) -> PyResult<bool> {
        self.check_process()?;
        let exchange = &self.stream.exchange;
        match exchange.send(Message::from_python(message)?) {
            Sent::Done => block_on(py, &Room(Arc::clone(exchange)), None).map(|_| true),
            Sent::TooLate => Ok(false),
        }
    }

    /// Adds the only request.
    fn send_only(&self, message: Bound<'_, PyAny>) -> PyResult<()> {
        self.stream.exchange.send_only(Message::from_python(message)?);
        Ok(())
    }

    /// Ends the requests.
    fn done_sending(&self) {
        self.stream.exchange.done_sending();
    }

    /// Returns whether a connection has accepted the call, or the call has ended.
    fn is_connected(&self) -> bool {
        self.stream.exchange.is_connected()
    }

    /// Returns an awaitable of a connection that accepts the call, or of the call's end.
    fn connection(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        let connection = Arc::new(Connection(Arc::clone(&self.stream.exchange)));
        Awaitable::create(py, connection, &self.completions)
    }

    /// Cancels the call and drops responses that were not taken. Returns false if it had ended.
    #[pyo3(signature = (details = CANCELLED))]
    fn cancel(&self, details: &str) -> bool {
        self.stream.exchange.break_off(Ended::cancelled(details))
    }

    /// Ends the call with this status and drops responses that were not taken. Returns false if it had ended.
    fn fail(&self, code: i32, details: &str) -> PyResult<bool> {
        Ok(self.stream.exchange.break_off(Ended::local(options::code(code)?, details)))
    }

    /// Returns whether this side has cancelled the call.
    fn cancelled(&self) -> bool {
        self.stream.exchange.ended().is_some_and(|ended| ended.is_cancelled)
    }

    /// Returns whether the call has ended with CANCELLED.
    fn has_status_cancelled(&self) -> bool {
        self.stream.exchange.ended().is_some_and(|ended| ended.code == Code::Cancelled)
    }

    /// Returns whether the call has ended. It has not while there are responses to take.
    fn done(&self) -> bool {
        self.stream.exchange.ended().is_some()
    }

    fn time_remaining(&self) -> Option<f64> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Returns an awaitable of the server's initial metadata.
    fn initial_metadata(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::new(Headers(Arc::clone(&self.stream.exchange))), &self.completions)
    }

    /// Waits for the server's initial metadata.
    fn initial_metadata_blocking(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.check_process()?;
        block_on(py, &Headers(Arc::clone(&self.stream.exchange)), None)
    }

    /// Returns an awaitable of the end.
    fn end(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create(py, Arc::new(End(Arc::clone(&self.stream.exchange))), &self.completions)
    }

    /// Waits for the end, at most `timeout` seconds. Returns whether it has come.
    #[pyo3(signature = (timeout = None))]
    fn end_blocking(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if self.done() {
            return Ok(true);
        }
        self.check_process()?;
        let deadline = options::timeout(timeout)?.and_then(|timeout| Instant::now().checked_add(timeout));
        block_on(py, &End(Arc::clone(&self.stream.exchange)), deadline).map(|ended| ended.is_some())
    }

    /// Returns code, details, initial and trailing metadata of an ended call.
    fn outcome(&self, py: Python<'_>) -> PyResult<Option<Outcome>> {
        self.stream.exchange.ended().map(|ended| ended.outcome(py)).transpose()
    }

    /// Raises the exception of an ended call, unless it ended with OK.
    fn raise_for_status(&self, py: Python<'_>) -> PyResult<()> {
        match self.stream.exchange.ended() {
            Some(ended) if ended.code != Code::Ok => Err(ended.aio_error(py)),
            _ => Ok(()),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Not the deserializer, which the call's awaitables have, too.
        visit.call(&self.completions)
    }

    /// Calls `callback` with `argument` once the call has ended. Returns false if it had ended.
    fn on_end(&self, callback: Py<PyAny>, argument: Py<PyAny>) -> bool {
        self.stream.exchange.on_end(callback, argument).is_none()
    }
}

/// An asynchronous iterator of responses.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct Responses {
    stream: Arc<ClientStream>,
    completions: Py<CompletionQueue>,
    /// Without it, the call would be cancelled.
    call: Py<PyAny>,
}

#[pymethods]
impl Responses {
    fn __aiter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Py<Awaitable>> {
        Awaitable::create_next(py, Arc::clone(&self.stream) as _, &self.completions)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.completions)?;
        visit.call(&self.call)
    }
}

/// Takes the next response.
impl Operation for ClientStream {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        if self.is_turn_over() {
            poller.waiter(py).wake();
            return None;
        }
        let ended = match self.exchange.poll_receive(py, poller)? {
            Received::Message(message) => {
                let response = self.deserialized(py, &message);
                if response.is_err() {
                    self.exchange.break_off(Ended::cancelled("failed to deserialize a response"));
                }
                return Some(response);
            }
            Received::Over => self.exchange.poll_ended(py, poller)?,
            Received::Ended(ended) => ended,
        };
        Some(if ended.code == Code::Ok { end_of_stream(py) } else { Err(ended.aio_error(py)) })
    }

    fn cancel(&self, _: Python<'_>) {
        self.exchange.break_off(Ended::cancelled(CANCELLED));
    }
}

/// Takes the next response, on behalf of a thread.
struct ReceiveBlocking<'a>(&'a ClientStream);

impl Operation for ReceiveBlocking<'_> {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        let Self(stream) = self;
        Some(match stream.exchange.poll_receive(py, poller)? {
            Received::Message(message) => blocking::deserialize(py, stream.deserializer.as_ref(), &message)
                .map(|response| {
                    response.unwrap_or_else(|| {
                        stream.exchange.fail(Ended::local(Code::Internal, blocking::NOT_DESERIALIZED));
                        py.None()
                    })
                }),
            Received::Over | Received::Ended(_) => Ok(py.None()),
        })
    }

    fn cancel(&self, _: Python<'_>) {}
}

/// Waits for the only response.
struct OnlyResponse(Arc<ClientStream>);

impl Operation for OnlyResponse {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        let stream = &self.0;
        let ended = stream.exchange.poll_ended(py, poller)?;
        if ended.code != Code::Ok {
            return Some(Err(ended.aio_error(py)));
        }
        let known = stream.response.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(response) = &*known {
            return Some(Ok(response.clone_ref(py)));
        }
        drop(known);
        let response = match ended.response(py, stream.deserializer.as_ref()) {
            Ok(response) => response,
            Err(error) => return Some(Err(error)),
        };
        let kept = response.clone_ref(py);
        let old = stream.response.lock().unwrap_or_else(PoisonError::into_inner).replace(kept);
        drop(old);
        Some(Ok(response))
    }

    fn cancel(&self, _: Python<'_>) {
        self.0.exchange.break_off(Ended::cancelled(CANCELLED));
    }
}

/// Lets others have a turn.
#[derive(Default)]
struct Pause(AtomicBool);

impl Operation for Pause {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        if self.0.swap(true, Ordering::Relaxed) {
            return Some(Ok(py.None()));
        }
        poller.waiter(py).wake();
        None
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
        self.0.break_off(Ended::cancelled(CANCELLED));
    }
}

/// Waits for a connection that accepts the call.
struct Connection(Arc<Exchange>);

impl Operation for Connection {
    fn poll(&self, py: Python<'_>, poller: Poller<'_>) -> Option<PyResult<Py<PyAny>>> {
        self.0.poll_connected(py, poller).then(|| Ok(py.None()))
    }

    fn cancel(&self, _: Python<'_>) {}
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
