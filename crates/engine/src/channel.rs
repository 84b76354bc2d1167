//! A handle to a gRPC target, independent of the message types: [`Channel`].

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use http::HeaderMap;
use thalweg_balance::policy::{PickFirstConfig, PolicyConfig};
use thalweg_balance::retry::{
    CALL_REPLAY_BYTES_MAX, CHANNEL_REPLAY_BYTES_MAX, ReplayAccount, ReplayBudget, Throttle,
};
use thalweg_balance::service_config::{MethodConfig, PolicyRegistry, ServiceConfigSelection};
use thalweg_balance::{Address, Backoff, ConnectivityState, Endpoint, Locality};
use thalweg_core::timeout;
use thalweg_http2::FixedFields;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::bounded_time::bounded;
use crate::connection::{self, Connection, Keepalive};
use crate::destination::{ConnectError, Destination, DestinationSettings};
use crate::endpoints::{BalancedConfig, Configuration, Endpoints};
use crate::event_log::EventLog;
use crate::executor::{Executor, ExecutorOptions};
use crate::grpc::compression::EncodingSet;
use crate::grpc::request;
use crate::lanes::{
    Addresses, ChannelParts, ConnectStep, ConnectionOptions, Connector, Lane, Lanes, Maintenance, Sockets,
    StepWatcher, Transport,
};
use crate::measure::{self, CallMeasure, ChannelMeasure};
use crate::method::Method;
use crate::net::TcpOptions;
use crate::options::CallOptions;
use crate::proxy::ProxyConfig;
use crate::random::{random_seed, random_unit};
use crate::request_headers::{Origin, RawRequestHeaders, RawRequestHeadersCache, RequestHeadersCache};
use crate::resolver::{AddressSource, EndpointList, Resolver};
use crate::server_address::ServerAddress;
use crate::service_config_source::ServiceConfigSource;
use crate::service_settings::{NotResolved, ServiceSettings};
use crate::snapshot::ChannelSnapshot;
#[cfg(feature = "tls")]
use crate::tls::ClientTlsConfig;

/// A handle to a gRPC target. Cheap to clone; clones share its connections.
///
/// Dropping the last clone closes the connections once the calls on them have ended.
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
}

struct Shared {
    endpoints: Arc<Endpoints>,
    target: Arc<str>,
    /// The `:scheme` of calls.
    scheme: &'static str,
    authority: String,
    user_agent: String,
    request_headers: RequestHeadersCache,
    raw_request_headers: RawRequestHeadersCache,
    measure: ChannelMeasure,
    call_options: CallOptions,
    server: Arc<ServerAddress>,
    service: Arc<ServiceSettings>,
    replay: Arc<ReplayBudget>,
}

/// Settings of a [`Channel`], each documented here: the builders of API layers link to its field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelConfig {
    /// Name of the channel in errors, logs and metrics; the target by default. For channels with a
    /// [resolver](Self::set_resolver) whose target means nothing to users.
    pub name: Option<String>,
    /// Number of connections, fixed or adaptive within bounds; [`Lanes::adaptive`] by default.
    pub lanes: Lanes,
    /// How calls are balanced over the target's endpoints; `pick_first` by default, which uses one of all addresses. A
    /// service config's `loadBalancingConfig` takes precedence.
    pub load_balancing: PolicyConfig,
    /// Period at which a balanced channel resolves a name again, so that it notices new endpoints; 30 s by default.
    /// `None` turns it off: then it resolves again only when an endpoint fails.
    pub resolution_refresh: Option<Duration>,
    /// Minimum time between two resolutions of a name, unless the resolver has news; 30 s by default, as in gRPC.
    pub resolution_interval_min: Duration,
    /// A [service config], in JSON or made by its setters; none by default. That of a resolver takes its place (gRFC
    /// A21), unless [`disable_service_config`](Self::disable_service_config) is set. It takes precedence over the
    /// channel's own settings: its balancing policy over [`load_balancing`](Self::load_balancing), and its maximum
    /// number of connections per endpoint (gRFC A105) over the default cap of [`Lanes::adaptive`], or a higher explicit
    /// one.
    ///
    /// [service config]: https://github.com/grpc/grpc/blob/master/doc/service_config.md
    pub service_config: Option<ServiceConfigSource>,
    /// Whether a service config's `healthCheckConfig` applies (gRFC A17); true by default. A balanced channel then
    /// sends no calls to a server that reports by `grpc.health.v1.Health/Watch` that it does not serve. `pick_first`
    /// checks nothing.
    pub health_checks: bool,
    /// Whether the retry and hedging policies of the service config apply; true by default. Policies of single calls
    /// ([`CallOptions::retry`]) and transparent retries (gRFC A6) are independent of it.
    pub retries: bool,
    /// Maximum number of attempts that a service config can set for a call (`maxAttempts`); higher values count as
    /// this. 5 by default, as in gRFC A6.
    pub max_call_attempts: u32,
    /// Maximum bytes of sent messages that a streaming call keeps for retries and hedging; 256 KiB by default, as in
    /// gRPC Go and C++. A call that has sent more has no further attempts.
    pub call_retry_buffer_size: usize,
    /// Maximum bytes of sent messages that all streaming calls of the channel keep for retries and hedging; 16 MiB by
    /// default, as in gRPC Java.
    pub retry_buffer_size: usize,
    /// Whether service configs of the resolver are ignored; false by default.
    pub disable_service_config: bool,
    /// The application's own balancing policies, by the names that a service config uses.
    pub policies: PolicyRegistry,
    /// Timeout of one connection attempt, from name resolution to the server's HTTP/2 SETTINGS; 20 s by default.
    pub connect_timeout: Duration,
    /// Options of TCP sockets.
    pub tcp: TcpOptions,
    /// Delay between failed connection attempts. The default is gRPC's connection backoff: 1 s, then 1.6 times as long
    /// each time, at most 120 s, with ±20 % jitter.
    pub backoff: Backoff,
    /// `name/version` of the application, sent before Thalweg's own in `user-agent`; empty by default.
    pub user_agent: String,
    /// The `:authority` of calls; by default the target's.
    pub authority: Option<String>,
    /// HTTP/2 settings of the connections.
    pub http2: thalweg_http2::Config,
    /// Time for which an idle connection busy-polls before it sleeps. Like
    /// [`ServerConfig::busy_poll`](crate::server::ServerConfig::busy_poll), but for responses.
    pub busy_poll: Option<Duration>,
    /// Keepalive PINGs to a silent server (gRFC A8), which detect a broken connection while calls wait on it; off by
    /// default. The interval is at least 10 s and doubles when the server reports too many PINGs. gRPC's other servers
    /// allow one PING in five minutes by default. A connection also ends when the server has not acknowledged data
    /// within the keepalive timeout (TCP_USER_TIMEOUT).
    pub keepalive: Option<Keepalive>,
    /// Time without a call after which a connection is closed; the next call reconnects. Off by default: it adds a
    /// timer to every call.
    pub idle_timeout: Option<Duration>,
    /// Number of dedicated threads that run the connections; `None` by default, which uses the callers' runtime.
    /// Callers' threads encode and decode messages; these threads do the I/O. Each lane stays on one thread and lanes
    /// are spread evenly, so more threads than lanes are useless. They end after the channel is dropped and its last
    /// call has ended. A connector runs on them, too.
    pub threads: Option<usize>,
    /// Processors that the [`threads`](Self::threads) are pinned to, round-robin; any by default. If `threads` is
    /// `None`, one thread is started per listed processor. Linux only.
    pub cpus: Vec<usize>,
    /// Options of calls that set none of their own.
    pub call_options: CallOptions,
    /// The proxy to the servers; [`ProxyConfig::Off`] by default. `thalweg::Channel` uses
    /// [`ProxyConfig::Environment`].
    pub proxy: ProxyConfig,
    /// TLS settings. By default, `https://` targets use [`ClientTlsConfig::new`] and all others no TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<ClientTlsConfig>,
    /// `None` for sockets.
    connector: Option<Transport>,
    /// `None` for the target's own: DNS, or the addresses that it lists.
    resolver: Option<Arc<dyn Resolver>>,
    watcher: StepWatcher,
    jitter: fn() -> f64,
    measure: measure::Setup,
}

/// Snapshot of a lane of a channel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// Identifier of the lane, unique in the process.
    pub id: u64,
    /// gRPC connectivity state: `IDLE`, `CONNECTING`, `READY` or `TRANSIENT_FAILURE`. A draining lane with calls left
    /// is in `SHUTDOWN`.
    pub state: &'static str,
    /// The address it is connected to.
    pub peer: Option<String>,
    /// Calls in flight.
    pub in_flight: usize,
    /// Fraction, in 0..=1, of time for which the connection's I/O task was busy, as last measured. Not measured for a
    /// fixed number of lanes.
    pub busy_share: Option<f64>,
    /// Time since the lane was opened. Its connection may be younger.
    pub age: Duration,
    /// Whether it accepts no more calls and closes after the last one.
    pub is_draining: bool,
    /// The reason it was opened, or for a closing lane, why it closes.
    pub reason: String,
}

/// Timeout of one connection attempt, gRPC's minimum in its connection backoff.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum of `maxAttempts` in service configs, gRPC's.
const CALL_ATTEMPTS_MAX: u32 = 5;

/// Interval of name resolutions, gRPC's minimum.
const RESOLUTION_INTERVAL: Duration = Duration::from_secs(30);

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            name: None,
            lanes: Lanes::default(),
            load_balancing: PolicyConfig::default(),
            resolution_refresh: Some(RESOLUTION_INTERVAL),
            resolution_interval_min: RESOLUTION_INTERVAL,
            service_config: None,
            health_checks: true,
            retries: true,
            max_call_attempts: CALL_ATTEMPTS_MAX,
            call_retry_buffer_size: CALL_REPLAY_BYTES_MAX,
            retry_buffer_size: CHANNEL_REPLAY_BYTES_MAX,
            disable_service_config: false,
            policies: PolicyRegistry::default(),
            connect_timeout: CONNECT_TIMEOUT,
            tcp: TcpOptions::default(),
            backoff: Backoff::default(),
            user_agent: String::new(),
            authority: None,
            http2: thalweg_http2::Config::default(),
            busy_poll: None,
            keepalive: None,
            idle_timeout: None,
            threads: None,
            cpus: Vec::new(),
            call_options: CallOptions::default(),
            proxy: ProxyConfig::Off,
            #[cfg(feature = "tls")]
            tls: None,
            connector: None,
            resolver: None,
            watcher: StepWatcher::default(),
            jitter: random_unit,
            measure: measure::Setup::default(),
        }
    }
}

impl ChannelConfig {
    /// Sets a function that makes the connections, over any byte stream. The target then only names the server. The
    /// function is called once per lane, and again when a connection breaks.
    pub fn set_connector<F, Fut, IO>(&mut self, connect: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<IO>> + Send + 'static,
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.connector = Some(Transport::custom(move |_| connect(), false));
    }

    /// Sets a function that makes the connections to addresses of the target, over any byte stream. The function is
    /// called once per attempt.
    pub fn set_address_connector<F, Fut, IO>(&mut self, connect: F)
    where
        F: Fn(Address) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<IO>> + Send + 'static,
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connect = move |address: Option<&Address>| {
            connect(address.expect("a transport that takes addresses gets one").clone())
        };
        self.connector = Some(Transport::custom(connect, true));
    }

    /// Sets the resolver, in place of DNS. The target then only names the server: it is the default `:authority`, and
    /// selects TLS.
    pub fn set_resolver(&mut self, resolver: impl Resolver) {
        self.resolver = Some(Arc::new(resolver));
    }

    /// Returns the resolver of `destination`. A proxy looks up the name itself.
    pub(crate) fn resolver(&self, destination: &Destination) -> Arc<dyn Resolver> {
        let target = &destination.target;
        match (&self.resolver, &destination.proxy) {
            (Some(resolver), _) => Arc::clone(resolver),
            (None, Some(_)) => Arc::new(EndpointList::new([Endpoint::with_addresses(target.unresolved())])),
            (None, None) => Arc::new(target.clone()),
        }
    }

    /// Returns all addresses of `destination` as those of one endpoint.
    pub(crate) fn addresses(
        &self,
        destination: &Destination,
        resolver: &Arc<dyn Resolver>,
        policy: &PolicyConfig,
    ) -> Addresses {
        let pick_first = match policy {
            PolicyConfig::PickFirst(config) => *config,
            _ => PickFirstConfig::default(),
        };
        let source =
            AddressSource::Resolver { resolver: Arc::clone(resolver), pick_first, seed: random_seed() };
        Addresses::new(destination.target.clone(), source, self.connect_timeout)
            .through(destination.proxy.as_ref().map(|ready| &ready.proxy))
    }

    /// Sets a callback for each step of a connection attempt. It runs where connections are made, so it must return
    /// quickly.
    pub fn set_step_watcher(&mut self, watch: impl Fn(ConnectStep) + Send + Sync + 'static) {
        self.watcher = StepWatcher::new(watch);
    }

    /// Replaces the random jitter of the connection backoff. `unit` returns a position in 0..=1 within the ±20 % range.
    /// Simulations use it for deterministic replay.
    #[cfg(feature = "testing")]
    pub fn set_backoff_jitter(&mut self, unit: fn() -> f64) {
        self.jitter = unit;
    }

    /// Connection settings.
    pub(crate) fn destination_settings(&self) -> DestinationSettings<'_> {
        DestinationSettings {
            authority: self.authority.as_deref(),
            user_agent: &self.user_agent,
            proxy: if self.connector.is_some() { &ProxyConfig::Off } else { &self.proxy },
            is_in_dns: self.resolver.is_none(),
            #[cfg(feature = "tls")]
            tls: self.tls.as_ref(),
        }
    }

    pub(crate) fn executor(&self) -> Result<Option<Arc<Executor>>, ConnectError> {
        let options = ExecutorOptions { threads: self.threads, cpus: self.cpus.clone() };
        Ok(options.start("thalweg-channel")?.map(Arc::new))
    }

    /// Creates the connector to `addresses` of `destination`.
    pub(crate) fn connector(
        &self,
        destination: &Destination,
        addresses: Addresses,
        executor: Option<Arc<Executor>>,
        channel: ChannelParts,
    ) -> Connector {
        Connector {
            transport: self.transport(destination),
            connection: ConnectionOptions {
                target: addresses.target.to_string().into(),
                http2: Arc::new(connection::fit(self.http2.clone())),
                busy_poll: self.busy_poll,
                executor,
                queue: channel.queue,
                maintenance: Arc::new(Maintenance::new(self.keepalive, self.idle_timeout)),
                watcher: self.watcher.clone(),
                origin: None,
                reports: None,
                #[cfg(feature = "tls")]
                tls: destination.tls.clone(),
            },
            addresses,
            // Delays that shrink would end in attempts without a pause.
            backoff: self.backoff.multiplier(self.backoff.multiplier.max(1.0)),
            jitter: self.jitter,
            measure: channel.measure.endpoint(&Locality::default()),
            events: EventLog::new(),
            calls: Mutex::default(),
            channel_calls: channel.calls,
        }
    }

    pub(crate) fn transport(&self, destination: &Destination) -> Transport {
        self.connector.clone().unwrap_or_else(|| {
            let proxy = destination.proxy.clone();
            Transport::Sockets(Sockets::new(self.tcp.clone(), proxy, self.connect_timeout))
        })
    }

    /// Measures calls, connections and lanes.
    #[cfg(feature = "opentelemetry")]
    pub fn set_metrics(&mut self, metrics: crate::Metrics) {
        self.measure.metrics = Some(metrics);
    }

    /// Traces calls.
    #[cfg(feature = "opentelemetry")]
    pub fn set_traces(&mut self, traces: crate::Traces) {
        self.measure.traces = Some(traces);
    }
}

impl Channel {
    /// Creates a channel to `target`, a [gRPC target URI]. It connects on the first call.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid (target, authority, user agent or service config), TLS cannot be set
    /// up, or threads cannot be started. It does not check that the server exists.
    ///
    /// [gRPC target URI]: https://github.com/grpc/grpc/blob/master/doc/naming.md
    pub fn new(target: &str, config: ChannelConfig) -> Result<Self, ConnectError> {
        let mut destination = Destination::new(target, config.destination_settings())?;
        if let Some(name) = &config.name {
            destination.target.rename(name);
        }
        let target = &destination.target;
        let measure = ChannelMeasure::new(&config.measure, || target.canonical());
        let resolver = config.resolver(&destination);
        let service_config = config.service_config.as_ref();
        let attempts_max = if config.retries { config.max_call_attempts } else { 1 };
        let own_config = service_config.map(|source| source.read(&config.policies)).transpose()?;
        let own_config = own_config.map(|config| config.limit_attempts(attempts_max));
        let first_config = own_config.clone().unwrap_or_default();
        let policy = first_config.load_balancing.as_ref().unwrap_or(&config.load_balancing).clone();
        let addresses = config.addresses(&destination, &resolver, &policy);
        let is_configured = resolver.gives_service_config() && !config.disable_service_config;
        let service =
            if is_configured { ServiceSettings::pending() } else { ServiceSettings::of(&first_config) };
        let service = Arc::new(service);
        let policy = match policy {
            PolicyConfig::PickFirst(_) if !is_configured => None,
            policy => Some(BalancedConfig {
                policy,
                configuration: is_configured.then(|| Configuration {
                    selection: ServiceConfigSelection::new(own_config),
                    policies: config.policies.clone(),
                    load_balancing: config.load_balancing.clone(),
                    attempts_max,
                    health_checks: config.health_checks,
                    settings: Arc::clone(&service),
                }),
                resolver,
                refresh: config.resolution_refresh,
                interval_min: config.resolution_interval_min,
                health_check: first_config.health_check.clone().filter(|_| config.health_checks),
                idle_timeout: config.idle_timeout.map(bounded),
            }),
        };
        let mut lanes = config.lanes.clone();
        lanes.limit(first_config.max_connections_per_subchannel);
        let server = Arc::new(destination.target.server());
        let name: Arc<str> = destination.target.to_string().into();
        let parts = ChannelParts { measure: measure.clone(), queue: Arc::default(), calls: Arc::default() };
        let connector = config.connector(&destination, addresses, config.executor()?, parts);
        let Destination { scheme, authority, user_agent, .. } = destination;
        let origin = Origin { scheme, authority: &authority, user_agent: &user_agent };
        let endpoints = Endpoints::new(lanes, connector, policy.map(|policy| (policy, origin)));
        let shared = Shared {
            endpoints,
            target: name,
            scheme,
            authority,
            user_agent,
            request_headers: RequestHeadersCache::default(),
            raw_request_headers: RawRequestHeadersCache::default(),
            measure,
            call_options: config.call_options,
            server,
            service,
            replay: Arc::new(ReplayBudget::with_limits(
                config.call_retry_buffer_size,
                config.retry_buffer_size,
            )),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the options of calls that set none of their own.
    pub fn call_options(&self) -> &CallOptions {
        &self.shared.call_options
    }

    /// Returns the server this channel connects to.
    pub fn server(&self) -> &Arc<ServerAddress> {
        &self.shared.server
    }

    /// Connects the channel's initial lanes.
    ///
    /// # Errors
    /// Returns an error if no HTTP/2 server is reachable.
    pub async fn connect(&self) -> Result<(), ConnectError> {
        let connected = self.shared.endpoints.connect().await;
        connected.map_err(|status| ConnectError::Unavailable(status.message().to_owned()))
    }

    /// Returns the connectivity state of the channel.
    pub fn state(&self) -> ConnectivityState {
        self.shared.endpoints.state()
    }

    /// Waits until the state of the channel differs from `last`, and returns it. States that last shorter than it takes
    /// to wake the caller may be skipped. It neither connects the channel nor keeps it from dropping to `IDLE`.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn state_changed(&self, last: ConnectivityState) -> ConnectivityState {
        loop {
            // Created before checking the state, so that later changes are not missed.
            let changed = self.shared.endpoints.state_changed();
            let state = self.state();
            if state != last {
                return state;
            }
            changed.await;
        }
    }

    /// Connects the channel and waits until it is `READY`. A failed attempt is repeated after the channel's backoff.
    ///
    /// # Errors
    /// Returns an error if the runtime shuts down.
    ///
    /// # Cancel safety
    /// Dropping the future ends the repetitions; an attempt in progress continues.
    pub async fn connect_with_retries(&self) -> Result<(), ConnectError> {
        let connected = self.shared.endpoints.connected(None, true).await;
        connected.map(drop).map_err(|status| ConnectError::Unavailable(status.message().to_owned()))
    }

    /// Resets the connection backoff and retries at once after a failed attempt, for example when the network is back.
    /// Waiting calls ([`CallOptions::wait_for_ready`]) continue when it connects.
    pub fn reset_connect_backoff(&self) {
        self.shared.endpoints.reset_backoff();
    }

    /// Returns the current lanes in the order of their opening, followed by closing ones.
    pub fn lanes(&self) -> Vec<LaneSnapshot> {
        let (lanes, closing) = self.shared.endpoints.list();
        let now = Instant::now();
        let snapshot =
            |lane: &Lane, connection: Option<Arc<Connection>>, closes: Option<&str>| LaneSnapshot {
                id: lane.id,
                state: if closes.is_some() { ConnectivityState::Shutdown } else { lane.own_state() }.name(),
                peer: connection.as_ref().map(|connection| connection.peer.to_string()),
                in_flight: connection.map_or(0, |connection| connection.in_flight()),
                busy_share: lane.busy_permille().map(|permille| f64::from(permille) / 1000.0),
                age: now - lane.opened_at,
                is_draining: closes.is_some(),
                reason: closes.unwrap_or(&lane.reason).to_owned(),
            };
        let open = lanes.iter().map(|lane| snapshot(lane, lane.ready(), None));
        let closing = closing.iter().map(|closing| {
            snapshot(&closing.lane, Some(Arc::clone(&closing.connection)), Some(&closing.reason))
        });
        open.chain(closing).collect()
    }

    /// Returns the channel as [`inventory::channels`](crate::inventory::channels) lists it: its lanes and their calls.
    pub fn snapshot(&self) -> ChannelSnapshot {
        self.shared.endpoints.snapshot()
    }

    /// Returns the number of calls that wait for a free stream (the server's SETTINGS_MAX_CONCURRENT_STREAMS).
    pub fn waiting(&self) -> usize {
        self.shared.endpoints.queue().len()
    }

    /// Polls until fewer than `waiting_max` calls wait for a connection or a free stream. `ticket` identifies the
    /// caller: `None` at first, and not shared.
    #[inline]
    pub fn poll_ready(&self, waiting_max: usize, ticket: &mut Option<u64>, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.endpoints.waiting_calls().poll_fewer_than(waiting_max, ticket, cx)
    }

    /// Opens `count` more lanes, whether or not they help.
    #[cfg(feature = "testing")]
    pub fn open_lanes(&self, count: usize, reason: &str) {
        self.shared.endpoints.open(count, reason);
    }

    /// Closes these lanes after their last calls, but keeps the channel's last one.
    #[cfg(feature = "testing")]
    pub fn close_lanes(&self, ids: &[u64], reason: &str) {
        self.shared.endpoints.close(ids, reason);
    }

    #[inline]
    pub(crate) fn endpoints(&self) -> &Endpoints {
        &self.shared.endpoints
    }

    /// Returns the target, as written by its user.
    pub(crate) fn target(&self) -> &str {
        &self.shared.target
    }

    /// Returns the settings of `method` in the service config that `read` returns, if it has any.
    #[inline]
    pub(crate) fn method_settings<T>(
        &self,
        method: &Method,
        read: impl FnOnce(&MethodConfig) -> T,
    ) -> Result<Option<T>, NotResolved> {
        self.shared.service.of_method(method, read)
    }

    /// Waits until the resolver has given its first service config, or the resolution has failed.
    pub(crate) async fn resolved(&self, wait_for_ready: bool) {
        while self.shared.service.is_pending() && self.shared.endpoints.decided(wait_for_ready).await {}
    }

    /// Returns the options of a call of `method` with the settings of the service config, if it has any.
    #[inline]
    pub(crate) fn configured(
        &self,
        method: &Method,
        options: &CallOptions,
    ) -> Result<Option<Box<CallOptions>>, NotResolved> {
        self.method_settings(method, |config| Box::new(options.with_method_config(config)))
    }

    /// Returns the same after the resolver's first service config, for API layers with a protocol of their own. Native
    /// calls do not use it: a future in theirs costs 45 instructions per call.
    #[doc(hidden)]
    pub async fn call_options_of(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        options: &CallOptions,
    ) -> Option<Box<CallOptions>> {
        match self.configured(method, options) {
            Ok(configured) => configured,
            Err(NotResolved) => Some(Box::pin(self.when_configured(method, metadata, options)).await),
        }
    }

    /// Waits until the resolver has given its first service config, at most for the timeout of the call, and returns
    /// the options of the call. The time counts against its timeout. If the resolution fails, the call does, too, by
    /// its usual path.
    #[cold]
    pub(crate) async fn when_configured(
        &self,
        method: &Method,
        metadata: &HeaderMap,
        options: &CallOptions,
    ) -> Box<CallOptions> {
        let (started, own) = (Instant::now(), timeout::from_metadata(metadata).ok().flatten());
        let timeout = own.or(options.timeout);
        let resolved = self.resolved(options.waits_for_ready());
        match timeout {
            None => resolved.await,
            Some(timeout) => drop(tokio::time::timeout(timeout, resolved).await),
        }
        let configured = self.configured(method, options).ok().flatten();
        let mut configured = configured.unwrap_or_else(|| Box::new(options.clone()));
        let left = timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
        configured.timeout_max = [configured.timeout_max, left].into_iter().flatten().min();
        configured
    }

    /// Returns the throttle of retries, which allows all without a configuration.
    pub(crate) fn throttle(&self) -> &Throttle {
        self.shared.service.throttle()
    }

    /// Notes that a call has succeeded.
    #[inline]
    pub(crate) fn note_success(&self) {
        self.shared.service.note_success();
    }

    /// Returns an account for the sent messages that a call keeps.
    pub(crate) fn replay_account(&self, options: &CallOptions) -> ReplayAccount {
        let account = ReplayAccount::new(Arc::clone(&self.shared.replay));
        match options.retry_buffer_size {
            None => account,
            Some(size) => account.limit(size),
        }
    }

    /// Starts measuring a call of `method`.
    #[inline]
    pub(crate) fn measure_call(&self, method: &Method) -> CallMeasure {
        self.shared.measure.call(method)
    }

    pub(crate) fn raw_request_headers(
        &self,
        verb: &http::Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Arc<RawRequestHeaders> {
        let Shared { scheme, authority, user_agent, raw_request_headers, .. } = &*self.shared;
        raw_request_headers.get(verb, path, headers, Origin { scheme, authority, user_agent })
    }

    #[inline]
    pub(crate) fn request_headers(
        &self,
        method: &Method,
        accepts: EncodingSet,
        timeout: Option<Duration>,
    ) -> Arc<FixedFields> {
        self.shared.request_headers.get(method, accepts, timeout, || {
            request::Method {
                scheme: self.shared.scheme,
                authority: &self.shared.authority,
                path: method.path(),
                content_subtype: method.content_subtype(),
                user_agent: &self.shared.user_agent,
                accepts,
                timeout,
            }
            .fixed_fields()
        })
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("authority", &self.shared.authority)
            .field("lanes", &self.lanes())
            .finish_non_exhaustive()
    }
}
