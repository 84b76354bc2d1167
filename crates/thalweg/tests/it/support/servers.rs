//! Servers that are killed, stopped, and restarted at the same address.

use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use socket2::{Domain, Socket, Type};
use thalweg::{Server, Stream};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Echo, soon};

/// An address for consecutive servers. It stays reserved while none listens: connections are then refused, and no other
/// socket gets the address.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    _bound: Socket,
}

/// A server with its own runtime.
pub(crate) struct Running {
    pub(crate) runtime: Runtime,
    stop: oneshot::Sender<()>,
    pub(crate) serving: JoinHandle<()>,
    /// Number of accepted connections.
    pub(crate) accepted: Arc<AtomicUsize>,
}

struct Accepted(tokio::net::TcpListener, Arc<AtomicUsize>);

impl Stream for Accepted {
    type Item = TcpStream;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TcpStream>> {
        let (socket, _) = ready!(self.0.poll_accept(cx)).expect("a connection");
        self.1.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Some(socket))
    }
}

impl Port {
    pub(crate) fn new() -> Self {
        let bound = Self::socket();
        bound.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        let address = bound.local_addr().expect("bound").as_socket().expect("an IP address");
        Self { address, _bound: bound }
    }

    fn socket() -> Socket {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("an option");
        socket
    }

    pub(crate) fn target(&self) -> String {
        self.address.to_string()
    }

    /// Listens: from here on, connections are established even if no one accepts them.
    pub(crate) fn listen(&self) -> TcpListener {
        let socket = Self::socket();
        socket.bind(&self.address.into()).expect("the port");
        socket.listen(128).expect("a listener");
        socket.set_nonblocking(true).expect("an option");
        socket.into()
    }
}

impl Running {
    pub(crate) fn start(listener: TcpListener) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let (stop, stopped) = oneshot::channel::<()>();
        let accepted = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&accepted);
        let serving = runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            let server = Server::builder().add_service(Echo::default());
            let stopped = async move { stopped.await.unwrap_or(()) };
            server.serve_incoming(Accepted(listener, counted), stopped).await.expect("a configuration");
        });
        Self { runtime, stop, serving, accepted }
    }

    /// Starts a server on a listener that outlives it. A client that connects between two servers is served by the
    /// second.
    pub(crate) fn share(listener: &TcpListener) -> Self {
        Self::start(listener.try_clone().expect("a descriptor"))
    }

    /// Kills the server like `kill -9`: its sockets are closed, with any data on them, when this returns. Returns the
    /// number of connections it had accepted.
    pub(crate) async fn kill(self) -> usize {
        // A dropped runtime waits for its threads.
        tokio::task::spawn_blocking(move || drop(self.runtime)).await.expect("no panic");
        self.accepted.load(Ordering::SeqCst)
    }

    /// Stops the server gracefully, as SIGTERM does.
    pub(crate) async fn stop(mut self) {
        let (stop, _) = oneshot::channel();
        std::mem::replace(&mut self.stop, stop).send(()).expect("it serves");
        soon(&mut self.serving).await.expect("no panic");
        self.kill().await;
    }
}
