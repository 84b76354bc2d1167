//! Servers on listening sockets: binding, accepting and draining.

use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{JoinHandle, JoinSet};

use super::acceptor::Acceptor;
#[cfg(feature = "tls")]
use super::acceptor::Secure;
use super::connections::{ConnectionLimits, Connections};
use super::dispatch::{Router, ServerMethod};
use super::draining::Draining;
use super::fallback::Fallback;
use super::maintenance::Times;
use super::memory;
use crate::bounded_time::bounded;
use crate::connection::{self, Keepalive, KeepalivePolicy};
use crate::executor::{Executor, ExecutorError, ExecutorOptions};
use crate::measure::{self, ServerMeasure};
use crate::net::{ListenAddress, Listener, TcpKeepalive};
use crate::status::{Code, Status};
#[cfg(feature = "tls")]
use crate::tls::{ServerTls, ServerTlsConfig, TlsError};

/// Settings of a server, each documented here: the builders of API layers link to its field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// HTTP/2 settings of the connections. [`keepalive_policy`](Self::keepalive_policy) replaces their `ping_policy`.
    pub http2: thalweg_http2::Config,
    /// Grace period of calls in flight on shutdown; 30 s by default. Calls that take longer are cancelled.
    pub shutdown_grace: Duration,
    /// Time for which an idle connection busy-polls before it sleeps. Zero turns busy-polling off. `None`, the default,
    /// busy-polls for up to 30 µs where small messages follow each other closely and recent polls have succeeded.
    ///
    /// A call that arrives in that time is seen within about a microsecond; waking a thread takes tens. The price is a
    /// whole processor per thread with such a connection, while calls arrive and for this time after the last byte.
    /// Between two polls, other connections and tasks of the thread run. It pays for few calls in flight on spare
    /// processors, best with [`threads`](Self::threads) or a single-threaded runtime. On a multi-threaded runtime, each
    /// poll makes another thread look for work.
    pub busy_poll: Option<Duration>,
    /// Maximum number of connections; unlimited by default. At the limit, a new connection is closed, and the longest
    /// idle one with it to make room for the next.
    ///
    /// Regardless of this limit, idle connections are closed when the process runs out of file descriptors.
    pub max_connections: Option<usize>,
    /// Maximum number of connections per IP address; unlimited by default. Further ones are closed. Clients behind one
    /// proxy share an address; clients on Unix sockets have none and are not counted.
    pub max_connections_per_address: Option<usize>,
    /// Maximum time of a connection without a call, to the second; unlimited by default. On expiry the server sends
    /// GOAWAY, and the client reconnects for its next call.
    pub max_connection_idle: Option<Duration>,
    /// Maximum age of a connection, to the second, with ±10 % jitter; unlimited by default. On expiry the server sends
    /// GOAWAY, and the client reconnects for its next call. Behind a load balancer, new servers get their share of
    /// connections this way (gRFC [A9]).
    ///
    /// [A9]: https://github.com/grpc/proposal/blob/master/A9-server-side-conn-mgt.md
    pub max_connection_age: Option<Duration>,
    /// Grace period of calls in flight on a connection that has reached its
    /// [`max_connection_age`](Self::max_connection_age); unlimited by default. Calls that take longer are cancelled.
    pub max_connection_age_grace: Option<Duration>,
    /// Keepalive PINGs to silent clients; after two hours by default. If set, a connection also ends when its client
    /// has not acknowledged data within the keepalive timeout (TCP_USER_TIMEOUT). Exact to the second.
    pub keepalive: Option<Keepalive>,
    /// Minimum interval of PINGs from clients (gRFC A8, like grpc-go's `EnforcementPolicy`); by default five minutes,
    /// and two hours without a call. A client that sends more while it receives no responses gets GOAWAY with
    /// ENHANCE_YOUR_CALM and `too_many_pings`. It halves its rate when it reconnects. Match it to the clients' own
    /// [`Keepalive`].
    pub keepalive_policy: KeepalivePolicy,
    /// TCP keepalive of accepted connections; on by default, with the times of [`TcpKeepalive::default`]. `None` uses
    /// the system's setting, which is mostly off. Vanished clients are then detected by [`keepalive`](Self::keepalive)
    /// over HTTP/2, and over HTTP/1.1 only when data is sent. Sockets accepted by the application are not affected.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Whether other processes and servers may listen on the same TCP ports (SO_REUSEPORT), if they set it, too; off by
    /// default. The kernel spreads the connections over them. All have to run as the same user.
    pub reuse_port: bool,
    /// Time limit of a header block, and of any frame except DATA, from first to last byte; 10 s by default. On expiry
    /// the connection is closed.
    pub header_timeout: Duration,
    /// Time limit of a request's message, plus a second for each KiB of it; 30 s by default, unlimited if `None`. On
    /// expiry the call ends with CANCELLED. The clock stops between two messages of a stream, and while the client may
    /// not send because other calls go first.
    pub request_timeout: Option<Duration>,
    /// Maximum time by which a client may lag behind reading responses at 1 KiB a second; 60 s by default. On expiry
    /// its stream is reset, or its connection closed if that blocks the data. Streams with nothing to send are exempt.
    /// `None` sets no minimum rate, even beyond the connection's
    /// [`buffer_budget`](field@thalweg_http2::Config::buffer_budget).
    pub reply_timeout: Option<Duration>,
    /// Memory budget of all connections in bytes: requests that handlers have not read, and responses that clients have
    /// not read. By default a quarter of the memory of the process (the machine's, or its control group's). From three
    /// quarters on, each connection has a budget of 1 MiB. At the maximum, handlers wait before they build responses.
    /// To free memory, the server closes connections that barely read, and those with the largest requests if requests
    /// use it up.
    pub max_memory: Option<usize>,
    /// Number of dedicated threads, each with a runtime, that run connections and handlers; `None` by default. The
    /// binding runtime then only accepts connections. A new connection goes to the thread with the fewest and stays
    /// there, so a handler that computes for long delays others of its thread. The threads end with
    /// [`BoundServer::serve_until`]. They serve listening sockets only.
    pub threads: Option<usize>,
    /// Processors that the [`threads`](Self::threads) are pinned to, round-robin; any by default. If `threads` is
    /// `None`, one thread is started per listed processor. Linux only.
    pub cpus: Vec<usize>,
    /// Set when the server starts to drain. API layers keep a clone to observe it.
    pub draining: Draining,
    /// Whether each request has the [`ConnectionInfo`](crate::ConnectionInfo) of its connection, which costs two
    /// allocations per call. `None`, the default, does so over TLS only.
    pub connection_info: Option<bool>,
    /// Handler of non-gRPC traffic on the same port; none by default.
    pub fallback: Option<Fallback>,
    #[cfg(feature = "tls")]
    tls: Option<ServerTls>,
    pub(super) measure: measure::Setup,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            http2: thalweg_http2::Config::default(),
            shutdown_grace: Duration::from_secs(30),
            busy_poll: None,
            max_connections: None,
            max_connections_per_address: None,
            max_connection_idle: None,
            max_connection_age: None,
            max_connection_age_grace: None,
            keepalive: None,
            keepalive_policy: KeepalivePolicy::default(),
            tcp_keepalive: Some(TcpKeepalive::default()),
            reuse_port: false,
            header_timeout: Duration::from_secs(10),
            request_timeout: Some(Duration::from_secs(30)),
            reply_timeout: Some(Duration::from_secs(60)),
            max_memory: None,
            threads: None,
            cpus: Vec::new(),
            draining: Draining::default(),
            connection_info: None,
            fallback: None,
            #[cfg(feature = "tls")]
            tls: None,
            measure: measure::Setup::default(),
        }
    }
}

/// The default of gRPC's other implementations.
const KEEPALIVE_DEFAULT: Keepalive = Keepalive {
    interval: Duration::from_secs(2 * 60 * 60),
    timeout: Duration::from_secs(20),
    without_calls: true,
};

impl ServerConfig {
    /// Serves over TLS only.
    ///
    /// # Errors
    /// Returns an error if the identity is missing, or if certificates or keys cannot be read or used.
    #[cfg(feature = "tls")]
    pub fn set_tls(&mut self, tls: ServerTlsConfig) -> Result<(), TlsError> {
        self.tls = Some(tls.prepare()?);
        Ok(())
    }

    /// Measures calls.
    #[cfg(feature = "opentelemetry")]
    pub fn set_metrics(&mut self, metrics: crate::Metrics) {
        self.measure.metrics = Some(metrics);
    }

    /// Traces calls that end before a handler starts. The others are traced by their [handlers](super::Traced).
    #[cfg(feature = "opentelemetry")]
    pub fn set_traces(&mut self, traces: crate::Traces) {
        self.measure.traces = Some(traces);
    }

    /// Turns off default busy-polling, because the application provides the byte streams.
    fn for_streams(mut self) -> Self {
        self.busy_poll.get_or_insert_default();
        self
    }

    fn acceptor(self, router: Arc<dyn Router>) -> Acceptor {
        // gRFC A8: a server sends PINGs with or without calls.
        let effective = |keepalive: Keepalive| keepalive.at_least(Duration::ZERO).without_calls(true);
        let keepalive = self.keepalive.map(effective);
        let limits = ConnectionLimits {
            max: self.max_connections,
            max_per_address: self.max_connections_per_address,
            memory_max: self.max_memory.unwrap_or_else(memory::default_max),
            buffer_budget: self.http2.buffer_budget,
            times: Times {
                idle_max: self.max_connection_idle.map(bounded),
                age_max: self.max_connection_age.map(bounded),
                age_grace: self.max_connection_age_grace.map(bounded),
                keepalive: keepalive.unwrap_or(KEEPALIVE_DEFAULT),
                header: bounded(self.header_timeout),
                request: self.request_timeout.map(bounded),
                response: self.reply_timeout.map(bounded),
            },
        };
        Acceptor {
            router,
            http2: Arc::new(connection::fit(self.http2.ping_policy(Some(self.keepalive_policy.into())))),
            shutdown_grace: self.shutdown_grace,
            busy_poll: self.busy_poll,
            user_timeout: keepalive.map(|keepalive| keepalive.timeout),
            local: None,
            connections: Connections::new(limits, self.draining),
            measure: ServerMeasure::new(&self.measure),
            #[cfg(feature = "tls")]
            passes_connection_info: self.connection_info.unwrap_or(self.tls.is_some()),
            #[cfg(not(feature = "tls"))]
            passes_connection_info: self.connection_info.unwrap_or(false),
            #[cfg(feature = "tls")]
            tls: self.tls.map(|tls| Secure::new(tls, self.fallback.is_some())),
            header_timeout: self.header_timeout,
            fallback: self.fallback,
        }
    }
}

/// Binds the addresses. Clients can connect from then on; calls wait until the server runs.
///
/// # Errors
/// Returns the address that cannot be bound with the system's error, or an error if threads cannot be started.
pub async fn bind(
    config: ServerConfig,
    router: Arc<dyn Router>,
    addresses: &[ListenAddress],
) -> Result<BoundServer, BindError> {
    let mut listeners = Vec::with_capacity(addresses.len());
    let mut local = Vec::with_capacity(addresses.len());
    for address in addresses {
        let failed = |source| BindError::Listen { address: address.clone(), source };
        let listener =
            Listener::bind(address, config.tcp_keepalive, config.reuse_port).await.map_err(failed)?;
        local.push(listener.local_address(address).map_err(failed)?);
        listeners.push(listener);
    }
    let executor = ExecutorOptions { threads: config.threads, cpus: config.cpus.clone() };
    let executor = executor.start("thalweg-server")?.map(Arc::new);
    let acceptor = config.acceptor(router);
    acceptor.connections.listen(&local);
    Ok(BoundServer { listeners, local, executor, acceptor })
}

/// Serves one connection over any byte stream until it ends.
pub async fn serve_connection<IO>(config: ServerConfig, router: Arc<dyn Router>, io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let acceptor = config.for_streams().acceptor(router);
    // In a separate task: the connection's own task would poll the timer on every wake-up.
    let _sweeping = Sweeping::begin(&acceptor);
    acceptor.serve_stream(io).await;
}

/// Task that maintains a server's connections, aborted on drop.
struct Sweeping(JoinHandle<()>);

impl Sweeping {
    fn begin(acceptor: &Acceptor) -> Self {
        let connections = &acceptor.connections;
        let (sweep, pace) = (Arc::clone(connections).sweep(), Arc::clone(connections).pace());
        Self(tokio::spawn(async {
            tokio::join!(sweep, pace);
        }))
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Serves byte streams from any source, as [`BoundServer::serve_until`] does with sockets. Returns when `shutdown`
/// completes and the connections are drained, or when `incoming` and all its connections have ended.
pub async fn serve_incoming<IO>(
    config: ServerConfig,
    router: Arc<dyn Router>,
    incoming: impl Stream<Item = IO>,
    shutdown: impl Future<Output = ()>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let acceptor = config.for_streams().acceptor(router);
    let serve = |io: IO| drop(tokio::spawn(acceptor.serve_stream(io)));
    serve_each(&acceptor, incoming, serve, shutdown).await;
}

/// Like [`serve_incoming`], with a router for each stream. Without `shutdown` it returns when `incoming` ends, and the
/// remaining connections continue.
pub async fn serve_routed<IO>(
    config: ServerConfig,
    incoming: impl Stream<Item = (IO, Arc<dyn Router>)>,
    shutdown: Option<impl Future<Output = ()>>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let acceptor = config.for_streams().acceptor(Arc::new(NoMethods));
    let serve = |(io, router): (IO, Arc<dyn Router>)| {
        let acceptor = Acceptor { router, ..acceptor.clone() };
        tokio::spawn(acceptor.serve_stream(io));
    };
    if let Some(shutdown) = shutdown {
        return serve_each(&acceptor, incoming, serve, shutdown).await;
    }
    let sweeping = Sweeping::begin(&acceptor);
    start_each(incoming, serve).await;
    let connections = Arc::clone(&acceptor.connections);
    tokio::spawn(async move {
        connections.emptied().await;
        drop(sweeping);
    });
}

#[derive(Debug)]
struct NoMethods;

impl Router for NoMethods {
    fn find(&self, _: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        Err(Status::new(Code::Unimplemented, "unknown method"))
    }
}

async fn serve_each<T>(
    acceptor: &Acceptor,
    incoming: impl Stream<Item = T>,
    serve: impl Fn(T),
    shutdown: impl Future<Output = ()>,
) {
    let accepting = async {
        start_each(incoming, serve).await;
        acceptor.connections.emptied().await;
    };
    let _sweeping = Sweeping::begin(acceptor);
    tokio::select! {
        biased;
        () = shutdown => acceptor.connections.drain(acceptor.shutdown_grace).await,
        () = accepting => {}
    }
}

async fn start_each<T>(incoming: impl Stream<Item = T>, serve: impl Fn(T)) {
    let mut incoming = pin!(incoming);
    while let Some(accepted) = poll_fn(|cx| incoming.as_mut().poll_next(cx)).await {
        serve(accepted);
    }
}

/// Reason why a server cannot be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// An address cannot be listened on.
    #[error("failed to listen on {address}: {source}{}", hint(source))]
    Listen {
        /// The address as given.
        address: ListenAddress,
        /// The system's error.
        source: io::Error,
    },
    /// The server's threads cannot be started.
    #[error("failed to set up the server's threads: {0}")]
    Threads(#[from] ExecutorError),
    /// TLS cannot be set up.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The protocols other than gRPC cannot be set up.
    #[error("failed to set up protocols other than gRPC: {0}")]
    Fallback(#[source] Box<dyn std::error::Error + Send + Sync>),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " (in use by another process; stop it or choose another address)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 and some folders need privileges)",
        _ => "",
    }
}

/// A server with bound addresses.
#[derive(Debug)]
pub struct BoundServer {
    listeners: Vec<Listener>,
    local: Vec<ListenAddress>,
    /// Threads for connections; `None` for the caller's runtime.
    executor: Option<Arc<Executor>>,
    acceptor: Acceptor,
}

/// Error that ended serving.
#[derive(Debug, thiserror::Error)]
#[error("failed to accept connections on {address}: {source}")]
pub struct ServeError {
    address: ListenAddress,
    source: io::Error,
}

impl BoundServer {
    /// Returns the bound addresses, with the ports that the system chose for port 0.
    pub fn local_addresses(&self) -> &[ListenAddress] {
        &self.local
    }

    /// Serves until the process ends.
    pub async fn serve(self) -> Result<(), ServeError> {
        self.serve_until(pending()).await
    }

    /// Serves until `shutdown` completes, then stops gracefully: it accepts no new connections or calls (two GOAWAYs,
    /// RFC 9113 §6.8). Active calls have the grace period to finish.
    pub async fn serve_until(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { listeners, local, executor, acceptor } = self;
        let mut accepting = JoinSet::new();
        for (listener, address) in listeners.into_iter().zip(local) {
            let (mut acceptor, executor) = (acceptor.clone(), executor.clone());
            acceptor.local = Some(Arc::new(address.clone()));
            accepting.spawn(async move {
                let source = acceptor.accept(listener, executor.as_deref()).await;
                ServeError { address, source }
            });
        }
        let _sweeping = Sweeping::begin(&acceptor);
        let mut outcome = Ok(());
        tokio::select! {
            () = shutdown => {}
            Some(ended) = accepting.join_next() => {
                if let Ok(error) = ended {
                    outcome = Err(error);
                }
            }
        }
        accepting.shutdown().await;
        acceptor.connections.drain(acceptor.shutdown_grace).await;
        if let Some(executor) = executor {
            executor.end().await;
        }
        outcome
    }
}
