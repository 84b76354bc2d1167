//! A handle to a service, wherever it runs: [`Channel`].

mod backoff;
mod call;
mod connect;
mod endpoint;
mod lane;
mod lane_set;
mod lanes;
mod place;
mod policy;
mod service_config;
mod target;
mod ticker;
mod unary;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use std::{fmt, io};

use thalweg_http2::FixedFields;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

pub use lanes::Lanes;
pub use service_config::ServiceConfigError;
pub use target::TargetError;

use crate::Method;
use crate::connection::{self, Connection};
use crate::executor::{ExecutorError, ExecutorOptions};
use crate::grpc::compression::EncodingSet;
use crate::grpc::request;
use crate::grpc::user_agent::{self, InvalidUserAgent};
use crate::measure::{self, ChannelMeasure};
use connect::{ConnectionOptions, Connector, Transport};
use lane::Lane;
use lane_set::LaneSet;
use service_config::ServiceConfig;
use target::Target;

/// A handle to a gRPC target. Cheap to clone; clones share its connections.
///
/// Under it are *lanes*, each with a connection of its own; a call takes the less loaded of two. A channel makes its
/// connections when the first call needs them ([`ChannelBuilder::connect_lazy`]) or at once
/// ([`ChannelBuilder::connect`]), and again when they break: with gRPC's exponential backoff, while calls fail with
/// UNAVAILABLE or, if they ask for it ([`CallOptions::wait_for_ready`](crate::CallOptions)), wait.
///
/// Dropping the last clone closes the connections once the calls on them have ended.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let channel = thalweg::Channel::builder("localhost:50051").connect().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
}

struct Shared {
    lanes: Arc<LaneSet>,
    authority: String,
    user_agent: String,
    heads: RequestHeads,
    measure: ChannelMeasure,
}

/// How a [`Channel`] is set up.
#[derive(Clone, Debug)]
pub struct ChannelBuilder {
    target: String,
    lanes: Lanes,
    service_config: Option<String>,
    connect_timeout: Duration,
    user_agent: String,
    authority: Option<String>,
    http2: thalweg_http2::Config,
    transport: Transport,
    busy_poll: Duration,
    executor: ExecutorOptions,
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

impl Channel {
    /// Begins a channel to `target`, a [gRPC target URI]: `host:port`, `dns:///host:port`, `ipv4:1.2.3.4:80`,
    /// `ipv6:[::1]:80`, `unix:/path` or `unix-abstract:name`.
    ///
    /// [gRPC target URI]: https://github.com/grpc/grpc/blob/master/doc/naming.md
    pub fn builder(target: impl Into<String>) -> ChannelBuilder {
        ChannelBuilder {
            target: target.into(),
            lanes: Lanes::default(),
            service_config: None,
            connect_timeout: CONNECT_TIMEOUT,
            user_agent: String::new(),
            authority: None,
            http2: thalweg_http2::Config::default(),
            transport: Transport::Sockets,
            busy_poll: Duration::ZERO,
            executor: ExecutorOptions::default(),
            jitter: random_unit,
            measure: measure::Setup::default(),
        }
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
        self.shared.lanes.line().len()
    }

    #[cfg(test)]
    pub(crate) fn lane_set(&self) -> &LaneSet {
        &self.shared.lanes
    }

    fn request_head(&self, method: &Method, accepts: EncodingSet) -> Arc<FixedFields> {
        self.shared.heads.get(method, accepts, || {
            request::Method {
                scheme: "http",
                authority: &self.shared.authority,
                path: method.path(),
                user_agent: &self.shared.user_agent,
                accepts,
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

impl ChannelBuilder {
    /// How many connections the channel keeps: a fixed number, or as many as help within bounds. By default
    /// [`Lanes::adaptive`].
    pub fn lanes(mut self, lanes: impl Into<Lanes>) -> Self {
        self.lanes = lanes.into();
        self
    }

    /// A [service config] in JSON. What is understood of it: `connectionScaling.maxConnectionsPerSubchannel` (gRFC A105), the
    /// most connections that the service wants of a client. It takes the place of the default cap of
    /// [`Lanes::adaptive`], and lowers one that was set. Other fields are passed over.
    ///
    /// ```
    /// # fn main() -> Result<(), thalweg::channel::ConnectError> {
    /// let config = r#"{ "connectionScaling": { "maxConnectionsPerSubchannel": 4 } }"#;
    /// let channel = thalweg::Channel::builder("localhost:50051").service_config(config).connect_lazy()?;
    /// # Ok(()) }
    /// ```
    ///
    /// [service config]: https://github.com/grpc/grpc/blob/master/doc/service_config.md
    pub fn service_config(mut self, json: impl Into<String>) -> Self {
        self.service_config = Some(json.into());
        self
    }

    /// Time for one attempt to connect, from resolving the name to the server's HTTP/2 SETTINGS; 20 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Put before Thalweg's own in the `user-agent` of calls: `name/version` of the application.
    pub fn user_agent(mut self, application: impl Into<String>) -> Self {
        self.user_agent = application.into();
        self
    }

    /// The `:authority` of calls, if it is not to follow from the target.
    pub fn authority(mut self, authority: impl Into<String>) -> Self {
        self.authority = Some(authority.into());
        self
    }

    /// Windows, frame size and limits of the connections.
    pub fn http2(mut self, config: thalweg_http2::Config) -> Self {
        self.http2 = connection::fit(config);
        self
    }

    /// Makes the connections with `connect`, over any byte stream: an in-memory pipe in a test, a tunnel. The target then
    /// only gives the server its name (`:authority`). It is called again when a connection breaks, and once for each lane.
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
        self.transport = Transport::custom(connect);
        self
    }

    /// How long a connection on which nothing moves goes on trying to read before it sleeps; zero, the default: not at all.
    ///
    /// An answer that comes in that time is seen within about a microsecond, where waking a thread takes some tens. What
    /// it costs is a whole processor for each thread that has such a connection, while calls come and for `duration`
    /// after the last byte. Between two tries the other tasks of the thread have their turn. It is worth it for few calls in
    /// flight on processors that are spare, best with a thread of its own for each ([`threads`](Self::threads)) or on
    /// a single-threaded runtime: on one of several threads each try makes another thread look for work.
    pub fn busy_poll(mut self, duration: Duration) -> Self {
        self.busy_poll = duration;
        self
    }

    /// Runs the connections on `count` threads of the channel's own, in place of the runtime in which calls are made: the
    /// callers' threads encode and decode messages, these ones move bytes. A lane stays on its thread, and threads get
    /// equally many lanes, so more threads than lanes are of no use.
    ///
    /// The threads end when the channel has been dropped and its last call is over. A
    /// [`connector`](Self::connector) runs on them too.
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

    /// Measures calls, connections and lanes; not at all by default.
    #[cfg(feature = "opentelemetry")]
    pub fn metrics(mut self, metrics: crate::Metrics) -> Self {
        self.measure = Some(metrics);
        self
    }

    /// Where in 0..=1 each pause between two attempts to connect lies in its range of ±20 %, in place of a random number: for
    /// simulations that must replay.
    #[doc(hidden)]
    pub fn backoff_jitter(mut self, unit: fn() -> f64) -> Self {
        self.jitter = unit;
        self
    }

    /// The channel; it connects when the first call comes.
    ///
    /// # Errors
    /// When the target, the authority, the user agent or the service config can't be understood, or the channel's own
    /// [`threads`](Self::threads) can't run. Whether there is a server is not looked at.
    pub fn connect_lazy(self) -> Result<Channel, ConnectError> {
        let target = Target::parse(&self.target)?;
        let authority = self.authority.unwrap_or_else(|| target.authority());
        let legal = |b: u8| b.is_ascii_graphic() && b != b'/';
        if authority.is_empty() || !authority.bytes().all(legal) {
            return Err(ConnectError::Authority(authority));
        }
        let user_agent = user_agent::for_application(&self.user_agent)?;
        let service_config = self.service_config.as_deref().map(ServiceConfig::parse).transpose()?;
        let mut lanes = self.lanes;
        if let Some(scaling) = service_config.unwrap_or_default().connection_scaling {
            lanes.limit(scaling.max_connections_per_subchannel);
        }
        let measure = ChannelMeasure::new(&self.measure, || target.canonical());
        let connector = Connector {
            target,
            transport: self.transport,
            timeout: self.connect_timeout,
            connection: ConnectionOptions {
                http2: self.http2,
                busy_poll: self.busy_poll,
                executor: self.executor.start("thalweg-channel")?.map(Arc::new),
                line: Arc::default(),
            },
            jitter: self.jitter,
            measure: measure.clone(),
        };
        let lanes = LaneSet::new(&lanes, connector);
        let heads = RequestHeads::default();
        let shared = Shared { lanes, authority, user_agent, heads, measure };
        Ok(Channel { shared: Arc::new(shared) })
    }

    /// The channel, once the lanes that it begins with are connected.
    ///
    /// # Errors
    /// As [`connect_lazy`](Self::connect_lazy), and when there is no server that speaks HTTP/2.
    pub async fn connect(self) -> Result<Channel, ConnectError> {
        let channel = self.connect_lazy()?;
        let connected = channel.shared.lanes.connect_all().await;
        connected.map_err(|status| ConnectError::Unavailable(status.message().to_owned()))?;
        Ok(channel)
    }
}

/// Why there is no channel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The target can't be understood.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The authority can't be sent.
    #[error("`{0}` is not an authority: write host:port")]
    Authority(String),
    /// The user agent can't be sent.
    #[error(transparent)]
    UserAgent(#[from] InvalidUserAgent),
    /// The service config can't be understood.
    #[error(transparent)]
    ServiceConfig(#[from] ServiceConfigError),
    /// The channel's own threads can't run.
    #[error("the channel's threads: {0}")]
    Threads(#[from] ExecutorError),
    /// No address of the target could be connected to.
    #[error("{0}")]
    Unavailable(String),
}

/// The fixed part of the request heads of a channel, one for each method that was called.
///
/// A direct-mapped cache: methods made at run time have ever new numbers, and must not fill the memory.
struct RequestHeads {
    places: RwLock<Vec<Option<CachedHead>>>,
}

struct CachedHead {
    method: u32,
    accepts: EncodingSet,
    fields: Arc<FixedFields>,
}

/// Methods whose heads are kept; two that meet in one place only build theirs again.
const HEADS_MAX: usize = 256;

impl Default for RequestHeads {
    fn default() -> Self {
        Self { places: RwLock::new(Vec::new()) }
    }
}

impl RequestHeads {
    fn get(
        &self,
        method: &Method,
        accepts: EncodingSet,
        build: impl FnOnce() -> thalweg_http2::FieldList,
    ) -> Arc<FixedFields> {
        let id = method.id();
        let place = id as usize % HEADS_MAX;
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(cached)) = places.get(place)
            && cached.method == id
            && cached.accepts == accepts
        {
            return Arc::clone(&cached.fields);
        }
        drop(places);
        let fields = FixedFields::new(build());
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        if places.len() <= place {
            places.resize_with(place + 1, || None);
        }
        places[place] = Some(CachedHead { method: id, accepts, fields: Arc::clone(&fields) });
        fields
    }
}

/// A number in 0..1 for jitter; needs no quality beyond not being the same everywhere.
fn random_unit() -> f64 {
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}
