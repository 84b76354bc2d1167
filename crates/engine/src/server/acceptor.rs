//! Turns accepted sockets into served connections.

use std::borrow::Cow;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::connections::Connections;
use super::dispatch::Router;
use super::endpoint::ServerEndpoint;
use super::fallback::Fallback;
use super::first_bytes::{self, Protocol};
#[cfg(feature = "tls")]
use super::handshakes::Handshakes;
use super::http1::{ByteStream, Http1, serve_http1};
use super::prefixed_stream::PrefixedStream;
use crate::connection::{Connection, Driver};
use crate::connection_info::ConnectionInfo;
use crate::executor::Executor;
use crate::measure::ServerMeasure;
use crate::net::{Accepted, ListenAddress, Listener};
#[cfg(feature = "tls")]
use crate::tls::ServerTls;

/// Shared state from which each connection of a server is created.
#[derive(Clone, Debug)]
pub(super) struct Acceptor {
    pub(super) router: Arc<dyn Router>,
    pub(super) http2: Arc<thalweg_http2::Config>,
    pub(super) shutdown_grace: Duration,
    pub(super) busy_poll: Option<Duration>,
    /// See [`Accepted::set_user_timeout`].
    pub(super) user_timeout: Option<Duration>,
    /// The listener's address.
    pub(super) local: Option<Arc<ListenAddress>>,
    pub(super) connections: Arc<Connections>,
    pub(super) measure: ServerMeasure,
    /// Whether calls receive the connection info.
    pub(super) passes_connection_info: bool,
    /// Time limit of a client's first bytes, where they determine its protocol.
    pub(super) header_timeout: Duration,
    pub(super) fallback: Option<Fallback>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Secure>,
}

/// Shared by all TLS connections of a server.
#[cfg(feature = "tls")]
#[derive(Clone, Debug)]
pub(super) struct Secure {
    tls: ServerTls,
    handshakes: Arc<Handshakes>,
}

#[cfg(feature = "tls")]
impl Secure {
    /// With `takes_http1` clients need not negotiate HTTP/2.
    pub(super) fn new(tls: ServerTls, takes_http1: bool) -> Self {
        let handshakes = Arc::new(Handshakes::new(tls.max_handshakes()));
        Self { tls: if takes_http1 { tls.with_http1() } else { tls }, handshakes }
    }
}

/// Name, address and info of a connection.
#[derive(Default)]
pub(super) struct Peer {
    name: String,
    address: Option<IpAddr>,
    info: ConnectionInfo,
}

/// Pause after accepting fails, mostly for lack of file descriptors, some of which ending connections release.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Acceptor {
    /// Accepts connections until the listener fails, and returns its error.
    pub(super) async fn accept(self, listener: Listener, executor: Option<&Executor>) -> io::Error {
        loop {
            match listener.accept().await {
                // Dropping the socket closes the connection.
                Ok(socket) if !self.connections.has_room_for(socket.peer_address) => {
                    tracing::debug!(peer = socket.peer_name, "connection refused: too many connections");
                }
                Ok(socket) => match self.start(socket, executor) {
                    Ok(()) => {}
                    Err(error) => pause(&error).await,
                },
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) if is_of_the_listener(&error) => return error,
                Err(error) => {
                    if is_of_descriptors(&error) {
                        self.connections.make_room();
                    }
                    pause(&error).await;
                }
            }
        }
    }

    /// Serves a socket in a task, on the current runtime or one of the threads.
    fn start(&self, socket: Accepted, executor: Option<&Executor>) -> io::Result<()> {
        let thread_slot = executor.map(Executor::reserve_slot);
        let runtime =
            thread_slot.as_ref().map_or_else(Handle::current, |thread_slot| thread_slot.runtime.clone());
        if let Some(timeout) = self.user_timeout {
            socket.set_user_timeout(timeout)?;
        }
        let mut peer =
            Peer { name: socket.peer_name.clone(), address: socket.peer_address, ..Peer::default() };
        if self.passes_connection_info {
            (peer.info.remote_addr, peer.info.local_addr) = socket.addresses();
        }
        let socket = {
            let _watched_by_it = runtime.enter();
            socket.watch()?
        };
        // Registered before the task runs, so a shutdown at this moment waits for it.
        #[cfg(feature = "tls")]
        if let Some(secure) = &self.tls {
            let serving = self.serve_secure(socket, peer, secure);
            runtime.spawn(async move {
                serving.await;
                drop(thread_slot);
            });
            return Ok(());
        }
        let serving = self.serve(socket, peer);
        runtime.spawn(async move {
            serving.await;
            drop(thread_slot);
        });
        Ok(())
    }

    /// Serves a byte stream that the application provides.
    pub(super) fn serve_stream<IO>(&self, io: IO) -> Pin<Box<dyn Future<Output = ()> + Send>>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let peer = Peer { name: "a byte stream".to_owned(), ..Peer::default() };
        #[cfg(feature = "tls")]
        if let Some(secure) = &self.tls {
            return Box::pin(self.serve_secure(io, peer, secure));
        }
        Box::pin(self.serve(io, peer))
    }

    fn serve<IO>(&self, io: IO, peer: Peer) -> impl Future<Output = ()> + Send + use<IO>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Peer { name, address, info } = peer;
        let connection = self.connection(name);
        let registered = self.connections.register(&connection, address, self.local.clone());
        let opened = if self.fallback.is_some() || self.router.accepts_http1() {
            Opened::Unknown(Box::pin(self.clone().open(io, info, connection, None)))
        } else {
            Opened::Http2(Driver::new(io, self.endpoint(info), connection, self.busy_poll))
        };
        async move {
            opened.serve().await;
            drop(registered);
        }
    }

    /// Determines the protocol of a connection, from ALPN or else its first bytes.
    async fn open<IO>(
        self,
        mut io: IO,
        info: ConnectionInfo,
        connection: Arc<Connection>,
        agreed: Option<Protocol>,
    ) -> Opened<IO>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (first, protocol) = match agreed {
            Some(protocol) => (Vec::new(), protocol),
            None => match self.first_bytes(&mut io, &connection).await {
                Ok(first_bytes) => first_bytes,
                Err(why) => {
                    tracing::debug!(
                        peer = &*connection.peer,
                        %why,
                        "connection closed before its first request"
                    );
                    return Opened::Over;
                }
            },
        };
        if protocol == Protocol::Http1
            && let Some(http1) = self.http1(&info)
        {
            let info = self.passes_connection_info.then(|| Arc::new(info));
            let drains = self.connections.draining().has_started();
            let io: Box<dyn ByteStream> = Box::new(PrefixedStream::new(first, io));
            let serving = async move { serve_http1(&*http1, io, info, connection, drains).await };
            return Opened::Http1(Box::pin(serving));
        }
        let driver = Driver::new(io, self.endpoint(info), connection, self.busy_poll);
        Opened::Http2(driver.with_first(first))
    }

    /// Reads the first bytes of a connection. Fails if they do not arrive in time, or the connection ends first.
    async fn first_bytes<IO>(
        &self,
        io: &mut IO,
        connection: &Connection,
    ) -> Result<(Vec<u8>, Protocol), Cow<'static, str>>
    where
        IO: AsyncRead + Unpin,
    {
        let first_bytes = tokio::time::timeout(self.header_timeout, first_bytes::detect(io));
        let closed = poll_fn(|cx| connection.poll_command(true, cx));
        tokio::select! {
            biased;
            () = self.connections.draining().started() => Err("the server is shutting down".into()),
            _ = closed => Err("closed to free resources".into()),
            first_bytes = first_bytes => match first_bytes {
                Ok(first_bytes) => first_bytes.map_err(|error| error.to_string().into()),
                Err(_) => Err("timed out waiting for the first bytes".into()),
            }
        }
    }

    /// Like [`serve`](Self::serve), over TLS. The connection counts from the start of the handshake.
    #[cfg(feature = "tls")]
    fn serve_secure<IO>(
        &self,
        io: IO,
        peer: Peer,
        secure: &Secure,
    ) -> impl Future<Output = ()> + Send + use<IO>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Peer { name, address, mut info } = peer;
        let connection = self.connection(name);
        let registered = self.connections.register(&connection, address, self.local.clone());
        let memory = registered.tls();
        let (acceptor, tls, handshake) = (self.clone(), secure.tls.clone(), secure.handshakes.begin());
        let opening = async move {
            let outcome = tokio::select! {
                biased;
                () = acceptor.connections.draining().started() => None,
                outcome = handshake.run(&connection, tls.accept(io, memory)) => outcome,
            };
            match outcome {
                Some(Ok((stream, tls))) => {
                    let agreed = match tls.alpn_protocol() {
                        Some("http/1.1") => Some(Protocol::Http1),
                        Some(_) => Some(Protocol::Http2),
                        // Without HTTP/1.1 support, the handshake fails if no protocol is negotiated.
                        None => None,
                    };
                    info.tls = Some(tls);
                    return acceptor.open(stream, info, connection, agreed).await;
                }
                Some(Err(error)) => {
                    tracing::debug!(peer = &*connection.peer, %error, "TLS handshake failed");
                }
                None => {
                    tracing::debug!(peer = &*connection.peer, "TLS handshake aborted to free resources");
                }
            }
            Opened::Over
        };
        let opening = Opened::Unknown(Box::pin(opening));
        async move {
            opening.serve().await;
            drop(registered);
        }
    }

    fn connection(&self, peer: String) -> Arc<Connection> {
        let http2 = thalweg_http2::Connection::server(Arc::clone(&self.http2), Instant::now().into_std());
        Connection::of_server(http2, peer, self.connections.memory())
    }

    /// Returns the router of a connection.
    fn router(&self, info: &ConnectionInfo) -> Arc<dyn Router> {
        self.router.of_connection(info).unwrap_or_else(|| Arc::clone(&self.router))
    }

    fn http1(&self, info: &ConnectionInfo) -> Option<Arc<dyn Http1>> {
        match &self.fallback {
            Some(fallback) => Some(Arc::clone(&fallback.http1)),
            None => self.router(info).http1(),
        }
    }

    fn endpoint(&self, info: ConnectionInfo) -> ServerEndpoint {
        let router = self.router(&info);
        let mut endpoint = ServerEndpoint::new(
            router,
            self.fallback.clone(),
            self.measure.clone(),
            self.http2.max_concurrent_streams,
        );
        if self.passes_connection_info {
            endpoint.set_info(info);
        }
        endpoint
    }
}

/// A connection, by protocol.
enum Opened<IO> {
    /// Not determined yet. Boxed and freed before the driver starts, because it takes several KiB.
    Unknown(Pin<Box<dyn Future<Output = Self> + Send>>),
    Http2(Box<Driver<IO, ServerEndpoint>>),
    Http1(Pin<Box<dyn Future<Output = ()> + Send>>),
    Over,
}

impl<IO> Opened<IO>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    /// Serves the connection until it ends.
    async fn serve(self) {
        let opened = match self {
            Self::Unknown(opening) => opening.await,
            opened => opened,
        };
        match opened {
            Self::Http2(driver) => driver.await,
            Self::Http1(serving) => serving.await,
            // `Unknown` resolves to another variant.
            Self::Unknown(_) | Self::Over => {}
        }
    }
}

/// Returns whether the client disconnected before it was accepted. The listener is not affected.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// Returns whether the process or the machine is out of file descriptors: EMFILE, ENFILE.
fn is_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(24 | 23))
}

/// Returns whether the listener is invalid: EBADF, EFAULT, EINVAL, ENOTSOCK. Other errors are temporary: out of
/// descriptors or memory, rejections by a firewall, network errors of the connection (accept(2)).
fn is_of_the_listener(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(9 | 14 | 22 | 88))
}

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "failed to accept a connection; retrying");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
