//! Servers, for both of grpcio's interfaces: [`Server`].

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::HeaderMap;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use thalweg_core::{Code, Status};
use thalweg_engine::server::{
    BoundServer, Handler, MessageResponse, Router, ServerMethod, StreamingCall, StreamingHandler,
};
use thalweg_engine::{ConnectionInfo, ListenAddress, RequestHead, ServiceOptions, server as engine};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::credentials::{self, NotLocal, ServerCredentials, ServerSecurity};
use crate::exchange::{Exchange, Outgoing, Response};
use crate::options::ServerSettings;
use crate::queue::{Arrived, Completion, CompletionQueue, Queue};
use crate::runtime;
use crate::server_call::ServerCall;
use crate::status::Ended;

/// Text of calls that a server has ended because it stops.
const STOPPED: &str = "the server was stopped";

/// A server. Its calls are handed to `dispatch`, one by one, on the loop or thread of a completion queue.
#[pyclass(frozen, module = "thalweg._native")]
pub(crate) struct Server {
    shared: Arc<Shared>,
    settings: ServerSettings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bound: Vec<BoundServer>,
    is_started: bool,
}

/// The part that the I/O tasks share.
struct Shared {
    dispatch: Py<PyAny>,
    queue: Arc<Queue>,
    stop: watch::Sender<bool>,
    /// The number of endpoints that still serve.
    serving: watch::Sender<usize>,
    calls: Mutex<slab::Slab<Arc<Exchange>>>,
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, slab::Slab<Arc<Exchange>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (dispatch, completions, settings = None))]
    fn new(
        dispatch: Py<PyAny>,
        completions: &Bound<'_, CompletionQueue>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let settings = ServerSettings::from_python(settings)?;
        let shared = Shared {
            dispatch,
            queue: Arc::clone(completions.get().queue()),
            stop: watch::Sender::new(false),
            serving: watch::Sender::new(0),
            calls: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared), settings, state: Mutex::default() })
    }

    /// Binds an address and returns its port, or 1 for a Unix socket, as grpcio does. It is insecure without
    /// credentials.
    #[pyo3(signature = (address, credentials = None))]
    fn add_port(
        &self,
        py: Python<'_>,
        address: &str,
        credentials: Option<&Bound<'_, ServerCredentials>>,
    ) -> PyResult<u16> {
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
    fn start(&self) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if mem::replace(&mut state.is_started, true) {
            return Err(PyValueError::new_err("the server was started before"));
        }
        let bound = mem::take(&mut state.bound);
        drop(state);
        bound.into_iter().try_for_each(|bound| self.serve(bound))
    }

    /// Stops accepting connections and calls. Calls `stopped` without arguments once all calls have ended.
    fn drain(&self, py: Python<'_>, stopped: Py<PyAny>) -> PyResult<()> {
        self.shared.stop.send_replace(true);
        mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).bound);
        let shared = Arc::clone(&self.shared);
        let argument = py.None();
        runtime::runtime()?.spawn(async move {
            let _ = shared.serving.subscribe().wait_for(|serving| *serving == 0).await;
            shared.queue.push(Completion::Call(stopped, argument));
        });
        Ok(())
    }

    /// Cancels all calls.
    fn cancel_all(&self) {
        let calls: Vec<_> = self.shared.calls().iter().map(|(_, call)| Arc::clone(call)).collect();
        for call in calls {
            call.finish(Code::Unavailable, STOPPED.to_owned(), HeaderMap::new(), None);
            call.end(Ended::cancelled(STOPPED));
        }
    }
}

impl Server {
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
            Calls { shared: Arc::clone(&self.shared), path: name.as_ref().into(), is_local: self.is_local };
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
    path: Arc<str>,
    is_local: bool,
}

impl StreamingHandler for Calls {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let exchange = Exchange::new(Arc::clone(&self.shared.queue));
        let server_call = ServerCall::new(
            Arc::clone(&self.path),
            head.metadata.clone(),
            head.timeout.map(|timeout| Instant::now() + timeout),
            head.connection.clone(),
            self.is_local,
            Arc::clone(&exchange),
        );
        Box::pin(run(Arc::clone(&self.shared), exchange, server_call, call))
    }
}

/// Runs a call: moves messages between the connection and Python until the response has ended.
async fn run(shared: Arc<Shared>, exchange: Arc<Exchange>, server_call: ServerCall, call: StreamingCall) {
    let key = shared.calls().insert(Arc::clone(&exchange));
    // Dropped with this future when the client cancels, or the deadline passes.
    let _end = EndOnDrop { shared: &shared, exchange: &exchange, key };
    let mut requests = call.requests();
    let mut requests_end = None;
    let mut fill = |cx: &mut Context<'_>| {
        if requests_end.is_none()
            && let Poll::Ready(end) = exchange.poll_fill(&mut requests, cx)
        {
            // A failure is the cancellation of the call, which drops this future.
            requests_end = Some(end);
        }
    };
    // A unary request has mostly arrived as a whole.
    poll_fn(|cx| {
        fill(cx);
        Poll::Ready(())
    })
    .await;
    let dispatch = Dispatch { shared: Arc::clone(&shared), call: server_call };
    shared.queue.push(Completion::Arrived(Box::new(dispatch)));
    let response = poll_fn(|cx| {
        fill(cx);
        exchange.poll_response(cx)
    })
    .await;
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
}

/// Ends a call in Python when its I/O ends.
struct EndOnDrop<'a> {
    shared: &'a Shared,
    exchange: &'a Exchange,
    key: usize,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.shared.calls().try_remove(self.key);
        self.exchange.end(Ended::cancelled(""));
    }
}

/// A call on its way to Python.
struct Dispatch {
    shared: Arc<Shared>,
    call: ServerCall,
}

impl Arrived for Dispatch {
    fn start(self: Box<Self>, py: Python<'_>) -> PyResult<()> {
        let Self { shared, call } = *self;
        shared.dispatch.call1(py, (call,)).map(drop)
    }
}
