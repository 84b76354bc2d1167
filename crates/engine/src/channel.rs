//! A handle to a gRPC target, independent of the message types: [`Channel`].

use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

use thalweg_http2::FixedFields;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::connection::{self, Connection, Keepalive};
use crate::destination::{ConnectError, Destination, DestinationSettings};
use crate::executor::ExecutorOptions;
use crate::grpc::compression::EncodingSet;
use crate::grpc::request;
use crate::lanes::{
    Backoff, ConnectStep, ConnectionOptions, Connector, Lane, LaneControl, LaneSet, Lanes, Maintenance,
    ServiceConfig, StepWatcher, Transport,
};
use crate::measure::{self, CallMeasure, ChannelMeasure};
use crate::method::Method;
use crate::net::TcpOptions;
use crate::options::CallOptions;
use crate::random::random_unit;
use crate::request_headers::{Origin, RawRequestHeaders, RawRequestHeadersCache, RequestHeadersCache};
use crate::server_address::ServerAddress;
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
    lanes: Arc<LaneSet>,
    /// The `:scheme` of calls.
    scheme: &'static str,
    authority: String,
    user_agent: String,
    request_headers: RequestHeadersCache,
    raw_request_headers: RawRequestHeadersCache,
    measure: ChannelMeasure,
    call_options: CallOptions,
    server: Arc<ServerAddress>,
}

/// Settings of a [`Channel`], each documented here: the builders of API layers link to its field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelConfig {
    /// Number of connections, fixed or adaptive within bounds; [`Lanes::adaptive`] by default.
    pub lanes: Lanes,
    /// A [service config] in JSON; none by default. Only `connectionScaling.maxConnectionsPerSubchannel` (gRFC A105) is
    /// used, the maximum number of connections per client. It replaces the default cap of [`Lanes::adaptive`], and
    /// lowers an explicit one.
    ///
    /// [service config]: https://github.com/grpc/grpc/blob/master/doc/service_config.md
    pub service_config: Option<String>,
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
    /// TLS settings. By default, `https://` targets use [`ClientTlsConfig::new`] and all others no TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<ClientTlsConfig>,
    /// `None` for sockets.
    connector: Option<Transport>,
    watcher: StepWatcher,
    jitter: fn() -> f64,
    measure: measure::Setup,
}

/// Snapshot of a lane of a channel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// Identifier of the lane, unique within the channel.
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

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            lanes: Lanes::default(),
            service_config: None,
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
            #[cfg(feature = "tls")]
            tls: None,
            connector: None,
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
        self.connector = Some(Transport::custom(connect));
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
            #[cfg(feature = "tls")]
            tls: self.tls.as_ref(),
        }
    }

    pub(crate) fn transport(&self) -> Transport {
        self.connector.clone().unwrap_or_else(|| Transport::Sockets(self.tcp.clone()))
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
        let Destination {
            target,
            scheme,
            authority,
            user_agent,
            #[cfg(feature = "tls")]
            tls,
        } = Destination::new(target, config.destination_settings())?;
        let measure = ChannelMeasure::new(&config.measure, || target.canonical());
        let transport = config.transport();
        let service_config = config.service_config.as_deref().map(ServiceConfig::parse).transpose()?;
        let mut lanes = config.lanes;
        if let Some(scaling) = service_config.unwrap_or_default().connection_scaling {
            lanes.limit(scaling.max_connections_per_subchannel);
        }
        let executor = ExecutorOptions { threads: config.threads, cpus: config.cpus };
        let server = Arc::new(target.server());
        let connector = Connector {
            transport,
            timeout: config.connect_timeout,
            connection: ConnectionOptions {
                target: target.to_string().into(),
                http2: Arc::new(connection::fit(config.http2)),
                busy_poll: config.busy_poll,
                executor: executor.start("thalweg-channel")?.map(Arc::new),
                queue: Arc::default(),
                maintenance: Arc::new(Maintenance::new(config.keepalive, config.idle_timeout)),
                watcher: config.watcher,
                #[cfg(feature = "tls")]
                tls,
            },
            backoff: config.backoff,
            jitter: config.jitter,
            target,
            measure: measure.clone(),
            calls: Mutex::default(),
        };
        let lanes = LaneSet::new(&lanes, connector);
        let shared = Shared {
            lanes,
            scheme,
            authority,
            user_agent,
            request_headers: RequestHeadersCache::default(),
            raw_request_headers: RawRequestHeadersCache::default(),
            measure,
            call_options: config.call_options,
            server,
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
        let connected = self.shared.lanes.connect_all().await;
        connected.map_err(|status| ConnectError::Unavailable(status.message().to_owned()))
    }

    /// Resets the connection backoff and retries at once after a failed attempt, for example when the network is back.
    /// Waiting calls ([`CallOptions::wait_for_ready`]) continue when it connects.
    pub fn reset_connect_backoff(&self) {
        self.shared.lanes.reset_backoff();
    }

    /// Returns the current lanes in the order of their opening, followed by closing ones.
    pub fn lanes(&self) -> Vec<LaneSnapshot> {
        let (lanes, closing) = self.shared.lanes.list();
        let now = Instant::now();
        let snapshot =
            |lane: &Lane, connection: Option<Arc<Connection>>, closes: Option<&str>| LaneSnapshot {
                id: lane.id,
                state: if closes.is_some() { "SHUTDOWN" } else { lane.state_name() },
                peer: connection.as_ref().map(|connection| connection.peer.clone()),
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

    /// Returns the number of calls that wait for a free stream (the server's SETTINGS_MAX_CONCURRENT_STREAMS).
    pub fn waiting(&self) -> usize {
        self.shared.lanes.queue().len()
    }

    /// Opens `count` more lanes, whether or not they help.
    #[cfg(feature = "testing")]
    pub fn open_lanes(&self, count: usize, reason: &str) {
        self.shared.lanes.open(count, reason);
    }

    /// Closes these lanes after their last calls, but keeps the channel's last one.
    #[cfg(feature = "testing")]
    pub fn close_lanes(&self, ids: &[u64], reason: &str) {
        self.shared.lanes.close(ids, reason);
    }

    #[inline]
    pub(crate) fn lane_set(&self) -> &LaneSet {
        &self.shared.lanes
    }

    /// Returns the target for display.
    pub(crate) fn target(&self) -> impl fmt::Display + '_ {
        self.shared.lanes.target()
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
        headers: &http::HeaderMap,
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
