//! Services behind listening sockets: [`Server`].

mod dispatch;
mod endpoint;
mod handler;
mod http;
mod methods;
mod respond;
mod task;

use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream;
use slab::Slab;
use thalweg_http2::ErrorCode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

pub use methods::{Methods, Service};

use crate::connection::{self, Connection, Driver};
use crate::executor::{Executor, ExecutorError, ExecutorOptions};
use crate::net::{Accepted, ListenAddress, Listener};
use endpoint::ServerEndpoint;
use methods::Router;

use crate::measure::{self, ServerMeasure};

/// A gRPC server: begin with [`Server::builder`].
///
/// ```no_run
/// # use thalweg::server::{Methods, Service};
/// # struct Greeter; impl Service for Greeter { const NAME: &'static str = "a.Greeter"; fn register(self, _: &mut Methods) {} }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = thalweg::Server::builder()
///     .add_service(Greeter)
///     .bind(&["127.0.0.1:50051".parse()?])
///     .await?;
/// server.serve().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Server(());

impl Server {
    /// Begins a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder {
            router: Router::default(),
            http2: thalweg_http2::Config::default(),
            shutdown_grace: Duration::from_secs(30),
            busy_poll: Duration::ZERO,
            executor: ExecutorOptions::default(),
            measure: measure::Setup::default(),
        }
    }
}

/// How a [`Server`] is set up.
#[derive(Debug)]
pub struct ServerBuilder {
    router: Router,
    http2: thalweg_http2::Config,
    shutdown_grace: Duration,
    busy_poll: Duration,
    executor: ExecutorOptions,
    measure: measure::Setup,
}

impl ServerBuilder {
    /// Adds a service; one of the same name replaces it.
    pub fn add_service<S: Service>(mut self, service: S) -> Self {
        service.register(&mut Methods::new(S::NAME, &mut self.router));
        self
    }

    /// How many calls one connection may have at once; 256 by default. More are refused by the protocol, and wait at
    /// the client.
    pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.http2.max_concurrent_streams = streams;
        self
    }

    /// Windows, frame size and limits of the connections.
    pub fn http2(mut self, config: thalweg_http2::Config) -> Self {
        self.http2 = connection::fit(config);
        self
    }

    /// How long calls may go on after the server was told to stop; 30 s by default. What is left is cut off.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// How long a connection on which nothing moves goes on trying to read before it sleeps; zero, the default: not at all.
    ///
    /// A call that comes in that time is seen within about a microsecond, where waking a thread takes some tens. What it
    /// costs is a whole processor for each thread that has such a connection, while calls come and for `duration`
    /// after the last byte. Between two tries the other connections and tasks of the thread have their turn. It is worth
    /// it for few calls in flight on processors that are spare, best with [`threads`](Self::threads) or on a
    /// single-threaded runtime: on one of several threads each try makes another thread look for work.
    pub fn busy_poll(mut self, duration: Duration) -> Self {
        self.busy_poll = duration;
        self
    }

    /// Serves on `count` threads of the server's own, each with a runtime, in place of the runtime that [`bind`](Self::bind) is
    /// called in, which then only accepts. A connection stays on its thread, the one that had the fewest when it came,
    /// and its calls' handlers run there: one that computes for long delays all others of the thread.
    ///
    /// The threads end with [`BoundServer::serve_until`]. They are for sockets that are listened on;
    /// [`serve_connection`](Self::serve_connection) and [`serve_incoming`](Self::serve_incoming) stay where they are
    /// called.
    pub fn threads(mut self, count: usize) -> Self {
        self.executor.threads = Some(count);
        self
    }

    /// Keeps each of the [`threads`](Self::threads) on one of these processors, in turn; without `threads`, there is
    /// one for each processor named. Only on Linux.
    pub fn pin(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.executor.cpus = cpus.into_iter().collect();
        self
    }

    /// Measures calls; not at all by default.
    #[cfg(feature = "opentelemetry")]
    pub fn metrics(mut self, metrics: crate::Metrics) -> Self {
        self.measure = Some(metrics);
        self
    }

    /// Takes the addresses. From here on clients can connect; they are answered once the server serves.
    ///
    /// # Errors
    /// Names the address that could not be had, and why; or what keeps the [`threads`](Self::threads) from running.
    pub async fn bind(self, addresses: &[ListenAddress]) -> Result<BoundServer, BindError> {
        let mut listeners = Vec::with_capacity(addresses.len());
        let mut local = Vec::with_capacity(addresses.len());
        for address in addresses {
            let failed = |source| BindError::Listen { address: address.clone(), source };
            let listener = Listener::bind(address).await.map_err(failed)?;
            local.push(listener.local_address(address).map_err(failed)?);
            listeners.push(listener);
        }
        let executor = self.executor.start("thalweg-server")?.map(Arc::new);
        Ok(BoundServer { listeners, local, executor, acceptor: self.acceptor() })
    }

    /// Serves one connection over any byte stream until it is over: an in-memory pipe in a test, a socket that came
    /// from elsewhere.
    pub async fn serve_connection<IO>(self, io: IO)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.acceptor().serve(io, "a byte stream".to_owned()).await;
    }

    /// Serves byte streams from any source, as [`BoundServer::serve_until`] does with sockets: until `shutdown` is ready
    /// and the connections there were are drained, or until `incoming` has ended and its connections are over.
    pub async fn serve_incoming<IO>(
        self,
        incoming: impl Stream<Item = IO>,
        shutdown: impl Future<Output = ()>,
    ) where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let acceptor = self.acceptor();
        let accepting = async {
            let mut incoming = pin!(incoming);
            while let Some(io) = poll_fn(|cx| incoming.as_mut().poll_next(cx)).await {
                tokio::spawn(acceptor.serve(io, "a byte stream".to_owned()));
            }
            acceptor.connections.emptied().await;
        };
        let sweeping = tokio::spawn(acceptor.connections.clone().sweep());
        tokio::select! {
            biased;
            () = shutdown => acceptor.connections.drain(acceptor.shutdown_grace).await,
            () = accepting => {}
        }
        sweeping.abort();
    }

    fn acceptor(self) -> Acceptor {
        Acceptor {
            router: Arc::new(self.router),
            http2: self.http2,
            shutdown_grace: self.shutdown_grace,
            busy_poll: self.busy_poll,
            connections: Arc::default(),
            measure: ServerMeasure::new(&self.measure),
        }
    }
}

/// Why a server can't serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// An address that can't be listened on.
    #[error("can't listen on {address}: {source}{}", hint(source))]
    Listen {
        /// The address as it was given.
        address: ListenAddress,
        /// What the system said.
        source: io::Error,
    },
    /// The server's own threads can't run.
    #[error("the server's threads: {0}")]
    Threads(#[from] ExecutorError),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " (another process has it: stop that, or choose another)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 and some folders are for privileged users)",
        _ => "",
    }
}

/// Trailing metadata of a call that ends with OK: put it into the extensions of the response.
///
/// (A call that fails carries its metadata in the [`Status`](crate::Status).)
///
/// ```
/// use thalweg::metadata::MetadataMap;
/// use thalweg::{Response, server::Trailers};
///
/// let mut trailers = MetadataMap::new();
/// trailers.insert("x-rows-read", "42".parse().unwrap());
/// let mut response = Response::new(());
/// response.extensions_mut().insert(Trailers(trailers));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trailers(pub MetadataMap);

/// A server that has its addresses.
#[derive(Debug)]
pub struct BoundServer {
    listeners: Vec<Listener>,
    local: Vec<ListenAddress>,
    /// The threads that connections run on, if not on the caller's runtime.
    executor: Option<Arc<Executor>>,
    acceptor: Acceptor,
}

/// Serving ended by an error.
#[derive(Debug, thiserror::Error)]
#[error("can't accept connections on {address}: {source}")]
pub struct ServeError {
    address: ListenAddress,
    source: io::Error,
}

impl BoundServer {
    /// The addresses, with the ports that the system chose where port 0 was asked for.
    pub fn local_addresses(&self) -> &[ListenAddress] {
        &self.local
    }

    /// Serves until the process ends.
    pub async fn serve(self) -> Result<(), ServeError> {
        self.serve_until(pending()).await
    }

    /// Serves until `shutdown` is ready, then gracefully stops: no new connections, no new calls on those there are
    /// (two GOAWAYs, as in RFC 9113 §6.8), and calls under way may end within the grace period.
    pub async fn serve_until(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { listeners, local, executor, acceptor } = self;
        let mut accepting = JoinSet::new();
        for (listener, address) in listeners.into_iter().zip(local) {
            let (acceptor, executor) = (acceptor.clone(), executor.clone());
            accepting.spawn(async move { acceptor.accept(listener, address, executor.as_deref()).await });
        }
        let sweeping = tokio::spawn(acceptor.connections.clone().sweep());
        let mut outcome = Ok(());
        tokio::select! {
            () = shutdown => {}
            Some(ended) = accepting.join_next() => {
                if let Ok(Err(error)) = ended {
                    outcome = Err(error);
                }
            }
        }
        accepting.shutdown().await;
        acceptor.connections.drain(acceptor.shutdown_grace).await;
        sweeping.abort();
        if let Some(executor) = executor {
            executor.end().await;
        }
        outcome
    }
}

/// What every connection of a server is made from.
#[derive(Clone, Debug)]
struct Acceptor {
    router: Arc<Router>,
    http2: thalweg_http2::Config,
    shutdown_grace: Duration,
    busy_poll: Duration,
    connections: Arc<Connections>,
    measure: ServerMeasure,
}

/// How long accepting pauses when the process has no file descriptors left: calls that end give some back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Acceptor {
    async fn accept(
        self,
        listener: Listener,
        address: ListenAddress,
        executor: Option<&Executor>,
    ) -> Result<(), ServeError> {
        loop {
            let started = match listener.accept().await {
                Ok(socket) => self.start(socket, executor),
                Err(error) => Err(error),
            };
            match started {
                Ok(()) => {}
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) if is_passing(&error) => tokio::time::sleep(ACCEPT_PAUSE).await,
                Err(source) => return Err(ServeError { address, source }),
            }
        }
    }

    /// Serves a socket in a task, here or on one of the threads.
    fn start(&self, socket: Accepted, executor: Option<&Executor>) -> io::Result<()> {
        let seat = executor.map(Executor::seat);
        let runtime = seat.as_ref().map_or_else(Handle::current, |seat| seat.runtime.clone());
        let peer = socket.peer_name.clone();
        let socket = {
            let _watched_by_it = runtime.enter();
            socket.watch(!self.busy_poll.is_zero())?
        };
        // It is in the list before the task runs: a shutdown at this moment waits for it.
        let serving = self.serve(socket, peer);
        runtime.spawn(async move {
            serving.await;
            drop(seat);
        });
        Ok(())
    }

    fn serve<IO>(&self, io: IO, peer: String) -> impl Future<Output = ()> + Send + use<IO>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let http2 = thalweg_http2::Connection::server(self.http2.clone(), Instant::now().into_std());
        let connection = Connection::new(http2, peer, None);
        let registered = self.connections.register(&connection);
        let endpoint = ServerEndpoint::new(Arc::clone(&self.router), self.measure.clone());
        let driver = Driver::new(io, endpoint, connection, self.busy_poll);
        async move {
            driver.await;
            drop(registered);
        }
    }
}

/// The client was gone before it was accepted: nothing to do with the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// Out of descriptors or memory: EMFILE, ENFILE, ENOBUFS, ENOMEM.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(24 | 23 | 105 | 12))
}

/// The open connections of a server, for all that is done to each of them.
#[derive(Debug)]
struct Connections {
    open: Mutex<Slab<(Arc<Connection>, u64)>>,
    emptied: Notify,
    draining: watch::Sender<bool>,
}

impl Default for Connections {
    fn default() -> Self {
        Self { open: Mutex::default(), emptied: Notify::new(), draining: watch::Sender::new(false) }
    }
}

/// How often idle connections are looked for, to give their memory back.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl Connections {
    fn register(self: &Arc<Self>, connection: &Arc<Connection>) -> Registered {
        let index = self.lock().insert((Arc::clone(connection), 0));
        if *self.draining.borrow() {
            drain(connection);
        }
        Registered { connections: Arc::clone(self), index }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slab<(Arc<Connection>, u64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections on which nothing has moved since the last look give their spare memory back.
    async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            for (_, (connection, activity)) in &mut *self.lock() {
                let mut state = connection.lock();
                if *activity != state.activity {
                    *activity = state.activity;
                } else if !state.shrunk {
                    state.shrink();
                }
            }
        }
    }

    /// Tells every client to go, waits for their calls, and cuts off what is left after `grace`.
    async fn drain(&self, grace: Duration) {
        self.draining.send_replace(true);
        for (_, (connection, _)) in &*self.lock() {
            drain(connection);
        }
        if tokio::time::timeout(grace, self.emptied()).await.is_ok() {
            return;
        }
        for (_, (connection, _)) in &*self.lock() {
            let mut state = connection.lock();
            state.http2.close(ErrorCode::NoError, b"the server's shutdown grace is over");
            state.notify_driver();
        }
        // The drivers flush that, and linger a moment at most.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.emptied()).await;
    }

    async fn emptied(&self) {
        let mut emptied = Box::pin(self.emptied.notified());
        poll_fn(|cx| {
            loop {
                let notified = emptied.as_mut().poll(cx);
                if self.lock().is_empty() {
                    return Poll::Ready(());
                }
                if notified.is_pending() {
                    return Poll::Pending;
                }
                emptied = Box::pin(self.emptied.notified());
            }
        })
        .await;
    }
}

fn drain(connection: &Connection) {
    let mut state = connection.lock();
    state.http2.drain(Instant::now().into_std());
    state.notify_driver();
}

/// A connection's place in the list, given up when it is over.
struct Registered {
    connections: Arc<Connections>,
    index: usize,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        open.remove(self.index);
        if open.is_empty() {
            self.connections.emptied.notify_waiters();
        }
    }
}
