//! Settings of a server: [`Server`].

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use thalweg_engine::Keepalive;
use thalweg_engine::server::ServerConfig;
use tower::layer::Layer;
use tower::layer::util::{Identity, Stack};

use super::layers::{CallSettings, TraceFn};
use super::tcp_incoming::TcpIncoming;
#[cfg(feature = "_tls-any")]
use super::tls::ServerTlsConfig;
use crate::transport::error::Error;
use crate::transport::http2::Http2Options;

/// Builder of a server.
///
/// ```
/// use std::time::Duration;
/// use thalweg_tonic::transport::Server;
///
/// let _server = Server::builder().timeout(Duration::from_secs(10)).max_concurrent_streams(512);
/// ```
///
/// Defaults are Thalweg's: windows of 1 MiB per stream and 4 MiB per connection, and 256 concurrent calls per
/// connection.
#[derive(Clone)]
pub struct Server<L = Identity> {
    layers: L,
    call_settings: CallSettings,
    #[cfg(feature = "_tls-any")]
    tls: Option<thalweg_engine::tls::ServerTlsConfig>,
    tcp: TcpOptions,
    http2: Http2Options,
    accepts_http1: bool,
    keepalive_interval: Option<Duration>,
    keepalive_timeout: Option<Duration>,
    max_connection_age: Option<Duration>,
    max_connection_age_grace: Option<Duration>,
    shutdown_grace: Duration,
}

/// Options of accepted sockets.
#[derive(Clone, Copy, Debug)]
struct TcpOptions {
    nodelay: bool,
    keepalive: Option<Duration>,
    keepalive_interval: Option<Duration>,
    keepalive_retries: Option<u32>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            layers: Identity::new(),
            call_settings: CallSettings::default(),
            #[cfg(feature = "_tls-any")]
            tls: None,
            tcp: TcpOptions {
                nodelay: true,
                keepalive: None,
                keepalive_interval: None,
                keepalive_retries: None,
            },
            http2: Http2Options::default(),
            accepts_http1: false,
            keepalive_interval: None,
            keepalive_timeout: None,
            max_connection_age: None,
            max_connection_age_grace: None,
            // Calls are never cut off.
            shutdown_grace: Duration::MAX,
        }
    }
}

impl Server {
    /// Returns a server with default settings.
    pub fn builder() -> Self {
        Self::default()
    }
}

impl<L> Server<L> {
    /// Serves over TLS only.
    ///
    /// # Errors
    /// Returns an error without an identity, or if certificates or keys are unusable.
    #[cfg(feature = "_tls-any")]
    pub fn tls_config(self, tls_config: ServerTlsConfig) -> Result<Self, Error> {
        Ok(Self { tls: Some(tls_config.into_engine()?), ..self })
    }

    /// Sets how many calls of a connection handlers may process at a time; others are queued. Unlimited by default.
    #[must_use]
    pub fn concurrency_limit_per_connection(mut self, limit: usize) -> Self {
        self.call_settings.concurrency = Some(limit);
        self
    }

    /// Rejects calls with RESOURCE_EXHAUSTED that would have to be queued, under a
    /// [`concurrency_limit_per_connection`](Self::concurrency_limit_per_connection) or in a layer; off by default.
    #[must_use]
    pub fn load_shed(mut self, load_shed: bool) -> Self {
        self.call_settings.load_shed = load_shed;
        self
    }

    /// Sets the time limit for the response headers of each call; none by default. On expiry the call ends with
    /// CANCELLED. A shorter deadline of the call takes precedence.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call_settings.timeout = Some(timeout);
        self
    }

    /// Sets the flow-control window of a stream,
    /// [`Config::stream_window`](field@thalweg_engine::http2::Config::stream_window). `None` is the default, 1 MiB.
    #[must_use]
    pub fn initial_stream_window_size(mut self, sz: impl Into<Option<u32>>) -> Self {
        self.http2.stream_window = sz.into();
        self
    }

    /// Sets the flow-control window of a connection,
    /// [`Config::connection_window`](field@thalweg_engine::http2::Config::connection_window). `None` is the default, 4
    /// MiB.
    #[must_use]
    pub fn initial_connection_window_size(mut self, sz: impl Into<Option<u32>>) -> Self {
        self.http2.connection_window = sz.into();
        self
    }

    /// Sets the maximum number of concurrent calls per connection,
    /// [`Config::max_concurrent_streams`](field@thalweg_engine::http2::Config::max_concurrent_streams). `None` is the
    /// default, 256.
    #[must_use]
    pub fn max_concurrent_streams(mut self, max: impl Into<Option<u32>>) -> Self {
        self.http2.max_concurrent_streams = max.into();
        self
    }

    /// Sets the maximum age of a connection, [`ServerConfig::max_connection_age`]; unlimited by default.
    #[must_use]
    pub fn max_connection_age(self, max_connection_age: Duration) -> Self {
        Self { max_connection_age: Some(max_connection_age), ..self }
    }

    /// Sets the time for calls on a connection that has reached its maximum age,
    /// [`ServerConfig::max_connection_age_grace`]; unlimited by default.
    #[must_use]
    pub fn max_connection_age_grace(self, max_connection_age_grace: Duration) -> Self {
        Self { max_connection_age_grace: Some(max_connection_age_grace), ..self }
    }

    /// Sets the silence after which the server sends a client a PING, [`ServerConfig::keepalive`]. `None` is the
    /// default, two hours.
    #[must_use]
    pub fn http2_keepalive_interval(self, http2_keepalive_interval: Option<Duration>) -> Self {
        Self { keepalive_interval: http2_keepalive_interval, ..self }
    }

    /// Sets how long a client may take to acknowledge a PING, [`Keepalive::timeout`](field@Keepalive::timeout); 20 s by
    /// default. `None` changes nothing.
    #[must_use]
    pub fn http2_keepalive_timeout(self, http2_keepalive_timeout: Option<Duration>) -> Self {
        Self { keepalive_timeout: http2_keepalive_timeout.or(self.keepalive_timeout), ..self }
    }

    /// Has no effect: windows always follow the reader, within the connection's memory budget.
    #[must_use]
    pub fn http2_adaptive_window(self, _enabled: Option<bool>) -> Self {
        self
    }

    /// Has no effect: resets of calls without a handler have a rate limit of their own, which honest clients do not
    /// reach.
    #[must_use]
    pub fn http2_max_pending_accept_reset_streams(self, _max: Option<usize>) -> Self {
        self
    }

    /// Sets how many stream resets a client may provoke before the connection ends with ENHANCE_YOUR_CALM. `None` is
    /// the default, 1,000, replenished by 33 per second.
    #[must_use]
    pub fn http2_max_local_error_reset_streams(mut self, max: Option<usize>) -> Self {
        self.http2.max_provoked_resets = max;
        self
    }

    /// Sets the silence after which the kernel probes a client (TCP keepalive); off by default. Applies to sockets that
    /// the server binds itself.
    #[must_use]
    pub fn tcp_keepalive(mut self, tcp_keepalive: Option<Duration>) -> Self {
        self.tcp.keepalive = tcp_keepalive;
        self
    }

    /// Sets the time between two TCP keepalive probes; the system's by default.
    #[must_use]
    pub fn tcp_keepalive_interval(mut self, tcp_keepalive_interval: Option<Duration>) -> Self {
        self.tcp.keepalive_interval = tcp_keepalive_interval;
        self
    }

    /// Sets the number of unacknowledged probes that end a connection; the system's by default.
    #[must_use]
    pub fn tcp_keepalive_retries(mut self, tcp_keepalive_retries: Option<u32>) -> Self {
        self.tcp.keepalive_retries = tcp_keepalive_retries;
        self
    }

    /// Sets TCP_NODELAY; on by default. Applies to sockets that the server binds itself.
    #[must_use]
    pub fn tcp_nodelay(mut self, enabled: bool) -> Self {
        self.tcp.nodelay = enabled;
        self
    }

    /// Sets the maximum size of a received header list,
    /// [`Config::max_header_list_size`](field@thalweg_engine::http2::Config::max_header_list_size). `None` is the
    /// default, 16 KiB.
    #[must_use]
    pub fn http2_max_header_list_size(mut self, max: impl Into<Option<u32>>) -> Self {
        self.http2.max_header_list_size = max.into();
        self
    }

    /// Sets the maximum size of a received frame,
    /// [`Config::max_frame_size`](field@thalweg_engine::http2::Config::max_frame_size). `None` is the default, 128 KiB.
    #[must_use]
    pub fn max_frame_size(mut self, frame_size: impl Into<Option<u32>>) -> Self {
        self.http2.max_frame_size = frame_size.into();
        self
    }

    /// Sets whether connections without TLS may also use HTTP/1.1; off by default. Required by gRPC-Web clients that
    /// use HTTP/1.1.
    #[must_use]
    pub fn accept_http1(mut self, accept_http1: bool) -> Self {
        self.accepts_http1 = accept_http1;
        self
    }

    /// Sets a function that creates the span of a call from its request headers.
    #[must_use]
    pub fn trace_fn<F>(mut self, f: F) -> Self
    where
        F: Fn(&Request<()>) -> tracing::Span + Send + Sync + 'static,
    {
        self.call_settings.trace = Some(Arc::new(f) as Arc<TraceFn>);
        self
    }

    /// Adds a layer around all services. Requests pass the layers in the order in which they were added.
    pub fn layer<NewLayer>(self, new_layer: NewLayer) -> Server<Stack<NewLayer, L>> {
        let Self { layers, call_settings, tcp, http2, .. } = self;
        Server {
            layers: Stack::new(new_layer, layers),
            call_settings,
            #[cfg(feature = "_tls-any")]
            tls: self.tls,
            tcp,
            http2,
            accepts_http1: self.accepts_http1,
            keepalive_interval: self.keepalive_interval,
            keepalive_timeout: self.keepalive_timeout,
            max_connection_age: self.max_connection_age,
            max_connection_age_grace: self.max_connection_age_grace,
            shutdown_grace: self.shutdown_grace,
        }
    }

    /// Wraps `service` in the layers added with [`layer`](Self::layer).
    pub(super) fn apply_layers<S>(&self, service: S) -> L::Service
    where
        L: Layer<S>,
    {
        self.layers.layer(service)
    }

    /// Returns the settings for calls, which apply outside of the [layers](Self::apply_layers).
    pub(super) fn call_settings(&self) -> CallSettings {
        CallSettings { accepts_http1: self.accepts_http1(), ..self.call_settings.clone() }
    }

    /// Returns true if the first bytes of a connection decide its protocol.
    fn accepts_http1(&self) -> bool {
        #[cfg(feature = "_tls-any")]
        if self.tls.is_some() {
            return false;
        }
        self.accepts_http1
    }

    /// Returns true if the engine's own listener supports the socket options.
    pub(super) fn engine_can_listen(&self) -> bool {
        self.tcp.nodelay && self.tcp.keepalive.is_none()
    }

    pub(super) fn with_shutdown_grace(self, grace: Duration) -> Self {
        Self { shutdown_grace: grace, ..self }
    }

    /// Binds a socket at `addr`, with this server's options for connections.
    pub(super) fn bind(&self, addr: SocketAddr) -> Result<TcpIncoming, Error> {
        let incoming = TcpIncoming::bind(addr).map_err(Error::transport)?;
        Ok(incoming
            .with_nodelay(Some(self.tcp.nodelay))
            .with_keepalive(self.tcp.keepalive)
            .with_keepalive_interval(self.tcp.keepalive.and(self.tcp.keepalive_interval))
            .with_keepalive_retries(self.tcp.keepalive.and(self.tcp.keepalive_retries)))
    }

    /// Returns the engine's server settings, without those in [`CallSettings`].
    pub(super) fn config(&self) -> Result<ServerConfig, Error> {
        let mut config = ServerConfig::default();
        self.http2.apply(&mut config.http2);
        config.shutdown_grace = self.shutdown_grace;
        config.max_connection_age = self.max_connection_age;
        config.max_connection_age_grace = self.max_connection_age_grace;
        config.keepalive = self.keepalive_interval.map(|interval| {
            let keepalive = Keepalive::every(interval);
            self.keepalive_timeout.map_or(keepalive, |timeout| keepalive.timeout(timeout))
        });
        // For `Request::remote_addr` and similar methods.
        config.connection_info = Some(true);
        #[cfg(feature = "_tls-any")]
        if let Some(tls) = &self.tls {
            config.set_tls(tls.clone()).map_err(Error::transport)?;
        }
        Ok(config)
    }
}

impl<L> fmt::Debug for Server<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {

    use tokio_stream::StreamExt as _;
    use tower::Layer;

    use super::*;

    fn config(server: &Server) -> ServerConfig {
        server.config().unwrap()
    }

    #[test]
    fn http2_settings_reach_the_engine() {
        let check = |server: Server, expected: fn(&mut thalweg_engine::http2::Config)| {
            let mut expected_config = ServerConfig::default().http2;
            expected(&mut expected_config);
            assert_eq!(format!("{:?}", config(&server).http2), format!("{expected_config:?}"));
        };
        check(Server::builder(), |_| {});
        check(Server::builder().http2_adaptive_window(Some(true)), |_| {});
        check(Server::builder().http2_max_pending_accept_reset_streams(Some(1)), |_| {});
        check(Server::builder().initial_stream_window_size(99_000), |http2| http2.stream_window = 99_000);
        check(Server::builder().initial_connection_window_size(99_000), |http2| {
            http2.connection_window = 99_000;
        });
        check(Server::builder().max_concurrent_streams(7), |http2| http2.max_concurrent_streams = 7);
        check(Server::builder().max_concurrent_streams(7).max_concurrent_streams(None), |_| {});
        check(Server::builder().http2_max_header_list_size(99), |http2| http2.max_header_list_size = 99);
        check(Server::builder().max_frame_size(99_000), |http2| http2.max_frame_size = 99_000);
        check(Server::builder().http2_max_local_error_reset_streams(Some(7)), |http2| {
            http2.limits.glitches = 70;
        });
        check(Server::builder().http2_max_local_error_reset_streams(None), |_| {});
    }

    #[test]
    fn ages_and_keepalive_reach_the_engine() {
        let seconds = Duration::from_secs;
        let unset = config(&Server::builder());
        assert_eq!(
            (unset.keepalive, unset.max_connection_age, unset.max_connection_age_grace),
            (None, None, None)
        );
        assert_eq!(unset.shutdown_grace, Duration::MAX);
        let old = Server::builder().max_connection_age(seconds(60)).max_connection_age_grace(seconds(5));
        let old = config(&old);
        assert_eq!(old.max_connection_age, Some(seconds(60)));
        assert_eq!(old.max_connection_age_grace, Some(seconds(5)));
        let with_keepalive = Server::builder().http2_keepalive_interval(Some(seconds(30)));
        assert_eq!(config(&with_keepalive).keepalive, Some(Keepalive::every(seconds(30))));
        let with_keepalive =
            with_keepalive.http2_keepalive_timeout(Some(seconds(7))).http2_keepalive_timeout(None);
        assert_eq!(
            config(&with_keepalive).keepalive,
            Some(Keepalive::every(seconds(30)).timeout(seconds(7)))
        );
        // It limits the response headers, so it is a layer.
        let timed = Server::builder().timeout(seconds(3));
        assert_eq!(timed.call_settings().timeout, Some(seconds(3)));
        assert_eq!(config(&timed).request_timeout, ServerConfig::default().request_timeout);
    }

    #[test]
    fn connection_info_is_on() {
        assert_eq!(config(&Server::builder()).connection_info, Some(true));
    }

    #[tokio::test]
    async fn socket_options_are_applied() {
        let accepted = async |server: Server| {
            let mut incoming = server.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let _client = tokio::net::TcpStream::connect(incoming.local_addr().unwrap()).await.unwrap();
            incoming.next().await.unwrap().unwrap()
        };
        let plain = accepted(Server::builder().tcp_keepalive_retries(Some(3))).await;
        assert!(plain.nodelay().unwrap() && !socket2::SockRef::from(&plain).keepalive().unwrap());
        let server = Server::builder()
            .tcp_nodelay(false)
            .tcp_keepalive(Some(Duration::from_secs(61)))
            .tcp_keepalive_interval(Some(Duration::from_secs(7)))
            .tcp_keepalive_retries(Some(3));
        let stream = accepted(server).await;
        let socket = socket2::SockRef::from(&stream);
        assert!(!stream.nodelay().unwrap() && socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(61));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(7));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
    }

    #[test]
    fn first_layer_is_outermost_and_settings_are_kept() {
        #[derive(Clone)]
        struct Named(&'static str);
        impl Layer<String> for Named {
            type Service = String;
            fn layer(&self, service: String) -> String {
                format!("{}({service})", self.0)
            }
        }
        let server = Server::builder().timeout(Duration::from_secs(3)).max_concurrent_streams(7);
        let server = server.max_connection_age(Duration::from_secs(60)).layer(Named("a")).layer(Named("b"));
        assert_eq!(server.apply_layers("service".to_owned()), "a(b(service))");
        let config = server.config().unwrap();
        assert_eq!(
            (config.http2.max_concurrent_streams, server.call_settings().timeout),
            (7, Some(Duration::from_secs(3)))
        );
        assert_eq!(config.max_connection_age, Some(Duration::from_secs(60)));
    }
}
