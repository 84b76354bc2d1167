//! A handle to a gRPC target, whatever its messages are: [`Channel`].

use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

use thalweg_http2::FixedFields;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::connection::{self, Connection, Keepalive};
use crate::destination::{ConnectError, Destination, Wanted};
use crate::executor::ExecutorOptions;
use crate::grpc::compression::EncodingSet;
use crate::grpc::request;
use crate::lanes::{
    Backoff, ConnectStep, ConnectionOptions, Connector, Lane, LaneSet, Lanes, ServiceConfig, StepWatcher,
    Tended, Transport, Upkeep,
};
use crate::measure::{self, CallMeasure, ChannelMeasure};
use crate::method::Method;
use crate::net::TcpOptions;
use crate::options::CallOptions;
use crate::random::random_unit;
use crate::request_heads::{Origin, RawRequestHead, RawRequestHeads, RequestHeads};
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
    heads: RequestHeads,
    raw_heads: RawRequestHeads,
    measure: ChannelMeasure,
    call_options: CallOptions,
    server: Arc<ServerAddress>,
}

/// Settings of a [`Channel`], each documented here: the builders of API layers link to its field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelConfig {
    /// Number of connections: fixed, or as many as help within bounds. By default [`Lanes::adaptive`].
    pub lanes: Lanes,
    /// A [service config] in JSON; none by default. The only field that counts is
    /// `connectionScaling.maxConnectionsPerSubchannel` (gRFC A105), the maximum number of connections that the service
    /// wants of a client. It replaces the default cap of [`Lanes::adaptive`], and lowers one that was set.
    ///
    /// [service config]: https://github.com/grpc/grpc/blob/master/doc/service_config.md
    pub service_config: Option<String>,
    /// Time for one attempt to connect, from resolving the name to the server's HTTP/2 SETTINGS; 20 s by default.
    pub connect_timeout: Duration,
    /// Options of its TCP sockets.
    pub tcp: TcpOptions,
    /// Time between two attempts to connect that fail; by default gRPC's connection backoff: 1 s, then 1.6 times as
    /// long each time, at most 120 s, with ±20 % jitter.
    pub backoff: Backoff,
    /// `name/version` of the application, sent before Thalweg's own in `user-agent`; empty by default.
    pub user_agent: String,
    /// The `:authority` of calls; by default that of the target.
    pub authority: Option<String>,
    /// HTTP/2 settings of the connections.
    pub http2: thalweg_http2::Config,
    /// Time for which an idle connection busy-polls before it sleeps: as
    /// [`ServerConfig::busy_poll`](crate::server::ServerConfig::busy_poll), for responses instead of calls.
    pub busy_poll: Option<Duration>,
    /// When the channel sends PINGs to a silent server (gRFC A8), to find a broken connection while calls wait on it;
    /// never by default. The interval is at least 10 s, and doubles when the server says that it gets too many: gRPC's
    /// other servers allow one PING in five minutes by default. A connection also ends when the server has not
    /// acknowledged data for the keepalive's timeout (TCP_USER_TIMEOUT).
    pub keepalive: Option<Keepalive>,
    /// Time without a call after which a connection is closed; the next call connects again. Off by default: it adds a
    /// timer to every call.
    pub idle_timeout: Option<Duration>,
    /// Threads of the channel's own that run the connections, instead of the runtime in which calls are made. `None`,
    /// the default, has none. The callers' threads encode and decode messages; these move bytes. A lane stays on its
    /// thread, and threads get equally many lanes, so more threads than lanes are of no use. They end when the channel
    /// has been dropped and its last call is over. A connector runs on them, too.
    pub threads: Option<usize>,
    /// Processors that the [`threads`](Self::threads) are pinned to, in turn; any by default. Without `threads`, there
    /// is one thread for each processor named. Linux only.
    pub cpus: Vec<usize>,
    /// Options of calls that set none of their own.
    pub call_options: CallOptions,
    /// TLS settings. By default targets with `https://` use [`ClientTlsConfig::new`], and all others no TLS.
    #[cfg(feature = "tls")]
    pub tls: Option<ClientTlsConfig>,
    /// `None`: sockets.
    connector: Option<Transport>,
    watcher: StepWatcher,
    jitter: fn() -> f64,
    measure: measure::Setup,
}

/// What a channel's lane is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// Names the lane; never given twice in a channel.
    pub id: u64,
    /// gRPC's connectivity state: `IDLE`, `CONNECTING`, `READY`, `TRANSIENT_FAILURE` or, while the last calls of a lane
    /// end that takes no more, `SHUTDOWN`.
    pub state: &'static str,
    /// The address that it is connected to.
    pub peer: Option<String>,
    /// Calls in flight.
    pub in_flight: usize,
    /// The share of time, in 0..=1, in which the task that moves the connection's bytes was at work, as last looked at.
    /// Lanes of a fixed number are not looked at.
    pub busy_share: Option<f64>,
    /// How long ago it was opened. Its connection may be younger.
    pub age: Duration,
    /// It takes no more calls, and closes when the last of them has ended.
    pub is_draining: bool,
    /// Why it was opened, or, of one that closes, why it does.
    pub reason: String,
}

/// Time for one attempt to connect, as gRPC's connection backoff has it.
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
    /// Makes the connections with `connect`, over any byte stream. The target then only gives the server its name. It
    /// is called again when a connection breaks, and once for each lane.
    pub fn set_connector<F, Fut, IO>(&mut self, connect: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<IO>> + Send + 'static,
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.connector = Some(Transport::custom(connect));
    }

    /// Has `watch` told what each attempt to connect has done, when it has. It is called where connections are made,
    /// and must not take long.
    pub fn set_step_watcher(&mut self, watch: impl Fn(ConnectStep) + Send + Sync + 'static) {
        self.watcher = StepWatcher::new(watch);
    }

    /// Where in 0..=1 each pause between two attempts to connect lies in its range (of ±20 %), in place of a random
    /// number: for simulations that must replay.
    #[cfg(feature = "testing")]
    pub fn set_backoff_jitter(&mut self, unit: fn() -> f64) {
        self.jitter = unit;
    }

    /// What there is to be said of whom to connect to.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        Wanted {
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
    /// A channel to `target`, a [gRPC target URI]; it connects when the first call comes.
    ///
    /// # Errors
    /// When the target, the authority, the user agent or the service config can't be understood, or the channel's own
    /// threads can't run. Whether there is a server is not looked at.
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
        } = Destination::new(target, config.wanted())?;
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
                upkeep: Arc::new(Upkeep::new(config.keepalive, config.idle_timeout)),
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
            heads: RequestHeads::default(),
            raw_heads: RawRequestHeads::default(),
            measure,
            call_options: config.call_options,
            server,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The options of calls that set none of their own.
    pub fn call_options(&self) -> &CallOptions {
        &self.shared.call_options
    }

    /// Whom it calls.
    pub fn server(&self) -> &Arc<ServerAddress> {
        &self.shared.server
    }

    /// Connects the lanes that the channel begins with.
    ///
    /// # Errors
    /// When there is no server that speaks HTTP/2.
    pub async fn connect(&self) -> Result<(), ConnectError> {
        let connected = self.shared.lanes.connect_all().await;
        connected.map_err(|status| ConnectError::Unavailable(status.message().to_owned()))
    }

    /// Has the next attempt to connect come at once where one has failed, and the pauses begin anew: for those who know
    /// that the network is there again. Calls that wait ([`CallOptions::wait_for_ready`]) go on with it.
    pub fn reset_connect_backoff(&self) {
        self.shared.lanes.reset_backoff();
    }

    /// The lanes as they are now, in the order of their opening; behind them those that close.
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

    /// How many calls wait because no lane has a stream free for them
    /// (the server's SETTINGS_MAX_CONCURRENT_STREAMS).
    pub fn waiting(&self) -> usize {
        self.shared.lanes.queue().len()
    }

    /// Opens `count` lanes more, whatever helps.
    #[cfg(feature = "testing")]
    pub fn open_lanes(&self, count: usize, reason: &str) {
        self.shared.lanes.open(count, reason);
    }

    /// Lets these lanes close after their last calls, but for the last one of the channel.
    #[cfg(feature = "testing")]
    pub fn close_lanes(&self, ids: &[u64], reason: &str) {
        self.shared.lanes.close(ids, reason);
    }

    #[inline]
    pub(crate) fn lane_set(&self) -> &LaneSet {
        &self.shared.lanes
    }

    /// What it connects to, for people.
    pub(crate) fn target(&self) -> impl fmt::Display + '_ {
        self.shared.lanes.target()
    }

    /// A call of `method` begins.
    #[inline]
    pub(crate) fn measure_call(&self, method: &Method) -> CallMeasure {
        self.shared.measure.call(method)
    }

    pub(crate) fn raw_request_head(
        &self,
        verb: &http::Method,
        path: &str,
        headers: &http::HeaderMap,
    ) -> Arc<RawRequestHead> {
        let Shared { scheme, authority, user_agent, raw_heads, .. } = &*self.shared;
        raw_heads.get(verb, path, headers, Origin { scheme, authority, user_agent })
    }

    #[inline]
    pub(crate) fn request_head(
        &self,
        method: &Method,
        accepts: EncodingSet,
        timeout: Option<Duration>,
    ) -> Arc<FixedFields> {
        self.shared.heads.get(method, accepts, timeout, || {
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
