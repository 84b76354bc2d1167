//! Servers on a free port and in memory.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::{Service, StdError};
use tonic::service::Routes;
use tonic::transport::server::{Router, TcpIncoming};
use tonic::transport::{Channel, Endpoint, Error};
use tower::Layer;

/// A server that runs until it is [stopped](Self::stop).
#[derive(Debug)]
pub struct RunningServer {
    /// The server's address.
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), Error>>,
}

impl RunningServer {
    /// Returns its URI, without TLS.
    pub fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns an endpoint for it, without TLS.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::from_shared(self.uri()).expect("a valid URI")
    }

    /// Returns a connected channel to it.
    pub async fn channel(&self) -> Channel {
        self.endpoint().connect().await.expect("the server listens")
    }

    /// Stops the server and waits for its end.
    pub async fn stop(self) {
        self.stop.send(()).expect("the server serves");
        self.serving.await.expect("serving does not panic").expect("serving ends well");
    }
}

/// Serves on a free port.
pub async fn serve<L, B>(router: Router<L>) -> RunningServer
where
    L: Layer<Routes> + Clone + Send + 'static,
    L::Service: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    <L::Service as Service<Request<Body>>>::Future: Send,
    <L::Service as Service<Request<Body>>>::Error: Into<StdError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("the listener is bound");
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    serve_with(address, async move |stopped| router.serve_with_incoming_shutdown(incoming, stopped).await)
}

/// Runs `serve` at `address` until the server is stopped.
pub fn serve_with<F>(address: SocketAddr, serve: impl FnOnce(Stopped) -> F) -> RunningServer
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let (stop, stopped) = oneshot::channel();
    let stopped: Stopped = Box::pin(async { drop(stopped.await) });
    RunningServer { address, stop, serving: tokio::spawn(serve(stopped)) }
}

/// Completes when a server is to stop.
pub type Stopped = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Creates a channel to a new server over in-memory byte streams, so that with a paused clock nothing waits on real
/// I/O.
pub fn in_memory<L, B>(router: Router<L>, endpoint: &Endpoint) -> Channel
where
    L: Layer<Routes> + Clone + Send + 'static,
    L::Service: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    <L::Service as Service<Request<Body>>>::Future: Send,
    <L::Service as Service<Request<Body>>>::Error: Into<StdError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError>,
{
    let (connections, incoming) = mpsc::channel(1);
    let incoming = ReceiverStream::new(incoming).map(Ok::<_, std::convert::Infallible>);
    tokio::spawn(router.serve_with_incoming(incoming));
    endpoint.connect_with_connector_lazy(tower::service_fn(move |_| {
        let connections = connections.clone();
        async move {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            connections.send(theirs).await.map_err(|_| std::io::ErrorKind::ConnectionRefused)?;
            Ok::<_, std::io::Error>(TokioIo::new(ours))
        }
    }))
}
