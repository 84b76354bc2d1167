//! From a socket that was accepted to a connection that is served.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::connections::Connections;
use super::dispatch::Router;
use super::endpoint::ServerEndpoint;
use crate::connection::{Connection, Driver};
use crate::executor::Executor;
use crate::measure::ServerMeasure;
use crate::net::{Accepted, ListenAddress, Listener};

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
        let (peer, address) = (socket.peer_name.clone(), socket.peer_address);
        if let Some(timeout) = self.user_timeout {
            socket.set_user_timeout(timeout)?;
        }
        let socket = {
            let _watched_by_it = runtime.enter();
            socket.watch(!self.busy_poll.is_zero())?
        };
        // It is in the list before the task runs: a shutdown at this moment waits for it.
        let serving = self.serve(socket, peer, address);
        runtime.spawn(async move {
            serving.await;
            drop(seat);
        });
        Ok(())
    }

    pub(super) fn serve<IO>(
        &self,
        io: IO,
        peer: String,
        address: Option<IpAddr>,
    ) -> impl Future<Output = ()> + Send + use<IO>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let http2 = thalweg_http2::Connection::server(self.http2.clone(), Instant::now().into_std());
        let connection = Connection::new(http2, peer, None);
        let registered = self.connections.register(&connection, address, self.local.clone());
        let endpoint = {
            let streams_max = self.http2.max_concurrent_streams;
            ServerEndpoint::new(Arc::clone(&self.router), self.measure.clone(), streams_max)
        };
        let driver = Driver::new(io, endpoint, connection, self.busy_poll);
        async move {
            driver.await;
            drop(registered);
        }
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
