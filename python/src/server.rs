//! Servers, for both of grpcio's interfaces: [`Server`].

use std::collections::HashMap;
use std::fmt;
use std::future::{poll_fn, ready};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::HeaderMap;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg_core::{Code, Status};
use thalweg_engine::server::{
    BoundServer, Handler, MessageResponse, Router, ServerMethod, StreamingCall, StreamingHandler,
};
use thalweg_engine::{
    COMPRESSION_THRESHOLD, ConnectionInfo, EncodingSet, ListenAddress, RequestHead, ServiceOptions,
    server as engine,
};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::call_queue::{CallQueue, Waiting};
use crate::credentials::{self, NotLocal, ServerCredentials, ServerSecurity};
use crate::exchange::{Exchange, Outgoing, Response};
use crate::options::ServerSettings;
use crate::queue::{Arrived, Completion, CompletionQueue, Queue};
use crate::runtime;
use crate::server_call::{Path, ServerCall};
use crate::status::Ended;

/// Text of calls that a stopping server cancels, as grpcio's.
const STOPPED: &str = "Cancelling all calls";

/// Text of calls beyond the limit, as grpcio's.
const TOO_MANY: &str = "Concurrent RPC limit exceeded!";

/// A server. Its calls are handed to `dispatch`, one by one, on the loop of a completion queue, or wait in a call queue
/// for a thread.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct Server {
    shared: Arc<Shared>,
    settings: ServerSettings,
    state: Mutex<State>,
    /// That of the process that created the server.
    generation: u64,
}

#[derive(Default)]
struct State {
    bound: Vec<BoundServer>,
    is_started: bool,
}

/// The part that the I/O tasks share.
pub(crate) struct Shared {
    arrivals: Arrivals,
    /// Runs callbacks of calls.
    queue: Arc<Queue>,
    /// The limit of calls at a time.
    active_max: usize,
    active: AtomicUsize,
    stop: watch::Sender<bool>,
    /// The number of endpoints that still serve.
    serving: watch::Sender<usize>,
    /// Notified when the last handler returns while the server stops.
    idle: Notify,
    calls: Mutex<slab::Slab<Arc<Exchange>>>,
}

/// Receiver of calls that have arrived.
enum Arrivals {
    Loop(Py<PyAny>),
    Pool(Arc<Waiting>),
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, slab::Slab<Arc<Exchange>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel_all(&self) {
        let calls: Vec<_> = self.calls().iter().map(|(_, call)| Arc::clone(call)).collect();
        for call in calls {
            call.end_with(Code::Unavailable, STOPPED);
        }
    }
}

/// A call whose handler has not returned.
pub(crate) struct Active(Arc<Shared>);

impl Active {
    /// Counts a call. `None` at the limit.
    fn new(shared: &Arc<Shared>) -> Option<Self> {
        if shared.active.fetch_add(1, Ordering::Relaxed) >= shared.active_max {
            shared.active.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(Arc::clone(shared)))
    }

    /// Notes that the handler has returned.
    pub(crate) fn release(&self) {
        if self.0.active.fetch_sub(1, Ordering::AcqRel) == 1 && *self.0.stop.borrow() {
            self.0.idle.notify_one();
        }
    }
}

#[pymethods]
impl Server {
    /// Creates a server. `dispatch` is called with each call, or is a `CallQueue`. `completions` runs callbacks, too.
    #[new]
    #[pyo3(signature = (dispatch, completions, settings = None, *, maximum_concurrent_rpcs = None))]
    fn new(
        dispatch: Bound<'_, PyAny>,
        completions: &Bound<'_, CompletionQueue>,
        settings: Option<&Bound<'_, PyDict>>,
        maximum_concurrent_rpcs: Option<usize>,
    ) -> PyResult<Self> {
        let settings = ServerSettings::from_python(settings)?;
        let arrivals = match dispatch.cast::<CallQueue>() {
            Ok(calls) => Arrivals::Pool(Arc::clone(calls.get().waiting())),
            Err(_) => Arrivals::Loop(dispatch.unbind()),
        };
        let shared = Shared {
            arrivals,
            queue: Arc::clone(completions.get().queue()),
            active_max: maximum_concurrent_rpcs.unwrap_or(usize::MAX),
            active: AtomicUsize::new(0),
            stop: watch::Sender::new(false),
            serving: watch::Sender::new(0),
            idle: Notify::new(),
            calls: Mutex::default(),
        };
        let generation = runtime::generation();
        Ok(Self { shared: Arc::new(shared), settings, state: Mutex::default(), generation })
    }

    /// Whether the server belongs to a parent process, and was copied by `fork`. It has no I/O threads here.
    #[getter]
    fn is_inherited(&self) -> bool {
        self.generation != runtime::generation()
    }

    /// Binds an address and returns its port, or 1 for a Unix socket, as grpcio does. It is insecure without
    /// credentials.
    ///
    /// # Errors
    /// Raises `ValueError` if it is not an address, `RuntimeError` if it cannot be bound, or the server belongs to a
    /// parent process.
    #[pyo3(signature = (address, credentials = None))]
    fn add_port(
        &self,
        py: Python<'_>,
        address: &str,
        credentials: Option<&Bound<'_, ServerCredentials>>,
    ) -> PyResult<u16> {
        self.check_process()?;
        let mut config = self.settings.config.clone();
        let mut is_local = false;
        match credentials.map(|it| it.get().security()) {
            None | Some(ServerSecurity::Insecure) => {}
            Some(ServerSecurity::Tls(source)) => {
                let tls = source.config(py, self.settings.handshake_timeout);
                config.set_tls(tls).map_err(credentials::unusable)?;
            }
            Some(ServerSecurity::Local(kind)) => {
                kind.check(address)?;
                is_local = true;
            }
        }
        let address: ListenAddress =
            address.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        let router = Arc::new(AnyMethod {
            shared: Arc::clone(&self.shared),
            options: self.settings.service.clone(),
            is_local,
            methods: Mutex::default(),
        });
        let runtime = runtime::runtime()?;
        let bound = py
            .detach(|| runtime.block_on(engine::bind(config, router, &[address])))
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let port = bound.local_addresses().iter().find_map(port).unwrap_or(1);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_started {
            drop(state);
            self.serve(bound)?;
        } else {
            state.bound.push(bound);
        }
        Ok(port)
    }

    /// Starts to accept connections.
    ///
    /// # Errors
    /// Raises `ValueError` if it was started before, `RuntimeError` if it belongs to a parent process.
    fn start(&self) -> PyResult<()> {
        self.check_process()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if mem::replace(&mut state.is_started, true) {
            return Err(PyValueError::new_err("the server was started before"));
        }
        let bound = mem::take(&mut state.bound);
        drop(state);
        bound.into_iter().try_for_each(|bound| self.serve(bound))
    }

    /// Stops accepting connections and calls. Once all calls have ended, closes the call queue, or calls `stopped` with
    /// `None` on the loop. With `waits_for_handlers` it first waits until the handlers have returned. Nothing happens
    /// if the server belongs to a parent process.
    #[pyo3(signature = (waits_for_handlers, stopped = None))]
    fn drain(&self, py: Python<'_>, waits_for_handlers: bool, stopped: Option<Py<PyAny>>) -> PyResult<()> {
        if self.is_inherited() {
            return Ok(());
        }
        self.shared.stop.send_replace(true);
        mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).bound);
        let shared = Arc::clone(&self.shared);
        let argument = py.None();
        runtime::runtime()?.spawn(async move {
            let _ = shared.serving.subscribe().wait_for(|serving| *serving == 0).await;
            while waits_for_handlers && shared.active.load(Ordering::Acquire) > 0 {
                shared.idle.notified().await;
            }
            // For the next one who waits.
            shared.idle.notify_one();
            // Not by the queue of the threaded interface: its thread runs callbacks of the application, which may wait
            // for the end of the server.
            if let Arrivals::Pool(waiting) = &shared.arrivals {
                waiting.close();
            }
            if let Some(stopped) = stopped {
                shared.queue.push(Completion::Call(stopped, argument));
            }
        });
        Ok(())
    }

    /// Cancels all calls. Nothing happens if the server belongs to a parent process.
    fn cancel_all(&self) {
        if !self.is_inherited() {
            self.shared.cancel_all();
        }
    }

    /// Visits the receiver of calls. The I/O tasks use it, too, but the finalizer of an unreachable server stops them.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.shared.arrivals {
            Arrivals::Loop(dispatch) => visit.call(dispatch),
            Arrivals::Pool(_) => Ok(()),
        }
    }
}

impl Drop for Server {
    /// Stops the server and cancels its calls. That of a parent process is left alone: its memory is shared with I/O
    /// threads that do not exist here.
    fn drop(&mut self) {
        if self.is_inherited() {
            mem::forget(Arc::clone(&self.shared));
            return mem::forget(mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
        self.shared.stop.send_replace(true);
        self.shared.cancel_all();
    }
}

impl Server {
    fn check_process(&self) -> PyResult<()> {
        if self.is_inherited() {
            return Err(PyRuntimeError::new_err(
                "the server was created by the parent process; create it after the fork",
            ));
        }
        Ok(())
    }

    fn serve(&self, bound: BoundServer) -> PyResult<()> {
        let shared = Arc::clone(&self.shared);
        shared.serving.send_modify(|serving| *serving += 1);
        runtime::runtime()?.spawn(async move {
            let mut stop = shared.stop.subscribe();
            let stopped = async move {
                let _ = stop.wait_for(|stop| *stop).await;
            };
            // Accepting goes on after errors of single connections; one that ends it ends the server.
            let _ = bound.serve_until(stopped).await;
            shared.serving.send_modify(|serving| *serving -= 1);
        });
        Ok(())
    }
}

fn port(address: &ListenAddress) -> Option<u16> {
    match address {
        ListenAddress::Tcp(address) => address.rsplit_once(':')?.1.parse().ok(),
        ListenAddress::Unix(_) | ListenAddress::UnixAbstract(_) => None,
    }
}

/// Methods whose handlers are kept. A peer may call any number of names.
const METHODS_MAX: usize = 4096;

/// Accepts calls of all methods: Python looks them up for each call, as grpcio does.
struct AnyMethod {
    shared: Arc<Shared>,
    options: ServiceOptions,
    /// Whether the port has local credentials.
    is_local: bool,
    methods: Mutex<HashMap<Box<[u8]>, Arc<ServerMethod>>>,
}

impl fmt::Debug for AnyMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyMethod").finish_non_exhaustive()
    }
}

impl Router for AnyMethod {
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        let mut methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(method) = methods.get(path) {
            return Ok(Arc::clone(method));
        }
        let name = String::from_utf8_lossy(path);
        let calls =
            Calls { shared: Arc::clone(&self.shared), path: Path::new(&name), is_local: self.is_local };
        let handler = Handler::streaming(calls);
        let method = Arc::new(ServerMethod::new(name.trim_start_matches('/'), self.options.clone(), handler));
        if methods.len() < METHODS_MAX {
            methods.insert(path.into(), Arc::clone(&method));
        }
        Ok(method)
    }

    fn of_connection(&self, connection: &ConnectionInfo) -> Option<Arc<dyn Router>> {
        let is_refused = self.is_local && !credentials::is_local(connection);
        is_refused.then(|| Arc::new(NotLocal) as Arc<dyn Router>)
    }
}

/// The calls of a method.
struct Calls {
    shared: Arc<Shared>,
    path: Arc<Path>,
    is_local: bool,
}

impl StreamingHandler for Calls {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Some(active) = Active::new(&self.shared) else {
            call.fail(&Status::new(Code::ResourceExhausted, TOO_MANY));
            return Box::pin(ready(()));
        };
        let exchange = Exchange::new(Arc::clone(&self.shared.queue));
        let server_call = ServerCall::new(
            Arc::clone(&self.path),
            head.metadata.clone(),
            head.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            head.connection.clone(),
            self.is_local,
            Arc::clone(&exchange),
            active,
        );
        Box::pin(run(Arc::clone(&self.shared), exchange, server_call, call, head.accepts))
    }
}

/// Runs a call: moves messages between the connection and Python until the response has ended.
async fn run(
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    server_call: ServerCall,
    mut call: StreamingCall,
    accepts: EncodingSet,
) {
    let key = shared.calls().insert(Arc::clone(&exchange));
    // Dropped with this future when the client cancels, or the deadline passes.
    let mut end = EndOnDrop { shared: &shared, exchange: &exchange, key, has_responded: false };
    let mut requests = call.requests();
    let mut is_over = false;
    let mut fill = |cx: &mut Context<'_>| {
        if is_over {
            return;
        }
        if let Poll::Ready(outcome) = exchange.poll_fill(&mut requests, cx) {
            is_over = true;
            if let Err(status) = outcome {
                // Invalid or too large. It has no effect on a call that the client has cancelled.
                exchange.end_with(status.code(), status.message());
            }
        }
    };
    // A unary request has mostly arrived as a whole.
    poll_fn(|cx| {
        fill(cx);
        Poll::Ready(())
    })
    .await;
    match &shared.arrivals {
        Arrivals::Loop(_) => {
            let dispatch = Dispatch { shared: Arc::clone(&shared), call: server_call };
            shared.queue.push(Completion::Arrived(Box::new(dispatch)));
        }
        Arrivals::Pool(waiting) => waiting.push(server_call),
    }
    let response = poll_fn(|cx| {
        fill(cx);
        exchange.poll_response(cx)
    })
    .await;
    match exchange.compression() {
        None => {}
        Some(encoding) if encoding.compresses() && accepts.contains(encoding) => {
            call.compress(encoding, COMPRESSION_THRESHOLD);
        }
        Some(_) => call.disable_compression(),
    }
    match response {
        Response::Whole { headers, message, trailers } => {
            let trailers = (!trailers.is_empty()).then_some(&trailers);
            call.respond(Ok(MessageResponse { metadata: &headers, message, trailers }));
        }
        Response::Failed(status) => call.fail(&status),
        Response::Started(headers) => {
            let mut sent = pin!(call.respond_stream(&headers, Outgoing(Arc::clone(&exchange)), None));
            poll_fn(|cx| {
                fill(cx);
                sent.as_mut().poll(cx)
            })
            .await;
        }
    }
    end.has_responded = true;
}

/// Ends a call in Python when its I/O ends.
struct EndOnDrop<'a> {
    shared: &'a Shared,
    exchange: &'a Exchange,
    key: usize,
    has_responded: bool,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.shared.calls().try_remove(self.key);
        self.exchange.end(if self.has_responded {
            Ended::ok(HeaderMap::new(), HeaderMap::new(), None)
        } else {
            Ended::cancelled("")
        });
    }
}

/// A call on its way to an event loop.
struct Dispatch {
    shared: Arc<Shared>,
    call: ServerCall,
}

impl Arrived for Dispatch {
    fn start(self: Box<Self>, py: Python<'_>) -> PyResult<()> {
        let Self { shared, call } = *self;
        match &shared.arrivals {
            Arrivals::Loop(dispatch) => dispatch.call1(py, (call,)).map(drop),
            Arrivals::Pool(_) => Ok(()),
        }
    }
}
