//! gRPC servers: [`Server`].

mod handle;
mod handler;
mod intercepted;
mod intercepted_service;
mod listen_addresses;
mod methods;
#[cfg(feature = "opentelemetry")]
mod traced;
mod trailers;
#[cfg(not(feature = "opentelemetry"))]
mod untraced;

use std::fmt;
use std::future::{Future, pending};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use thalweg_engine::server::ServerConfig;
use thalweg_engine::{self as engine, Encoding, Keepalive, KeepalivePolicy, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};

pub use handle::ServerHandle;
pub use intercepted_service::InterceptedService;
pub use listen_addresses::ListenAddresses;
pub use methods::{Methods, Service};
pub use thalweg_engine::server::{BindError, BoundServer, ServeError};
pub use trailers::{LateTrailers, Trailers};

use crate::interceptor::{Chain, Interceptor};
use methods::Router;
#[cfg(feature = "opentelemetry")]
use traced::Tracing;
#[cfg(not(feature = "opentelemetry"))]
use untraced::Tracing;

/// A gRPC server; start with [`Server::builder`].
///
/// ```no_run
/// # use thalweg::server::{Methods, Service};
/// # struct Greeter;
/// # impl Service for Greeter {
/// #     const NAME: &'static str = "a.Greeter";
/// #     fn register(self, _: &mut Methods) {}
/// # }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// thalweg::Server::builder().add_service(Greeter).serve("127.0.0.1:50051".parse()?).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Server(());

impl Server {
    /// Returns a builder for a server.
    pub fn builder() -> ServerBuilder {
        let config = ServerConfig::default();
        let server = ServerHandle::new(config.draining.clone());
        ServerBuilder {
            services: Vec::new(),
            chain: Chain::default(),
            send_compressed: None,
            traces: Tracing::default(),
            server,
            config,
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "web")]
            web: None,
        }
    }
}

/// Registers the methods of a service, behind interceptors.
type Register = dyn FnOnce(&mut Router, Chain) + Send + Sync;

/// Builder of a [`Server`]; see [`Server::builder`].
pub struct ServerBuilder {
    /// Registered once all interceptors are known.
    services: Vec<Box<Register>>,
    chain: Chain,
    send_compressed: Option<Encoding>,
    traces: Tracing,
    server: ServerHandle,
    config: ServerConfig,
    #[cfg(feature = "tls")]
    tls: Option<crate::tls::ServerTlsConfig>,
    #[cfg(feature = "web")]
    web: Option<thalweg_web::Web>,
}

impl ServerBuilder {
    /// Adds a service, replacing one of the same name.
    pub fn add_service<S: Service>(mut self, service: S) -> Self {
        self.server.add_service(S::NAME, S::FILE_DESCRIPTOR_SET);
        self.services.push(Box::new(|router, chain| {
            service.register(&mut Methods::new::<S>(router, chain));
        }));
        self
    }

    /// Returns a handle for other parts of the program: whether the server is shutting down, and what it serves.
    pub fn handle(&self) -> ServerHandle {
        self.server.clone()
    }

    /// Adds an interceptor around the calls of all services, including those added later. The first one added is the
    /// outermost. Interceptors of a service ([`InterceptedService`]) are inside of them all.
    ///
    /// Calls of unknown methods are rejected before interceptors see them.
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.chain = self.chain.with(interceptor.into_link().0);
        self
    }

    /// Compresses messages of services without a compression setting of their own, for clients that accept `encoding`;
    /// off by default.
    pub fn send_compressed(mut self, encoding: Encoding) -> Self {
        self.send_compressed = Some(encoding);
        self
    }

    /// Returns the engine's configuration and the router of all methods with their interceptors. For API layers that
    /// [call](engine::server::LocalCalls) the methods without a connection.
    ///
    /// # Errors
    /// Returns an error if TLS or the protocols other than gRPC (`web`) cannot be set up.
    pub fn into_parts(self) -> Result<(ServerConfig, Arc<dyn engine::server::Router>), BindError> {
        #[cfg_attr(not(any(feature = "tls", feature = "web")), expect(unused_mut, reason = "nothing to add"))]
        let mut config = self.config;
        #[cfg(feature = "tls")]
        if let Some(tls) = self.tls {
            config.set_tls(tls)?;
        }
        let mut router = Router::new(self.server, self.send_compressed, self.traces);
        for register in self.services {
            register(&mut router, self.chain.clone());
        }
        #[cfg(feature = "web")]
        let descriptors = router.server.descriptor_sets();
        let router: Arc<dyn engine::server::Router> = Arc::new(router);
        #[cfg(feature = "web")]
        if let Some(web) = self.web {
            config.fallback = Some(web_fallback(&config, &router, descriptors, web)?);
        }
        Ok((config, router))
    }

    /// Also serves Connect, gRPC-Web and JSON on this port, for all services, over HTTP/2 and HTTP/1.1. These calls
    /// pass the same interceptors and have the same limits. Requests that are not calls may go to a fallback service of
    /// the program.
    ///
    /// JSON needs descriptors: generated code includes them with `thalweg_build::Builder::embed_descriptors`; others
    /// are added with [`Web::descriptors`](thalweg_web::Web::descriptors).
    ///
    /// ```
    /// use thalweg::Server;
    /// use thalweg::web::Web;
    ///
    /// let server = Server::builder().web(Web::new());
    /// # drop(server);
    /// ```
    ///
    /// [`bind`](Self::bind), and the other methods that serve, return an error if the descriptors or their annotations
    /// are invalid.
    #[cfg(feature = "web")]
    pub fn web(mut self, web: thalweg_web::Web) -> Self {
        self.web = Some(web);
        self
    }

    /// Sets the maximum number of concurrent calls per connection,
    /// [`max_concurrent_streams`](field@crate::http2::Config::max_concurrent_streams) of its [HTTP/2
    /// settings](Self::http2); 256 by default.
    pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.config.http2.max_concurrent_streams = streams;
        self
    }

    /// Sets the maximum number of connections, [`ServerConfig::max_connections`]; unlimited by default.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.config.max_connections = Some(connections);
        self
    }

    /// Sets the maximum number of connections per IP address, [`ServerConfig::max_connections_per_address`]; unlimited
    /// by default.
    pub fn max_connections_per_address(mut self, connections: usize) -> Self {
        self.config.max_connections_per_address = Some(connections);
        self
    }

    /// Sets the maximum time of a connection without a call, [`ServerConfig::max_connection_idle`]; unlimited by
    /// default.
    pub fn max_connection_idle(mut self, idle: Duration) -> Self {
        self.config.max_connection_idle = Some(idle);
        self
    }

    /// Sets the maximum age of a connection, [`ServerConfig::max_connection_age`]; unlimited by default.
    pub fn max_connection_age(mut self, age: Duration) -> Self {
        self.config.max_connection_age = Some(age);
        self
    }

    /// Sets the time for calls on a connection that has reached its maximum age,
    /// [`ServerConfig::max_connection_age_grace`]; unlimited by default.
    pub fn max_connection_age_grace(mut self, grace: Duration) -> Self {
        self.config.max_connection_age_grace = Some(grace);
        self
    }

    /// Sets when the server sends PINGs to silent clients, [`ServerConfig::keepalive`]; after two hours of silence by
    /// default.
    pub fn keepalive(mut self, keepalive: Keepalive) -> Self {
        self.config.keepalive = Some(keepalive);
        self
    }

    /// Sets TCP keepalive of accepted connections, [`ServerConfig::tcp_keepalive`]; on by default.
    pub fn tcp_keepalive(mut self, keepalive: impl Into<Option<TcpKeepalive>>) -> Self {
        self.config.tcp_keepalive = keepalive.into();
        self
    }

    /// Sets how often clients may send PINGs, [`ServerConfig::keepalive_policy`]; once every five minutes by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use thalweg::{KeepalivePolicy, Server};
    ///
    /// let policy = KeepalivePolicy::every(Duration::from_secs(30)).without_calls(true);
    /// let builder = Server::builder().keepalive_policy(policy);
    /// # drop(builder);
    /// ```
    pub fn keepalive_policy(mut self, policy: KeepalivePolicy) -> Self {
        self.config.keepalive_policy = policy;
        self
    }

    /// Sets the time limit for a header block to arrive, [`ServerConfig::header_timeout`]; 10 s by default.
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.config.header_timeout = timeout;
        self
    }

    /// Sets the time limit for a request message to arrive, [`ServerConfig::request_timeout`]; 30 s by default.
    pub fn request_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.config.request_timeout = timeout;
        self
    }

    /// Sets how far a client may fall behind in reading, [`ServerConfig::reply_timeout`]; 60 s by default.
    pub fn reply_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.config.reply_timeout = timeout;
        self
    }

    /// Sets how many bytes a client may make its connection buffer,
    /// [`buffer_budget`](field@crate::http2::Config::buffer_budget) of its [HTTP/2 settings](Self::http2); 16 MiB by
    /// default. At the limit, handlers wait before they make a response. While the client reads nothing, one more
    /// handler runs after 1 s, 2 s, 4 s, up to 16 s; the client may read that one's response first. The server closes a
    /// connection that buffers more than that and whose client is 20 s behind the rate of
    /// [`reply_timeout`](Self::reply_timeout).
    pub fn max_connection_memory(mut self, bytes: usize) -> Self {
        self.config.http2.buffer_budget = bytes;
        self
    }

    /// Sets how many bytes all connections together may make the server buffer, [`ServerConfig::max_memory`]; a quarter
    /// of the process's memory by default.
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.config.max_memory = Some(bytes);
        self
    }

    /// Sets the HTTP/2 settings of the connections, [`ServerConfig::http2`].
    pub fn http2(mut self, config: thalweg_engine::http2::Config) -> Self {
        self.config.http2 = config;
        self
    }

    /// Sets the time for calls in flight to finish at shutdown, [`ServerConfig::shutdown_grace`]; 30 s by default.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.config.shutdown_grace = grace;
        self
    }

    /// Sets how long an idle connection busy-polls before it sleeps, [`ServerConfig::busy_poll`]. Adaptive by default,
    /// up to 30 µs.
    pub fn busy_poll(mut self, duration: Duration) -> Self {
        self.config.busy_poll = Some(duration);
        self
    }

    /// Serves on `count` threads of the server's own, [`ServerConfig::threads`]; on the caller's runtime by default.
    /// Applies to listening sockets only; [`serve_connection`](Self::serve_connection) and
    /// [`serve_incoming`](Self::serve_incoming) run where they are called.
    pub fn threads(mut self, count: usize) -> Self {
        self.config.threads = Some(count);
        self
    }

    /// Pins the [`threads`](Self::threads) to these processors, [`ServerConfig::cpus`]; none by default.
    pub fn pin(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.config.cpus = cpus.into_iter().collect();
        self
    }

    /// Serves over TLS only, with an [`Identity`](crate::tls::Identity) or a complete
    /// [`ServerTlsConfig`](crate::tls::ServerTlsConfig). Applies to listening sockets and to byte streams from
    /// elsewhere.
    ///
    /// [`bind`](Self::bind), and the other methods that serve, return an error for an invalid configuration. Examples
    /// are a missing identity, and certificates or keys that cannot be read or used.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<crate::tls::ServerTlsConfig>) -> Self {
        self.tls = Some(tls.into());
        self
    }

    /// Sets whether each request has the [`ConnectionInfo`](crate::ConnectionInfo) of its connection in its extensions,
    /// as an `Arc`, [`ServerConfig::connection_info`]. By default only over TLS.
    pub fn connection_info(mut self, enabled: bool) -> Self {
        self.config.connection_info = Some(enabled);
        self
    }

    /// Records metrics of calls; off by default.
    #[cfg(feature = "opentelemetry")]
    pub fn metrics(mut self, metrics: thalweg_engine::Metrics) -> Self {
        self.config.set_metrics(metrics);
        self
    }

    /// Traces calls; off by default. Interceptors run within the spans.
    #[cfg(feature = "opentelemetry")]
    pub fn traces(mut self, traces: thalweg_engine::Traces) -> Self {
        self.config.set_traces(traces.clone());
        self.traces = Tracing::by(traces);
        self
    }

    /// Serves on one socket until the process ends. To listen on several addresses, on UNIX sockets, or on a port
    /// chosen by the system, use [`bind`](Self::bind).
    ///
    /// # Errors
    /// Same as [`bind`](Self::bind) and [`BoundServer::serve`].
    pub async fn serve(self, address: SocketAddr) -> Result<(), ServerError> {
        self.serve_with_shutdown(address, pending()).await
    }

    /// Serves like [`serve`](Self::serve) until `shutdown` completes, then shuts down gracefully like
    /// [`BoundServer::serve_until`].
    ///
    /// ```no_run
    /// # use thalweg::Server;
    /// # async fn example(shutdown: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
    /// Server::builder().serve_with_shutdown("127.0.0.1:50051".parse()?, shutdown).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`bind`](Self::bind) and [`BoundServer::serve_until`].
    pub async fn serve_with_shutdown(
        self,
        address: SocketAddr,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        Ok(self.bind(address).await?.serve_until(shutdown).await?)
    }

    /// Binds the addresses. Clients can connect from now on; their calls are handled once the server serves.
    ///
    /// # Errors
    /// Returns an error that names the address if it cannot be bound. Also fails if the [`threads`](Self::threads)
    /// cannot start, or TLS or the protocols other than gRPC (`web`) cannot be set up.
    pub async fn bind(self, addresses: impl ListenAddresses) -> Result<BoundServer, BindError> {
        let (config, router) = self.into_parts()?;
        engine::server::bind(config, router, &addresses.into_addresses()).await
    }

    /// Serves one connection over any byte stream until it closes: an in-memory pipe in a test, or a socket accepted
    /// elsewhere.
    ///
    /// # Errors
    /// Returns an error if TLS or the protocols other than gRPC (`web`) cannot be set up.
    pub async fn serve_connection<IO>(self, io: IO) -> Result<(), BindError>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (config, router) = self.into_parts()?;
        engine::server::serve_connection(config, router, io).await;
        Ok(())
    }

    /// Serves byte streams from any source, as [`BoundServer::serve_until`] serves sockets. Returns when `shutdown`
    /// completes and the connections are drained, or when `incoming` and its connections have ended.
    ///
    /// # Errors
    /// Same as [`serve_connection`](Self::serve_connection), before the first stream is taken.
    pub async fn serve_incoming<IO>(
        self,
        incoming: impl Stream<Item = IO>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), BindError>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (config, router) = self.into_parts()?;
        engine::server::serve_incoming(config, router, incoming, shutdown).await;
        Ok(())
    }
}

/// Connect, gRPC-Web and JSON on the same port.
#[cfg(feature = "web")]
fn web_fallback(
    config: &ServerConfig,
    router: &Arc<dyn engine::server::Router>,
    descriptors: Vec<&'static [u8]>,
    web: thalweg_web::Web,
) -> Result<engine::server::Fallback, BindError> {
    let web = descriptors.into_iter().fold(web, thalweg_web::Web::descriptors);
    let calls = engine::server::LocalCalls::new(config, Arc::clone(router));
    let service = web.into_service(calls).map_err(|error| BindError::Fallback(Box::new(error)))?;
    Ok(service.port_fallback())
}

/// Error of a server that binds and serves in one step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The server could not start.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The server stopped with an error.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ServerBuilder");
        #[cfg(feature = "tls")]
        debug.field("tls", &self.tls);
        #[cfg(feature = "web")]
        debug.field("web", &self.web);
        debug
            .field("services", &self.services.len())
            .field("chain", &self.chain)
            .field("send_compressed", &self.send_compressed)
            .field("traces", &self.traces)
            .field("server", &self.server)
            .field("config", &self.config)
            .finish()
    }
}
