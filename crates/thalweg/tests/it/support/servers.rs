//! Servers that are killed, told to stop, and started again at the same address.

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

/// An address for servers, one after the other. It is theirs while none of them listens, too: a connection to it is
/// refused then, and no socket of another gets it.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    _bound: Socket,
}

/// A server with a runtime of its own.
pub(crate) struct Running {
    pub(crate) runtime: Runtime,
    stop: oneshot::Sender<()>,
    pub(crate) serving: JoinHandle<()>,
    /// Connections that it has accepted.
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

    /// From here on, connections are made, whether anybody accepts them or not.
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

    /// A server on a listener that outlives it, so that a client which connects between two servers is answered by the
    /// second.
    pub(crate) fn share(listener: &TcpListener) -> Self {
        Self::start(listener.try_clone().expect("a descriptor"))
    }

    /// As `kill -9`: the sockets are closed with whatever is on them. They are when this returns. How many connections
    /// it had accepted.
    pub(crate) async fn kill(self) -> usize {
        // Dropped, a runtime waits for its threads.
        tokio::task::spawn_blocking(move || drop(self.runtime)).await.expect("no panic");
        self.accepted.load(Ordering::SeqCst)
    }

    /// Lets the calls that there are end, as SIGTERM does.
    pub(crate) async fn stop(mut self) {
        let (stop, _) = oneshot::channel();
        std::mem::replace(&mut self.stop, stop).send(()).expect("it serves");
        soon(&mut self.serving).await.expect("no panic");
        self.kill().await;
    }
}
