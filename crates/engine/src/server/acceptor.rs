//! From a socket that was accepted to a connection that is served.

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
#[cfg(feature = "tls")]
use super::handshakes::Handshakes;
use crate::connection::{Connection, Driver};
use crate::connection_info::ConnectionInfo;
use crate::executor::Executor;
use crate::measure::ServerMeasure;
use crate::net::{Accepted, ListenAddress, Listener};
#[cfg(feature = "tls")]
use crate::tls::ServerTls;

/// What every connection of a server is made from.
#[derive(Clone, Debug)]
pub(super) struct Acceptor {
    pub(super) router: Arc<dyn Router>,
    pub(super) http2: thalweg_http2::Config,
    pub(super) shutdown_grace: Duration,
    pub(super) busy_poll: Duration,
    /// See [`Accepted::set_user_timeout`].
    pub(super) user_timeout: Option<Duration>,
    /// What its listener is bound to.
    pub(super) local: Option<Arc<ListenAddress>>,
    pub(super) connections: Arc<Connections>,
    pub(super) measure: ServerMeasure,
    /// Calls are told of the connection that they come by.
    pub(super) tells_connection: bool,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Secure>,
}

/// What the TLS connections of a server share.
#[cfg(feature = "tls")]
#[derive(Clone, Debug)]
pub(super) struct Secure {
    tls: ServerTls,
    handshakes: Arc<Handshakes>,
}

#[cfg(feature = "tls")]
impl Secure {
    pub(super) fn new(tls: ServerTls) -> Self {
        let handshakes = Arc::new(Handshakes::new(tls.max_handshakes()));
        Self { tls, handshakes }
    }
}

/// What a connection is called, and whose it is.
#[derive(Default)]
pub(super) struct Peer {
    name: String,
    address: Option<IpAddr>,
    info: ConnectionInfo,
}

/// How long accepting pauses when it fails, mostly for want of file descriptors: connections that end give some back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Acceptor {
    /// Accepts for as long as there is a listener; what it returns is what became of that.
    pub(super) async fn accept(self, listener: Listener, executor: Option<&Executor>) -> io::Error {
        loop {
            match listener.accept().await {
                // One that cannot be watched is closed.
                Ok(socket) if !self.connections.has_room_for(socket.peer_address) => {
                    tracing::debug!(peer = socket.peer_name, "a connection is refused: there are too many");
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

    /// Serves a socket in a task, here or on one of the threads.
    fn start(&self, socket: Accepted, executor: Option<&Executor>) -> io::Result<()> {
        let seat = executor.map(Executor::seat);
        let runtime = seat.as_ref().map_or_else(Handle::current, |seat| seat.runtime.clone());
        if let Some(timeout) = self.user_timeout {
            socket.set_user_timeout(timeout)?;
        }
        let mut peer =
            Peer { name: socket.peer_name.clone(), address: socket.peer_address, ..Peer::default() };
        if self.tells_connection {
            (peer.info.remote_addr, peer.info.local_addr) = socket.addresses();
        }
        let socket = {
            let _watched_by_it = runtime.enter();
            socket.watch(!self.busy_poll.is_zero())?
        };
        // It is in the list before the task runs: a shutdown at this moment waits for it.
        #[cfg(feature = "tls")]
        if let Some(secure) = &self.tls {
            let serving = self.serve_secure(socket, peer, secure);
            runtime.spawn(async move {
                serving.await;
                drop(seat);
            });
            return Ok(());
        }
        let serving = self.serve(socket, peer);
        runtime.spawn(async move {
            serving.await;
            drop(seat);
        });
        Ok(())
    }

    /// Serves what the application connected by itself.
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
        let driver = Driver::new(io, self.endpoint(info), connection, self.busy_poll);
        async move {
            driver.await;
            drop(registered);
        }
    }

    /// As [`serve`](Self::serve), over TLS. It counts as a connection from here on.
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
        let held = registered.tls();
        let (acceptor, tls, handshake) = (self.clone(), secure.tls.clone(), secure.handshakes.begin());
        let opening = async move {
            let shaken = tokio::select! {
                biased;
                () = acceptor.connections.draining().begun() => None,
                shaken = handshake.run(&connection, tls.accept(io, held)) => shaken,
            };
            match shaken {
                Some(Ok((stream, tls))) => {
                    info.tls = Some(tls);
                    Some(Driver::new(stream, acceptor.endpoint(info), connection, acceptor.busy_poll))
                }
                Some(Err(error)) => {
                    tracing::debug!(peer = connection.peer, %error, "a TLS handshake failed");
                    None
                }
                None => {
                    tracing::debug!(peer = connection.peer, "a TLS handshake was cut off to make room");
                    None
                }
            }
        };
        // In a box, which goes before the driver comes: it is some KiB.
        let opening = Box::pin(opening);
        async move {
            if let Some(driver) = opening.await {
                driver.await;
            }
            drop(registered);
        }
    }

    fn connection(&self, peer: String) -> Arc<Connection> {
        let http2 = thalweg_http2::Connection::server(self.http2.clone(), Instant::now().into_std());
        Connection::new(http2, peer, None)
    }

    fn endpoint(&self, info: ConnectionInfo) -> ServerEndpoint {
        let router = self.router.of_connection(&info).unwrap_or_else(|| Arc::clone(&self.router));
        let mut endpoint =
            ServerEndpoint::new(router, self.measure.clone(), self.http2.max_concurrent_streams);
        if self.tells_connection {
            endpoint.set_info(info);
        }
        endpoint
    }
}

/// The client was gone before it was accepted: nothing to do with the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// The process, or the machine, has as many files open as it may: EMFILE, ENFILE.
fn is_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(24 | 23))
}

/// The listener is none any more: EBADF, EFAULT, EINVAL, ENOTSOCK. Everything else passes: out of descriptors or of
/// memory, a firewall's refusal, errors of the network that belong to the connection (accept(2)).
fn is_of_the_listener(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(9 | 14 | 22 | 88))
}

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "a connection was not accepted; accepting goes on");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
