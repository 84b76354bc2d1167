//! Settings of a channel: [`ChannelBuilder`].

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use thalweg_engine::policy::PolicyConfig;
use thalweg_engine::service_config::PolicyRegistry;
use thalweg_engine::{
    self as engine, Backoff, CallOptions, ChannelConfig, ConnectError, ConnectStep, Encoding, Keepalive,
    Lanes, ProxyConfig, Resolver, ServiceConfigSource,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::handle::Channel;
#[cfg(feature = "web")]
use crate::web_channel::{Protocol, WebOptions};

/// Builder of a [`Channel`]; see [`Channel::builder`].
#[derive(Clone, Debug)]
pub struct ChannelBuilder {
    target: String,
    config: ChannelConfig,
    #[cfg(feature = "web")]
    web: WebOptions,
}

impl Channel {
    /// Returns a builder for a channel to `target`, a [gRPC target URI]: `host:port`, `dns:///host:port`,
    /// `ipv4:1.2.3.4:80`, `ipv6:[::1]:80`, `unix:/path`, `unix-abstract:name` or
    /// `passthrough:///host:port`. `https://host:port` connects over TLS.
    ///
    /// [gRPC target URI]: https://github.com/grpc/grpc/blob/master/doc/naming.md
    pub fn builder(target: impl Into<String>) -> ChannelBuilder {
        ChannelBuilder::new(target.into())
    }
}

impl ChannelBuilder {
    pub(super) fn new(target: String) -> Self {
        let mut config = ChannelConfig::default();
        config.proxy = ProxyConfig::Environment;
        Self {
            target,
            config,
            #[cfg(feature = "web")]
            web: WebOptions::default(),
        }
    }

    /// Sets the number of connections, [`ChannelConfig::lanes`](engine::ChannelConfig::lanes); [`Lanes::adaptive`] by
    /// default.
    pub fn lanes(mut self, lanes: impl Into<Lanes>) -> Self {
        self.config.lanes = lanes.into();
        self
    }

    /// Sets how calls are balanced over the target's servers,
    /// [`ChannelConfig::load_balancing`](engine::ChannelConfig::load_balancing); `pick_first` by default, which stays
    /// with the first address that works.
    ///
    /// ```
    /// use thalweg::Channel;
    /// use thalweg::channel::policy::PolicyConfig;
    ///
    /// # fn main() -> Result<(), thalweg::channel::ConnectError> {
    /// let builder = Channel::builder("dns:///backends.example:50051").load_balancing(PolicyConfig::RoundRobin);
    /// # builder.connect_lazy()?;
    /// # Ok(()) }
    /// ```
    pub fn load_balancing(mut self, policy: PolicyConfig) -> Self {
        self.config.load_balancing = policy;
        self
    }

    /// Sets the resolver of the target, in place of DNS. The target then only names the server: it is the default
    /// `:authority`, and selects TLS. An [`EndpointList`](super::EndpointList) is a resolver, too:
    ///
    /// ```
    /// use std::net::SocketAddr;
    ///
    /// use thalweg::Channel;
    /// use thalweg::channel::EndpointList;
    /// use thalweg::channel::policy::PolicyConfig;
    ///
    /// # fn main() -> Result<(), thalweg::channel::ConnectError> {
    /// let servers = EndpointList::new([1, 2, 3].map(|host| SocketAddr::from(([10, 0, 0, host], 50051))));
    /// let channel = Channel::builder("backends.example")
    ///     .resolver(servers.clone())
    ///     .load_balancing(PolicyConfig::RoundRobin)
    ///     .connect_lazy()?;
    /// servers.set([SocketAddr::from(([10, 0, 0, 4], 50051))]);
    /// # drop(channel);
    /// # Ok(()) }
    /// ```
    pub fn resolver(mut self, resolver: impl Resolver) -> Self {
        self.config.set_resolver(resolver);
        self
    }

    /// Sets the name of the channel in errors, logs and metrics, [`ChannelConfig::name`](engine::ChannelConfig::name);
    /// the target by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// Sets the period at which a balanced channel resolves its name again,
    /// [`ChannelConfig::resolution_refresh`](engine::ChannelConfig::resolution_refresh); 30 s by default, `None` for
    /// never.
    pub fn resolution_refresh(mut self, period: impl Into<Option<Duration>>) -> Self {
        self.config.resolution_refresh = period.into();
        self
    }

    /// Sets the minimum time between two resolutions of a name,
    /// [`ChannelConfig::resolution_interval_min`](engine::ChannelConfig::resolution_interval_min); 30 s by default.
    pub fn resolution_interval_min(mut self, interval: Duration) -> Self {
        self.config.resolution_interval_min = interval;
        self
    }

    /// Sets a service config, [`ChannelConfig::service_config`](engine::ChannelConfig::service_config): in JSON, or a
    /// [`ServiceConfig`](super::ServiceConfig). None by default.
    ///
    /// ```
    /// # fn main() -> Result<(), thalweg::channel::ConnectError> {
    /// let config = r#"{
    ///     "loadBalancingConfig": [{ "round_robin": {} }],
    ///     "methodConfig": [{
    ///         "name": [{ "service": "helloworld.Greeter" }],
    ///         "retryPolicy": {
    ///             "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
    ///             "retryableStatusCodes": ["UNAVAILABLE"]
    ///         }
    ///     }]
    /// }"#;
    /// let channel = thalweg::Channel::builder("localhost:50051").service_config(config).connect_lazy()?;
    /// # drop(channel);
    /// # Ok(()) }
    /// ```
    pub fn service_config(mut self, config: impl Into<ServiceConfigSource>) -> Self {
        self.config.service_config = Some(config.into());
        self
    }

    /// Sets whether a service config's `healthCheckConfig` applies,
    /// [`ChannelConfig::health_checks`](engine::ChannelConfig::health_checks); true by default.
    pub fn health_checks(mut self, are_enabled: bool) -> Self {
        self.config.health_checks = are_enabled;
        self
    }

    /// Sets whether the retry and hedging policies of the service config apply,
    /// [`ChannelConfig::retries`](engine::ChannelConfig::retries); true by default.
    pub fn retries(mut self, is_enabled: bool) -> Self {
        self.config.retries = is_enabled;
        self
    }

    /// Sets the maximum of `maxAttempts` in the service config,
    /// [`ChannelConfig::max_call_attempts`](engine::ChannelConfig::max_call_attempts); 5 by default.
    pub fn max_call_attempts(mut self, attempts: u32) -> Self {
        self.config.max_call_attempts = attempts;
        self
    }

    /// Sets how many sent bytes a streaming call keeps for retries,
    /// [`ChannelConfig::call_retry_buffer_size`](engine::ChannelConfig::call_retry_buffer_size); 256 KiB by default.
    pub fn call_retry_buffer_size(mut self, bytes: usize) -> Self {
        self.config.call_retry_buffer_size = bytes;
        self
    }

    /// Sets how many sent bytes all streaming calls keep for retries,
    /// [`ChannelConfig::retry_buffer_size`](engine::ChannelConfig::retry_buffer_size); 16 MiB by default.
    pub fn retry_buffer_size(mut self, bytes: usize) -> Self {
        self.config.retry_buffer_size = bytes;
        self
    }

    /// Sets whether service configs of the resolver are ignored,
    /// [`ChannelConfig::disable_service_config`](engine::ChannelConfig::disable_service_config); false by default.
    pub fn disable_service_config(mut self, is_disabled: bool) -> Self {
        self.config.disable_service_config = is_disabled;
        self
    }

    /// Adds balancing policies of the application, [`ChannelConfig::policies`](engine::ChannelConfig::policies), by the
    /// names that service configs use; none by default.
    pub fn policies(mut self, policies: PolicyRegistry) -> Self {
        self.config.policies = policies;
        self
    }

    /// Sets the time limit of one connection attempt,
    /// [`ChannelConfig::connect_timeout`](engine::ChannelConfig::connect_timeout); 20 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout = timeout;
        self
    }

    /// Sets the silence after which the kernel probes the server,
    /// [`TcpOptions::keepalive`](engine::TcpOptions::keepalive); off by default. [`keepalive`](Self::keepalive) sends
    /// HTTP/2 PINGs instead, which also detect a hung server or a proxy that lost it.
    pub fn tcp_keepalive(mut self, time: Duration) -> Self {
        self.config.tcp.keepalive = Some(time);
        self
    }

    /// Sets the time between two TCP keepalive probes,
    /// [`TcpOptions::keepalive_interval`](engine::TcpOptions::keepalive_interval); the system's by default.
    pub fn tcp_keepalive_interval(mut self, interval: Duration) -> Self {
        self.config.tcp.keepalive_interval = Some(interval);
        self
    }

    /// Sets the number of unacknowledged probes that end a connection,
    /// [`TcpOptions::keepalive_retries`](engine::TcpOptions::keepalive_retries); the system's by default.
    pub fn tcp_keepalive_retries(mut self, retries: u32) -> Self {
        self.config.tcp.keepalive_retries = Some(retries);
        self
    }

    /// Sets the local address to connect from, [`TcpOptions::local_address`](engine::TcpOptions::local_address); the
    /// system's choice by default.
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.config.tcp.local_address = Some(address);
        self
    }

    /// Sets the proxy to the servers, [`ChannelConfig::proxy`](engine::ChannelConfig::proxy); the one of the
    /// environment by default.
    ///
    /// ```
    /// use thalweg::Channel;
    /// use thalweg::channel::{Proxy, ProxyConfig};
    ///
    /// # fn main() -> Result<(), thalweg::channel::ProxyError> {
    /// let proxy: Proxy = "http://me:secret@proxy.example:3128".parse()?;
    /// let through = Channel::builder("https://orders.example").proxy(proxy);
    /// let direct = Channel::builder("https://orders.example").proxy(ProxyConfig::Off);
    /// # drop((through, direct));
    /// # Ok(()) }
    /// ```
    pub fn proxy(mut self, proxy: impl Into<ProxyConfig>) -> Self {
        self.config.proxy = proxy.into();
        self
    }

    /// Sets the time between failed connection attempts, [`ChannelConfig::backoff`](engine::ChannelConfig::backoff);
    /// gRPC's connection backoff by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use thalweg::{Channel, channel::Backoff};
    ///
    /// let backoff = Backoff::default().base_delay(Duration::from_millis(100)).max_delay(Duration::from_secs(5));
    /// let builder = Channel::builder("localhost:50051").connect_backoff(backoff);
    /// # drop(builder);
    /// ```
    pub fn connect_backoff(mut self, backoff: Backoff) -> Self {
        self.config.backoff = backoff;
        self
    }

    /// Sets the application's `name/version` in the user agent,
    /// [`ChannelConfig::user_agent`](engine::ChannelConfig::user_agent); empty by default.
    pub fn user_agent(mut self, application: impl Into<String>) -> Self {
        self.config.user_agent = application.into();
        self
    }

    /// Sets the `:authority` of calls, [`ChannelConfig::authority`](engine::ChannelConfig::authority); the target's by
    /// default.
    pub fn authority(mut self, authority: impl Into<String>) -> Self {
        self.config.authority = Some(authority.into());
        self
    }

    /// Sets the default options of generated clients: message limits, compression, deadline, and whether calls wait for
    /// a connection.
    pub fn call_options(mut self, options: CallOptions) -> Self {
        self.config.call_options = options;
        self
    }

    /// Compresses the messages of generated clients with `encoding`, unless the client overrides it; off by default.
    pub fn send_compressed(mut self, encoding: Encoding) -> Self {
        self.config.call_options.send_compressed = Some(encoding);
        self
    }

    /// Sets the protocol of calls; gRPC by default. Use Connect or gRPC-Web behind proxies that do not support
    /// trailers. Generated clients, deadlines, compression and limits work the same with each.
    ///
    /// ```
    /// use thalweg::{Channel, Protocol};
    ///
    /// # fn main() -> Result<(), thalweg::channel::ConnectError> {
    /// let channel = Channel::builder("https://shop.example").protocol(Protocol::Connect).http1(true).connect_lazy()?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "web")]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.web.protocol = protocol;
        self
    }

    /// Sends calls over HTTP/1.1 instead of HTTP/2, each on a connection of its own while it runs; off by default. gRPC
    /// needs HTTP/2: with it, [`connect_lazy`](Self::connect_lazy) fails with [`ConnectError::Protocol`].
    ///
    /// Bidirectional calls need HTTP/2 and end with UNIMPLEMENTED at once, as in connect-go's client. The only
    /// connection settings that apply are the connect timeout, the TCP options, the connector and TLS.
    /// [`http1_options`](Self::http1_options) sets the number of connections.
    #[cfg(feature = "web")]
    pub fn http1(mut self, is_http1: bool) -> Self {
        self.web.http1 = is_http1.then(|| self.web.http1.unwrap_or_default());
        self
    }

    /// Sends calls over HTTP/1.1, like [`http1`](Self::http1), with these limits on the connections.
    #[cfg(feature = "web")]
    pub fn http1_options(mut self, options: thalweg_web::client::Http1Options) -> Self {
        self.web.http1 = Some(options);
        self
    }

    /// Sends Connect's unary calls of methods [without side effects](engine::Method::without_side_effects) as GET, so
    /// that intermediaries can cache responses. Off by default, because it puts messages into URLs.
    #[cfg(feature = "web")]
    pub fn get(mut self, uses_get: bool) -> Self {
        self.web.uses_get = uses_get;
        self
    }

    /// Sets the HTTP/2 settings of the connections, [`ChannelConfig::http2`](engine::ChannelConfig::http2).
    pub fn http2(mut self, config: thalweg_engine::http2::Config) -> Self {
        self.config.http2 = config;
        self
    }

    /// Connects with `connect`, over any byte stream: an in-memory pipe in a test, a tunnel. The target is then used
    /// only as the server's name (`:authority`). `connect` is called once per lane, and again when a connection breaks.
    ///
    /// ```
    /// # use thalweg::{Channel, Server};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let channel = Channel::builder("memory:1")
    ///     .connector(|| async {
    ///         let (client, server) = tokio::io::duplex(64 * 1024);
    ///         tokio::spawn(Server::builder().serve_connection(server));
    ///         Ok(client)
    ///     })
    ///     .connect()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn connector<F, Fut, IO>(mut self, connect: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<IO>> + Send + 'static,
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.config.set_connector(connect);
        self
    }

    /// Calls `watch` after each step of a connection attempt, to see where the time of a first call goes. `watch` runs
    /// in the connecting task and must not block.
    ///
    /// ```
    /// use thalweg::Channel;
    ///
    /// let began = std::time::Instant::now();
    /// let builder = Channel::builder("https://localhost:50051")
    ///     .on_connect_step(move |step| eprintln!("{:?}: {step:?}", began.elapsed()));
    /// # drop(builder);
    /// ```
    pub fn on_connect_step(mut self, watch: impl Fn(ConnectStep) + Send + Sync + 'static) -> Self {
        self.config.set_step_watcher(watch);
        self
    }

    /// Sets when the channel sends PINGs to a silent server,
    /// [`ChannelConfig::keepalive`](engine::ChannelConfig::keepalive); never by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use thalweg::{Channel, Keepalive};
    ///
    /// let keepalive = Keepalive::every(Duration::from_secs(30)).timeout(Duration::from_secs(5));
    /// let builder = Channel::builder("localhost:50051").keepalive(keepalive);
    /// # drop(builder);
    /// ```
    pub fn keepalive(mut self, keepalive: Keepalive) -> Self {
        self.config.keepalive = Some(keepalive);
        self
    }

    /// Closes connections that had no call for this time,
    /// [`ChannelConfig::idle_timeout`](engine::ChannelConfig::idle_timeout); off by default.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.config.idle_timeout = Some(timeout);
        self
    }

    /// Sets how long an idle connection busy-polls before it sleeps,
    /// [`ChannelConfig::busy_poll`](engine::ChannelConfig::busy_poll). Adaptive by default, up to 30 µs.
    pub fn busy_poll(mut self, duration: Duration) -> Self {
        self.config.busy_poll = Some(duration);
        self
    }

    /// Runs the connections on `count` threads of the channel's own,
    /// [`ChannelConfig::threads`](engine::ChannelConfig::threads); on the caller's runtime by default.
    pub fn threads(mut self, count: usize) -> Self {
        self.config.threads = Some(count);
        self
    }

    /// Pins the [`threads`](Self::threads) to these processors, [`ChannelConfig::cpus`](engine::ChannelConfig::cpus);
    /// none by default.
    pub fn pin(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.config.cpus = cpus.into_iter().collect();
        self
    }

    /// Connects over TLS. Targets that begin with `https://` use TLS with
    /// [`ClientTlsConfig::new`](crate::tls::ClientTlsConfig::new) even without this call.
    ///
    /// [`connect`](Self::connect) and [`connect_lazy`](Self::connect_lazy) return an error for an invalid
    /// configuration.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::tls::ClientTlsConfig) -> Self {
        self.config.tls = Some(tls);
        self
    }

    /// Records metrics of calls, connections and lanes; off by default.
    #[cfg(feature = "opentelemetry")]
    pub fn metrics(mut self, metrics: thalweg_engine::Metrics) -> Self {
        self.config.set_metrics(metrics);
        self
    }

    /// Traces calls; off by default.
    #[cfg(feature = "opentelemetry")]
    pub fn traces(mut self, traces: thalweg_engine::Traces) -> Self {
        self.config.set_traces(traces);
        self
    }

    /// Sets the position, in 0..=1, of each backoff pause within its range of ±20 %; random by default. For simulations
    /// that must replay.
    #[cfg(feature = "testing")]
    pub fn backoff_jitter(mut self, unit: fn() -> f64) -> Self {
        self.config.set_backoff_jitter(unit);
        self
    }

    /// Builds the channel; it connects on the first call.
    ///
    /// # Errors
    /// Returns an error if the target, the authority, the user agent or the service config is invalid. Also fails if
    /// TLS cannot be set up or the channel's own [`threads`](Self::threads) cannot start. It does not check whether
    /// there is a server.
    pub fn connect_lazy(self) -> Result<Channel, ConnectError> {
        #[cfg(feature = "web")]
        let http1 = self.web.http1(&self.target, &self.config)?;
        let engine = engine::Channel::new(&self.target, self.config)?;
        Ok(Channel {
            #[cfg(feature = "web")]
            web: self.web.client(&engine, http1),
            engine,
        })
    }

    /// Builds the channel and waits until its initial lanes are connected.
    ///
    /// # Errors
    /// Returns the errors of [`connect_lazy`](Self::connect_lazy), and an error if no server answers over HTTP/2.
    pub async fn connect(self) -> Result<Channel, ConnectError> {
        let channel = self.connect_lazy()?;
        #[cfg(feature = "web")]
        if let Some(http1) = channel.web.as_ref().and_then(thalweg_web::client::Client::http1) {
            let connected = http1.connect().await;
            connected.map_err(|status| ConnectError::Unavailable(status.message().to_owned()))?;
            return Ok(channel);
        }
        channel.engine.connect().await?;
        Ok(channel)
    }
}
