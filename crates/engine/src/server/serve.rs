//! Services behind listening sockets: what binds, accepts and drains.

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
use super::beside::Beside;
use super::connections::{ConnectionLimits, Connections};
use super::dispatch::{Router, ServerMethod};
use super::draining::Draining;
use super::memory;
use super::upkeep::Times;
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
    /// HTTP/2 settings of the connections. Their `ping_policy` is that of [`keepalive_policy`](Self::keepalive_policy).
    pub http2: thalweg_http2::Config,
    /// Time for the calls in flight when the server is told to stop; 30 s by default. Calls that take longer are cut
    /// off.
    pub shutdown_grace: Duration,
    /// Time for which an idle connection busy-polls before it sleeps. Zero turns busy-polling off. `None`, the default,
    /// busy-polls for up to 30 µs where small messages follow each other closely and recent polls have succeeded.
    ///
    /// A call that arrives in that time is seen within about a microsecond; waking a thread takes tens. The price is a
    /// whole processor for each thread that has such a connection, while calls come and for this time after the last
    /// byte. Between two polls, the other connections and tasks of the thread run. It pays for few calls in flight on
    /// spare processors, best with [`threads`](Self::threads) or on a single-threaded runtime: on one of several
    /// threads, each poll makes another thread look for work.
    pub busy_poll: Option<Duration>,
    /// Maximum number of connections; unlimited by default. At the limit, a new connection is closed, and so is the one
    /// that has been idle for the longest time, to make room for the next.
    ///
    /// Regardless of this limit, idle connections are closed when the process runs out of file descriptors.
    pub max_connections: Option<usize>,
    /// Maximum number of connections of one IP address; unlimited by default. Further ones are closed. Clients behind
    /// one proxy share an address; clients on UNIX sockets have none and are not counted.
    pub max_connections_per_address: Option<usize>,
    /// Maximum time of a connection without a call; unlimited by default. On expiry the server sends GOAWAY, and the
    /// client connects again for its next call. Exact to the second.
    pub max_connection_idle: Option<Duration>,
    /// Maximum age of a connection, with ±10 % jitter; unlimited by default. On expiry the server sends GOAWAY, and the
    /// client connects again for its next call: behind a load balancer, new servers get their share in this way (gRFC
    /// [A9]). Exact to the second.
    ///
    /// [A9]: https://github.com/grpc/proposal/blob/master/A9-server-side-conn-mgt.md
    pub max_connection_age: Option<Duration>,
    /// Time for the calls in flight on a connection that has reached its
    /// [`max_connection_age`](Self::max_connection_age); unlimited by default. Calls that take longer are cut off.
    pub max_connection_age_grace: Option<Duration>,
    /// When the server sends PINGs to silent clients; after two hours by default. If it is set, a connection also ends
    /// when its client has not acknowledged data for the keepalive's timeout (TCP_USER_TIMEOUT). Exact to the second.
    pub keepalive: Option<Keepalive>,
    /// How often clients may send PINGs (gRFC A8, as grpc-go's `EnforcementPolicy`); by default every five minutes, and
    /// every two hours without a call. A client that sends more, while it gets no responses, receives GOAWAY with
    /// ENHANCE_YOUR_CALM and `too_many_pings`, and halves its rate when it connects again. Set it to the clients' own
    /// [`Keepalive`].
    pub keepalive_policy: KeepalivePolicy,
    /// TCP keepalive of the connections that the server accepts; on by default, with the times of
    /// [`TcpKeepalive::default`]. `None` leaves it to the system, where it is mostly off: a client that vanished is
    /// then found by [`keepalive`](Self::keepalive) over HTTP/2, and over HTTP/1.1 only when something is sent to it.
    /// It does not apply to sockets that the application accepted itself.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Time for a header block, and for any frame but DATA, from its first byte to its last; 10 s by default. On expiry
    /// the connection is closed.
    pub header_timeout: Duration,
    /// Time for a request's message to arrive, plus a second for each KiB of it; 30 s by default, unlimited if `None`.
    /// On expiry the call ends with CANCELLED. The clock stops between two messages of a stream, and while the client
    /// may not send because others of its calls go before.
    pub request_timeout: Option<Duration>,
    /// How far a client may be behind the minimum rate at which it must read what waits for it, 1 KiB a second; 60 s by
    /// default. On expiry its stream is reset, or its connection closed if that is what holds the data up. Streams that
    /// have nothing to send are exempt. `None` demands nothing, even beyond the connection's
    /// [`held_max`](field@thalweg_http2::Config::held_max).
    pub reply_timeout: Option<Duration>,
    /// Maximum bytes that all connections may make the server buffer: requests that handlers have not read, and
    /// responses that clients have not read. By default a quarter of the memory of the process (the machine's, or its
    /// control group's). At three quarters of the maximum each connection has a budget of 1 MiB. At the maximum,
    /// handlers wait before they make a response. To make room, the server closes connections that read next to
    /// nothing, and those with the most requests if requests use it up.
    pub max_memory: Option<usize>,
    /// Threads of the server's own, each with a runtime, that run the connections and their handlers instead of the
    /// runtime that binds, which then only accepts. `None`, the default, has none. A new connection goes to the thread
    /// with the fewest and stays there: a handler that computes for long delays all others of its thread. The threads
    /// end with [`BoundServer::serve_until`]. They serve listening sockets only.
    pub threads: Option<usize>,
    /// Processors that the [`threads`](Self::threads) are pinned to, in turn; any by default. Without `threads`, there
    /// is one thread for each processor named. Linux only.
    pub cpus: Vec<usize>,
    /// Told when the server begins to drain; a face keeps a clone for those who want to know.
    pub draining: Draining,
    /// Whether each request has the [`ConnectionInfo`](crate::ConnectionInfo) of its connection, which costs two
    /// allocations a call. `None`, the default: over TLS only.
    pub connection_info: Option<bool>,
    /// Handler of what is not gRPC on the same port; none by default.
    pub beside: Option<Beside>,
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
            header_timeout: Duration::from_secs(10),
            request_timeout: Some(Duration::from_secs(30)),
            reply_timeout: Some(Duration::from_secs(60)),
            max_memory: None,
            threads: None,
            cpus: Vec::new(),
            draining: Draining::default(),
            connection_info: None,
            beside: None,
            #[cfg(feature = "tls")]
            tls: None,
            measure: measure::Setup::default(),
        }
    }
}

/// As in gRPC's other libraries.
const KEEPALIVE_DEFAULT: Keepalive = Keepalive {
    interval: Duration::from_secs(2 * 60 * 60),
    timeout: Duration::from_secs(20),
    without_calls: true,
};

impl ServerConfig {
    /// Serves over TLS alone.
    ///
    /// # Errors
    /// When there is no identity, or certificates or keys can't be read or used.
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

    /// Traces calls that no handler begins; the others by their [handlers](super::Traced).
    #[cfg(feature = "opentelemetry")]
    pub fn set_traces(&mut self, traces: crate::Traces) {
        self.measure.traces = Some(traces);
    }

    /// Of byte streams that others have made: how they read is their own affair, and they don't look unless asked to.
    fn for_streams(mut self) -> Self {
        self.busy_poll.get_or_insert_default();
        self
    }

    fn acceptor(self, router: Arc<dyn Router>) -> Acceptor {
        // gRFC A8: a server asks whether there are calls or not.
        let asks = |keepalive: Keepalive| keepalive.at_least(Duration::ZERO).without_calls(true);
        let keepalive = self.keepalive.map(asks);
        let limits = ConnectionLimits {
            max: self.max_connections,
            max_per_address: self.max_connections_per_address,
            memory_max: self.max_memory.unwrap_or_else(memory::default_max),
            held_max: self.http2.held_max,
            times: Times {
                idle_max: self.max_connection_idle,
                age_max: self.max_connection_age,
                age_grace: self.max_connection_age_grace,
                keepalive: keepalive.unwrap_or(KEEPALIVE_DEFAULT),
                header: self.header_timeout,
                request: self.request_timeout,
                reply: self.reply_timeout,
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
            tells_connection: self.connection_info.unwrap_or(self.tls.is_some()),
            #[cfg(not(feature = "tls"))]
            tells_connection: self.connection_info.unwrap_or(false),
            #[cfg(feature = "tls")]
            tls: self.tls.map(|tls| Secure::new(tls, self.beside.is_some())),
            header_timeout: self.header_timeout,
            beside: self.beside,
        }
    }
}

/// Takes the addresses. From here on clients can connect; they are answered once the server serves.
///
/// # Errors
/// Names the address that could not be had, and why; or what keeps the threads from running.
pub async fn bind(
    config: ServerConfig,
    router: Arc<dyn Router>,
    addresses: &[ListenAddress],
) -> Result<BoundServer, BindError> {
    let mut listeners = Vec::with_capacity(addresses.len());
    let mut local = Vec::with_capacity(addresses.len());
    for address in addresses {
        let failed = |source| BindError::Listen { address: address.clone(), source };
        let listener = Listener::bind(address, config.tcp_keepalive).await.map_err(failed)?;
        local.push(listener.local_address(address).map_err(failed)?);
        listeners.push(listener);
    }
    let executor = ExecutorOptions { threads: config.threads, cpus: config.cpus.clone() };
    let executor = executor.start("thalweg-server")?.map(Arc::new);
    let acceptor = config.acceptor(router);
    acceptor.connections.listen(&local);
    Ok(BoundServer { listeners, local, executor, acceptor })
}

/// Serves one connection over any byte stream until it is over.
pub async fn serve_connection<IO>(config: ServerConfig, router: Arc<dyn Router>, io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let acceptor = config.for_streams().acceptor(router);
    // In a task of its own: the connection's would look at its timer whenever it is woken.
    let _sweeping = Sweeping::begin(&acceptor);
    acceptor.serve_stream(io).await;
}

/// The task that looks after a server's connections, for as long as this is there.
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

/// Serves byte streams from any source, as [`BoundServer::serve_until`] does with sockets: until `shutdown` is ready
/// and the connections there were are drained, or until `incoming` has ended and its connections are over.
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

/// As [`serve_incoming`], where each stream brings the methods that there are for it. Without a `shutdown` it is over
/// when `incoming` is, and the connections that there are go on.
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
        Err(Status::new(Code::Unimplemented, "there is no such method"))
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
    /// TLS can't be set up.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// What the port shall have beside gRPC can't be set up.
    #[error("protocols other than gRPC: {0}")]
    Beside(#[source] Box<dyn std::error::Error + Send + Sync>),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " (another process has it: stop that, or choose another)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 and some folders are for privileged users)",
        _ => "",
    }
}

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
