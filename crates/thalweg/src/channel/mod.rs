//! A handle to a service, wherever it runs: [`Channel`].

mod backoff;
mod call;
mod connect;
mod endpoint;
mod lane;
// Nothing takes samples yet.
#[allow(dead_code, unused_imports)]
mod policy;
mod target;
mod unary;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use std::{fmt, io};

use thalweg_http2::FixedFields;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::Status;

pub use target::TargetError;

use crate::Method;
use crate::connection::{self, Connection};
use crate::executor::{ExecutorError, ExecutorOptions};
use crate::grpc::compression::EncodingSet;
use crate::grpc::request;
use crate::grpc::user_agent::{self, InvalidUserAgent};
use connect::{ConnectionOptions, Connector, Transport};
use lane::Lane;
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
    lanes: Vec<Arc<Lane>>,
    /// Where the next call begins to look for a lane.
    turn: AtomicUsize,
    authority: String,
    user_agent: String,
    heads: RequestHeads,
}

/// How a [`Channel`] is set up.
#[derive(Clone, Debug)]
pub struct ChannelBuilder {
    target: String,
    lanes: usize,
    connect_timeout: Duration,
    user_agent: String,
    authority: Option<String>,
    http2: thalweg_http2::Config,
    transport: Transport,
    busy_poll: Duration,
    executor: ExecutorOptions,
    jitter: fn() -> f64,
}

/// What a channel's lane is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneSnapshot {
    /// gRPC's connectivity state: `IDLE`, `CONNECTING`, `READY` or `TRANSIENT_FAILURE`.
    pub state: &'static str,
    /// The address that it is connected to.
    pub peer: Option<String>,
    /// Calls in flight.
    pub in_flight: usize,
}

/// Time for one attempt to connect, as gRPC's connection backoff has it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The most lanes a channel can be given.
const LANES_MAX: usize = 1024;

impl Channel {
    /// Begins a channel to `target`, a [gRPC target URI]: `host:port`, `dns:///host:port`, `ipv4:1.2.3.4:80`,
    /// `ipv6:[::1]:80`, `unix:/path` or `unix-abstract:name`.
    ///
    /// [gRPC target URI]: https://github.com/grpc/grpc/blob/master/doc/naming.md
    pub fn builder(target: impl Into<String>) -> ChannelBuilder {
        ChannelBuilder {
            target: target.into(),
            lanes: 1,
            connect_timeout: CONNECT_TIMEOUT,
            user_agent: String::new(),
            authority: None,
            http2: thalweg_http2::Config::default(),
            transport: Transport::Sockets,
            busy_poll: Duration::ZERO,
            executor: ExecutorOptions::default(),
            jitter: random_unit,
        }
    }

    /// The lanes as they are now.
    pub fn lanes(&self) -> Vec<LaneSnapshot> {
        let snapshot = |lane: &Arc<Lane>| {
            let connection = lane.ready();
            LaneSnapshot {
                state: lane.state_name(),
                peer: connection.as_ref().map(|connection| connection.peer.clone()),
                in_flight: connection.map_or(0, |connection| connection.in_flight()),
            }
        };
        self.shared.lanes.iter().map(snapshot).collect()
    }

    /// The lane of a channel that has one, if that is connected: most calls need not look further.
    #[inline]
    fn only_lane(&self) -> Option<(&Lane, Arc<Connection>)> {
        match self.shared.lanes.as_slice() {
            [lane] => Some((lane, lane.ready()?)),
            _ => None,
        }
    }

    /// A lane for the next call, and its connection.
    async fn lane(&self, wait_for_ready: bool) -> Result<(&Lane, Arc<Connection>), Status> {
        let lanes = &self.shared.lanes;
        if let [lane] = lanes.as_slice() {
            return Ok((lane, lane.connection(wait_for_ready).await?));
        }
        // The less loaded of two neighbours; the turn moves on, so that every lane is looked at.
        let turn = self.shared.turn.fetch_add(1, Ordering::Relaxed);
        let (first, second) = (&lanes[turn % lanes.len()], &lanes[(turn + 1) % lanes.len()]);
        match (first.ready(), second.ready()) {
            (Some(a), Some(b)) if b.in_flight() < a.in_flight() => Ok((second, b)),
            (Some(a), _) => Ok((first, a)),
            (None, second_ready) => {
                // Any lane that is there is better than waiting for this one, or failing with it.
                first.connect_if_due();
                if let Some(connection) = second_ready {
                    return Ok((second, connection));
                }
                match lanes.iter().find_map(|lane| Some((lane, lane.ready()?))) {
                    Some((lane, connection)) => Ok((lane, connection)),
                    None => Ok((first, first.connection(wait_for_ready).await?)),
                }
            }
        }
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
    /// How many connections the channel keeps, at most 1024; one unless told otherwise.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes.clamp(1, LANES_MAX);
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
    /// When the target, the authority or the user agent can't be understood, or the channel's own
    /// [`threads`](Self::threads) can't run. Whether there is a server is not looked at.
    pub fn connect_lazy(self) -> Result<Channel, ConnectError> {
        let target = Target::parse(&self.target)?;
        let authority = self.authority.unwrap_or_else(|| target.authority());
        let legal = |b: u8| b.is_ascii_graphic() && b != b'/';
        if authority.is_empty() || !authority.bytes().all(legal) {
            return Err(ConnectError::Authority(authority));
        }
        let user_agent = user_agent::for_application(&self.user_agent)?;
        let connector = Arc::new(Connector {
            target,
            transport: self.transport,
            timeout: self.connect_timeout,
            connection: ConnectionOptions {
                http2: self.http2,
                busy_poll: self.busy_poll,
                executor: self.executor.start("thalweg-channel")?.map(Arc::new),
            },
            jitter: self.jitter,
        });
        let lanes = (0..self.lanes).map(|_| Arc::new(Lane::new(Arc::clone(&connector)))).collect();
        let heads = RequestHeads::default();
        let shared = Shared { lanes, turn: AtomicUsize::new(0), authority, user_agent, heads };
        Ok(Channel { shared: Arc::new(shared) })
    }

    /// The channel, once all its lanes are connected.
    ///
    /// # Errors
    /// As [`connect_lazy`](Self::connect_lazy), and when there is no server that speaks HTTP/2.
    pub async fn connect(self) -> Result<Channel, ConnectError> {
        let channel = self.connect_lazy()?;
        for lane in &channel.shared.lanes {
            lane.connection(false)
                .await
                .map_err(|status| ConnectError::Unavailable(status.message().to_owned()))?;
        }
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
