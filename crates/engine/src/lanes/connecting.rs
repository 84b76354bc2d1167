//! Connecting: from a target to an HTTP/2 connection with SETTINGS received.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;
use std::{fmt, io};

use thalweg_balance::{Address, Backoff};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};

use super::addresses::{Addresses, Step};
use super::connect_step::{ConnectStep, StepWatcher};
use super::endpoint::ClientEndpoint;
use super::last_report::LastReport;
use super::maintenance::Maintenance;
use super::observers::ConnectionObserver;
use super::refusal::refused;
use super::sockets::Sockets;
use crate::connection::{Connection, Driver, StreamAdmission, StreamWaitQueue, poll_with_waker};
use crate::endpoint_origin::EndpointOrigin;
use crate::event_log::EventLog;
use crate::executor::Executor;
use crate::grpc::compression::EncodingSet;
use crate::measure::{ChannelMeasure, EndpointMeasure};
use crate::net::TcpOptions;
use crate::resolver::AddressSource;
use crate::snapshot::SentCalls;
#[cfg(feature = "tls")]
use crate::status::Code;
use crate::status::Status;
#[cfg(feature = "tls")]
use crate::tls::{BufferMemory, ClientTls};

/// The parts of a channel that its endpoints share.
pub(crate) struct ChannelParts {
    pub(crate) measure: ChannelMeasure,
    /// Calls that wait for a free stream.
    pub(crate) queue: Arc<StreamWaitQueue>,
    /// Calls of endpoints that are gone.
    pub(crate) calls: Arc<Mutex<SentCalls>>,
}

/// Creates the connections of one endpoint.
#[derive(Debug)]
pub(crate) struct Connector {
    /// The timeout is for one attempt over all addresses, from name resolution to the server's SETTINGS.
    pub(crate) addresses: Addresses,
    pub(crate) transport: Transport,
    pub(crate) connection: ConnectionOptions,
    pub(crate) backoff: Backoff,
    /// Returns the position, in 0..=1, of the next backoff within its jitter range.
    pub(crate) jitter: fn() -> f64,
    pub(crate) measure: EndpointMeasure,
    /// Events of the endpoint.
    pub(crate) events: EventLog,
    /// Calls of lanes that are gone.
    pub(crate) calls: Mutex<SentCalls>,
    /// Calls of the channel's endpoints that are gone.
    pub(crate) channel_calls: Arc<Mutex<SentCalls>>,
}

/// Options shared by the connections of one channel.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionOptions {
    /// The channel's target, as written by its user.
    pub(crate) target: Arc<str>,
    pub(crate) http2: Arc<thalweg_http2::Config>,
    pub(crate) busy_poll: Option<Duration>,
    /// Threads to run connections on, instead of the caller's runtime. Each connection keeps them alive.
    pub(crate) executor: Option<Arc<Executor>>,
    /// Calls that wait for a stream on any of the connections.
    pub(crate) queue: Arc<StreamWaitQueue>,
    pub(crate) maintenance: Arc<Maintenance>,
    pub(crate) watcher: StepWatcher,
    /// The names in requests, if the endpoint has its own.
    pub(crate) origin: Option<Arc<EndpointOrigin>>,
    /// Where load reports in trailers are stored, if the channel's policy reads them.
    pub(crate) reports: Option<Arc<LastReport>>,
    /// TLS below HTTP/2, for any transport.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<ClientTls>,
}

impl ConnectionOptions {
    fn is_secure(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}

/// Transport of a channel's connections.
#[derive(Clone)]
pub(crate) enum Transport {
    /// Sockets to the target's addresses.
    Sockets(Sockets),
    /// Streams connected by the application.
    Custom {
        /// Connects with HTTP/2.
        open: Arc<OpenCustom>,
        /// Connects without HTTP/2.
        dial: Arc<DialCustom>,
        /// Whether it is called with an address. Otherwise the target is not resolved.
        takes_address: bool,
    },
}

/// A stream of bytes to read from and write to.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<IO: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for IO {}

type DialCustom = dyn Fn(Option<&Address>) -> Dialing + Send + Sync;
type Dialing = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;
type OpenCustom =
    dyn Fn(Option<&Address>, String, ConnectionOptions, Observer, Step) -> Opening + Send + Sync;
type Observer = Weak<dyn ConnectionObserver>;
type Opening = Pin<Box<dyn Future<Output = Result<Arc<Connection>, Status>> + Send>>;

impl Transport {
    /// Creates a transport that calls `connect`, with an address of the target if it `takes_address`.
    pub(crate) fn custom<F, Fut, IO>(connect: F, takes_address: bool) -> Self
    where
        F: Fn(Option<&Address>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<IO>> + Send + 'static,
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connect = Arc::new(connect);
        let dialing = Arc::clone(&connect);
        let open: Arc<OpenCustom> =
            Arc::new(move |address, peer, mut options: ConnectionOptions, observer, step| {
                // The cost of reading such a stream is unknown, so it is not busy-polled by default.
                options.busy_poll.get_or_insert_default();
                let connecting = connect(address);
                Box::pin(async move {
                    let io = connecting.await.map_err(|error| refused(&peer, &error))?;
                    open(io, peer, options, observer, &step).await
                })
            });
        let dial: Arc<DialCustom> = Arc::new(move |address| {
            let connecting = dialing(address);
            Box::pin(async move { Ok(Box::new(connecting.await?) as Box<dyn ByteStream>) })
        });
        Self::Custom { open, dial, takes_address }
    }
}

impl Transport {
    /// Returns the options of TCP sockets, if it has any.
    pub(super) fn tcp(&self) -> Option<&TcpOptions> {
        match self {
            Self::Sockets(sockets) => Some(&sockets.tcp),
            Self::Custom { .. } => None,
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sockets(_) => "Sockets",
            Self::Custom { .. } => "Custom",
        })
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        let calls = *self.calls.get_mut().unwrap_or_else(PoisonError::into_inner);
        *self.channel_calls.lock().unwrap_or_else(PoisonError::into_inner) += calls;
    }
}

impl Connector {
    /// Returns the delay after a number of failed attempts to connect in a row.
    pub(crate) fn backoff_after(&self, failures: u32) -> Duration {
        self.backoff.delay(failures, (self.jitter)())
    }

    /// Returns the parts of the channel that its endpoints share.
    pub(crate) fn channel_parts(&self) -> ChannelParts {
        let (measure, queue) = (self.measure.channel().clone(), Arc::clone(&self.connection.queue));
        ChannelParts { measure, queue, calls: Arc::clone(&self.channel_calls) }
    }

    /// Returns a connector of the same channel to other addresses.
    pub(crate) fn to(&self, source: AddressSource) -> Self {
        Self {
            addresses: self.addresses.to(source),
            transport: self.transport.clone(),
            connection: self.connection.clone(),
            backoff: self.backoff,
            jitter: self.jitter,
            measure: self.measure.clone(),
            events: EventLog::new(),
            calls: Mutex::default(),
            channel_calls: Arc::clone(&self.channel_calls),
        }
    }

    pub(super) async fn connect(&self, observer: &Observer) -> Result<Arc<Connection>, Status> {
        let addresses = &self.addresses;
        if let Transport::Custom { open, takes_address: false, .. } = &self.transport {
            let step = Step::default();
            let target = addresses.target.to_string();
            let opening = open(None, target, self.connection.clone(), observer.clone(), step.clone());
            let outcome = timeout(addresses.timeout, opening).await;
            let outcome =
                outcome.unwrap_or_else(|_| Err(addresses.timed_out(&step.missing(&"the other end"))));
            return self.measured(outcome);
        }
        let attempt =
            |address: Address, step: Step| async move { self.connect_to(&address, observer, step).await };
        let tcp = self.transport.tcp();
        addresses.first_to_connect(tcp, attempt, || self.resolved(), |outcome| self.measured(outcome)).await
    }

    fn resolved(&self) {
        self.measure.channel().resolved();
        self.connection.watcher.notify(|| ConnectStep::Resolved);
    }

    /// Counts an attempt to connect to one address.
    fn measured(&self, outcome: Result<Arc<Connection>, Status>) -> Result<Arc<Connection>, Status> {
        match &outcome {
            Ok(connection) => connection.measure.opened(&self.measure, self.connection.is_secure()),
            Err(_) => self.measure.attempt_failed(),
        }
        outcome
    }

    async fn connect_to(
        &self,
        address: &Address,
        observer: &Observer,
        step: Step,
    ) -> Result<Arc<Connection>, Status> {
        let (peer, options) = (address.to_string(), self.connection.clone());
        let sockets = match &self.transport {
            Transport::Sockets(sockets) => sockets,
            Transport::Custom { open, .. } => {
                return open(Some(address), peer, options, observer.clone(), step).await;
            }
        };
        let socket = sockets.connect(address).await?;
        let watched = || {
            let round_trip = socket.round_trip();
            if let Some(timeout) = self.connection.maintenance.user_timeout() {
                socket.set_user_timeout(timeout)?;
            }
            Ok::<_, io::Error>((socket.watch()?, round_trip))
        };
        let (socket, round_trip) = watched().map_err(|error| refused(address, &error))?;
        let timed = |connection: Arc<Connection>| {
            if let Some(round_trip) = round_trip {
                connection.set_round_trip(round_trip);
            }
            connection
        };
        #[cfg(feature = "tls")]
        if let Some(tunnel) = sockets.secure_tunnel(address) {
            // Boxed like streams of connectors: TLS to the server may run inside it.
            let stream: Box<dyn ByteStream> = Box::new(tunnel.open(socket).await?);
            step.set(Step::CONNECTED);
            return open(stream, peer, options, observer.clone(), &step).await.map(timed);
        }
        step.set(Step::CONNECTED);
        open(socket, peer, options, observer.clone(), &step).await.map(timed)
    }
}

/// Starts HTTP/2 on a byte stream, over TLS if the channel uses it.
async fn open<IO>(
    io: IO,
    peer: String,
    options: ConnectionOptions,
    observer: Observer,
    step: &Step,
) -> Result<Arc<Connection>, Status>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    options.watcher.notify(|| ConnectStep::Connected { peer: peer.clone() });
    #[cfg(feature = "tls")]
    if let Some(tls) = &options.tls {
        step.set(Step::SHAKING_HANDS);
        let connected = tls.connect(io, BufferMemory::default()).await;
        let stream =
            connected.map_err(|error| Status::local(Code::Unavailable, format!("{peer}: {error}")))?;
        options.watcher.notify(|| ConnectStep::Secured);
        step.set(Step::SETTINGS_OVER_TLS);
        return start_http2(stream, peer, options, observer).await;
    }
    step.set(Step::SETTINGS);
    start_http2(io, peer, options, observer).await
}

/// Starts HTTP/2 on a byte stream, and waits for the server's SETTINGS: only they prove that there is a server behind
/// the socket.
async fn start_http2<IO>(
    io: IO,
    peer: String,
    options: ConnectionOptions,
    observer: Observer,
) -> Result<Arc<Connection>, Status>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ConnectionOptions {
        target,
        origin,
        http2,
        busy_poll,
        executor,
        queue,
        maintenance,
        watcher,
        reports,
        ..
    } = options;
    let http2 = thalweg_http2::Connection::client(http2, Instant::now().into_std());
    let connection = Connection::new(http2, peer, Some(Arc::new(StreamAdmission::new(queue))));
    connection.set_destination(target, origin);
    if let Some(observer) = observer.upgrade() {
        observer.opened(&connection);
    }
    let endpoint = ClientEndpoint::new(EncodingSet::ALL, observer.clone(), Arc::clone(&maintenance), reports);
    let driver = Driver::new(io, endpoint, Arc::clone(&connection), busy_poll);
    let ended = NotifyOnDrop { observer: observer.clone(), connection: Arc::clone(&connection) };
    tokio::spawn(async move {
        driver.await;
        drop(ended);
        // A dropped channel leaves its threads to the calls in flight.
        drop(executor);
    });
    let abandoned = CloseUnlessOpened(Some(Arc::clone(&connection)));
    poll_fn(|cx| {
        poll_with_waker(cx, |task| {
            let mut state = connection.lock();
            if let Some(status) = state.ended() {
                return Ok(Poll::Ready(Err(status.clone())));
            }
            if state.http2.settings_received() {
                return Ok(Poll::Ready(Ok(())));
            }
            task.store_waker_in(&mut state.opener)?;
            Ok(Poll::Pending)
        })
    })
    .await?;
    abandoned.opened();
    watcher.notify(|| ConnectStep::Ready);
    maintenance.begin(&connection, &observer);
    Ok(connection)
}

/// Notifies the observer when a connection is over, even if the runtime drops the driver's task.
struct NotifyOnDrop {
    observer: Observer,
    connection: Arc<Connection>,
}

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.connection.measure.disconnected();
        if let Some(observer) = self.observer.upgrade() {
            observer.ended(&self.connection);
            observer.lost(&self.connection);
        }
    }
}

/// Closes the connection of an abandoned attempt.
struct CloseUnlessOpened(Option<Arc<Connection>>);

impl CloseUnlessOpened {
    fn opened(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseUnlessOpened {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.lock().close(thalweg_http2::ErrorCode::NoError, "");
        }
    }
}
