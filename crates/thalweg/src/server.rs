//! Services behind listening sockets: [`Server`].

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
pub use trailers::Trailers;

use crate::interceptor::{Chain, Interceptor};
use methods::Router;
#[cfg(feature = "opentelemetry")]
use traced::Tracing;
#[cfg(not(feature = "opentelemetry"))]
use untraced::Tracing;

/// A gRPC server: begin with [`Server::builder`].
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
    /// Begins a server.
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

/// Adds the methods of a service, behind interceptors.
type Register = dyn FnOnce(&mut Router, Chain) + Send + Sync;

/// How a [`Server`] is set up.
pub struct ServerBuilder {
    /// They are registered when all interceptors are known.
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
    /// Adds a service; one of the same name replaces it.
    pub fn add_service<S: Service>(mut self, service: S) -> Self {
        self.server.add_service(S::NAME, S::FILE_DESCRIPTOR_SET);
        self.services.push(Box::new(|router, chain| {
            service.register(&mut Methods::new::<S>(router, chain));
        }));
        self
    }

    /// What the rest of the program may know of the server: whether it has begun to stop, and what it serves.
    pub fn handle(&self) -> ServerHandle {
        self.server.clone()
    }

    /// Has an interceptor see the calls of all services, whenever they are added. The first that is set up is the
    /// outermost, and those of a service ([`InterceptedService`]) are within them all.
    ///
    /// Calls of methods that the server does not have are answered before interceptors see them.
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.chain = self.chain.with(interceptor.into_link().0);
        self
    }

    /// Compresses the messages of all services that do not say how they do, for clients that accept `encoding`.
    pub fn send_compressed(mut self, encoding: Encoding) -> Self {
        self.send_compressed = Some(encoding);
        self
    }

    /// Returns what the engine serves: its configuration, and the methods with all that goes around them. For API
    /// layers that [call](engine::server::LocalCalls) the methods without a connection.
    ///
    /// # Errors
    /// If TLS or the protocols beside gRPC can't be set up.
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
            config.beside = Some(beside_grpc(&config, &router, descriptors, web)?);
        }
        Ok((config, router))
    }

    /// Has the same port speak Connect, gRPC-Web and JSON, for all services that there are, over HTTP/2 and HTTP/1.1.
    /// Calls by these go the way of the others: through the same interceptors, with the same limits. What is no call
    /// may go to a service of the program's own.
    ///
    /// JSON wants descriptors: the generated code has them with it, if `thalweg_build::Builder::embed_descriptors` is
    /// asked for; others are given to [`Web::descriptors`](thalweg_web::Web::descriptors).
    ///
    /// ```
    /// use thalweg::Server;
    /// use thalweg::web::Web;
    ///
    /// let server = Server::builder().web(Web::new());
    /// # drop(server);
    /// ```
    ///
    /// [`bind`](Self::bind), and the other methods that serve, return what is wrong with the descriptors or their
    /// annotations.
    #[cfg(feature = "web")]
    pub fn web(mut self, web: thalweg_web::Web) -> Self {
        self.web = Some(web);
        self
    }

    /// Sets how many calls a connection may have at once,
    /// [`max_concurrent_streams`](field@crate::http2::Config::max_concurrent_streams) of its [HTTP/2
    /// settings](Self::http2).
    pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.config.http2.max_concurrent_streams = streams;
        self
    }

    /// Sets the maximum number of connections, [`ServerConfig::max_connections`]; unlimited by default.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.config.max_connections = Some(connections);
        self
    }

    /// Sets the maximum number of connections of one IP address, [`ServerConfig::max_connections_per_address`];
    /// unlimited by default.
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

    /// Sets when the server sends PINGs to silent clients, [`ServerConfig::keepalive`]; after two hours by default.
    pub fn keepalive(mut self, keepalive: Keepalive) -> Self {
        self.config.keepalive = Some(keepalive);
        self
    }

    /// Sets TCP keepalive of accepted connections, [`ServerConfig::tcp_keepalive`]; on by default.
    pub fn tcp_keepalive(mut self, keepalive: impl Into<Option<TcpKeepalive>>) -> Self {
        self.config.tcp_keepalive = keepalive.into();
        self
    }

    /// Sets how often clients may send PINGs, [`ServerConfig::keepalive_policy`]; every five minutes by default.
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

    /// Sets the time for a header block to arrive, [`ServerConfig::header_timeout`]; 10 s by default.
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.config.header_timeout = timeout;
        self
    }

    /// Sets the time for a request's message to arrive, [`ServerConfig::request_timeout`]; 30 s by default.
    pub fn request_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.config.request_timeout = timeout;
        self
    }

    /// Sets how far a client may be behind in reading, [`ServerConfig::reply_timeout`]; 60 s by default.
    pub fn reply_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.config.reply_timeout = timeout;
        self
    }

    /// Sets how many bytes a client may make its connection buffer, [`held_max`](field@crate::http2::Config::held_max)
    /// of its [HTTP/2 settings](Self::http2); 16 MiB by default. At the limit, handlers wait before they make a
    /// response. While the client reads nothing, one more handler runs after 1 s, 2 s, 4 s, up to 16 s, because the
    /// client may read that response first. The server closes a connection that buffers more, and whose client is 20 s
    /// behind the rate of [`reply_timeout`](Self::reply_timeout).
    pub fn max_connection_memory(mut self, bytes: usize) -> Self {
        self.config.http2.held_max = bytes;
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

    /// Sets the time for calls in flight at a shutdown, [`ServerConfig::shutdown_grace`]; 30 s by default.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.config.shutdown_grace = grace;
        self
    }

    /// Sets how long an idle connection busy-polls before it sleeps, [`ServerConfig::busy_poll`]; up to 30 µs by
    /// default, where that pays.
    pub fn busy_poll(mut self, duration: Duration) -> Self {
        self.config.busy_poll = Some(duration);
        self
    }

    /// Serves on `count` threads of the server's own, [`ServerConfig::threads`]. They are for sockets that are listened
    /// on; [`serve_connection`](Self::serve_connection) and [`serve_incoming`](Self::serve_incoming) stay where they
    /// are called.
    pub fn threads(mut self, count: usize) -> Self {
        self.config.threads = Some(count);
        self
    }

    /// Pins the [`threads`](Self::threads) to these processors, [`ServerConfig::cpus`].
    pub fn pin(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.config.cpus = cpus.into_iter().collect();
        self
    }

    /// Serves over TLS alone: with an [`Identity`](crate::tls::Identity), or a whole
    /// [`ServerTlsConfig`](crate::tls::ServerTlsConfig). Whatever carries the bytes: sockets that are listened on, and
    /// streams that come from elsewhere.
    ///
    /// [`bind`](Self::bind), and the other methods that serve, return what is wrong with it: a missing identity, or
    /// certificates or keys that can't be read or used.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<crate::tls::ServerTlsConfig>) -> Self {
        self.tls = Some(tls.into());
        self
    }

    /// Sets whether each request has the [`ConnectionInfo`](crate::ConnectionInfo) of its connection in its extensions,
    /// as an `Arc`, [`ServerConfig::connection_info`]; over TLS only by default.
    pub fn connection_info(mut self, tell: bool) -> Self {
        self.config.connection_info = Some(tell);
        self
    }

    /// Measures calls; not at all by default.
    #[cfg(feature = "opentelemetry")]
    pub fn metrics(mut self, metrics: thalweg_engine::Metrics) -> Self {
        self.config.set_metrics(metrics);
        self
    }

    /// Traces calls; not at all by default. Interceptors run within the spans.
    #[cfg(feature = "opentelemetry")]
    pub fn traces(mut self, traces: thalweg_engine::Traces) -> Self {
        self.config.set_traces(traces.clone());
        self.traces = Tracing::by(traces);
        self
    }

    /// Serves on one socket until the process ends. What listens on several addresses, on UNIX sockets, or on a port
    /// that the system chooses, [binds](Self::bind) first.
    ///
    /// # Errors
    /// As [`bind`](Self::bind) and [`BoundServer::serve`].
    pub async fn serve(self, address: SocketAddr) -> Result<(), ServerError> {
        self.serve_with_shutdown(address, pending()).await
    }

    /// As [`serve`](Self::serve), until `shutdown` is ready; then it stops gracefully, as
    /// [`BoundServer::serve_until`] does.
    ///
    /// ```no_run
    /// # use thalweg::Server;
    /// # async fn example(told_to_stop: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
    /// Server::builder().serve_with_shutdown("127.0.0.1:50051".parse()?, told_to_stop).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`bind`](Self::bind) and [`BoundServer::serve_until`].
    pub async fn serve_with_shutdown(
        self,
        address: SocketAddr,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        Ok(self.bind(address).await?.serve_until(shutdown).await?)
    }

    /// Takes the addresses. From here on clients can connect; they are answered once the server serves.
    ///
    /// # Errors
    /// Names the address that could not be had, and why; or what keeps the [`threads`](Self::threads) from running, or
    /// TLS or the protocols beside gRPC (`web`) from being set up.
    pub async fn bind(self, addresses: impl ListenAddresses) -> Result<BoundServer, BindError> {
        let (config, router) = self.into_parts()?;
        engine::server::bind(config, router, &addresses.into_addresses()).await
    }

    /// Serves one connection over any byte stream until it is over: an in-memory pipe in a test, a socket that came
    /// from elsewhere.
    ///
    /// # Errors
    /// If TLS or the protocols beside gRPC (`web`) can't be set up.
    pub async fn serve_connection<IO>(self, io: IO) -> Result<(), BindError>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (config, router) = self.into_parts()?;
        engine::server::serve_connection(config, router, io).await;
        Ok(())
    }

    /// Serves byte streams from any source, as [`BoundServer::serve_until`] does with sockets: until `shutdown` is
    /// ready and the connections there were are drained, or until `incoming` has ended and its connections are over.
    ///
    /// # Errors
    /// As [`serve_connection`](Self::serve_connection), before the first stream is taken.
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

/// Connect, gRPC-Web and JSON, for the same port.
#[cfg(feature = "web")]
fn beside_grpc(
    config: &ServerConfig,
    router: &Arc<dyn engine::server::Router>,
    descriptors: Vec<&'static [u8]>,
    web: thalweg_web::Web,
) -> Result<engine::server::Beside, BindError> {
    let web = descriptors.into_iter().fold(web, thalweg_web::Web::descriptors);
    let calls = engine::server::LocalCalls::new(config, Arc::clone(router));
    let service = web.into_service(calls).map_err(|error| BindError::Beside(Box::new(error)))?;
    Ok(service.beside())
}

/// Why a server that binds and serves in one step does not, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// It could not begin.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// It could not go on.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("ServerBuilder");
        #[cfg(feature = "tls")]
        told.field("tls", &self.tls);
        #[cfg(feature = "web")]
        told.field("web", &self.web);
        told.field("services", &self.services.len())
            .field("chain", &self.chain)
            .field("send_compressed", &self.send_compressed)
            .field("traces", &self.traces)
            .field("server", &self.server)
            .field("config", &self.config)
            .finish()
    }
}
