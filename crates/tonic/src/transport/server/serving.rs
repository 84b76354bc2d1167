//! Serving: from a configured server and a service to calls.

use std::fmt;
use std::future::{Future, Pending};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use thalweg_engine::server::ServerMethod;
use thalweg_engine::{self as engine, ConnectionInfo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_stream::{Stream, StreamExt};
use tower::Service;
use tower::layer::Layer;
use vocabulary::transport::server::{Connected, TcpConnectInfo};

use super::builder::Server;
use super::connect_info::RequestExtensionsFactory;
use super::connection::Calls;
use super::incoming::Incoming;
use crate::transport::error::{BoxError, Error};

impl<L> Server<L> {
    /// Serves `svc`, for calls of any name, at `addr` until the process ends.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound or TLS cannot be set up.
    pub async fn serve<S, ResBody>(self, addr: SocketAddr, svc: S) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send + 'static,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.serve_at(addr, svc, None::<Pending<()>>).await
    }

    /// Serves `svc`, for calls of any name, at `addr` until `signal` completes, then shuts down gracefully.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound or TLS cannot be set up.
    pub async fn serve_with_shutdown<S, F, ResBody>(
        self,
        addr: SocketAddr,
        svc: S,
        signal: F,
    ) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send + 'static,
        F: Future<Output = ()>,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.serve_at(addr, svc, Some(signal)).await
    }

    /// Serves `svc`, for calls of any name, on the connections from `incoming` until it ends. Open connections continue
    /// after that.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up.
    pub async fn serve_with_incoming<S, I, IO, IE, ResBody>(self, svc: S, incoming: I) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send + 'static,
        I: Stream<Item = Result<IO, IE>>,
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
        IE: Into<BoxError>,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.run(svc, incoming, None::<Pending<()>>).await
    }

    /// Serves `svc`, for calls of any name, on the connections from `incoming`. Returns when `incoming` and all
    /// connections have ended. When `signal` completes, it drops `incoming` and shuts the connections down gracefully.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up.
    pub async fn serve_with_incoming_shutdown<S, I, F, IO, IE, ResBody>(
        self,
        svc: S,
        incoming: I,
        signal: F,
    ) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send + 'static,
        I: Stream<Item = Result<IO, IE>>,
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
        IE: Into<BoxError>,
        F: Future<Output = ()>,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.run(svc, incoming, Some(signal)).await
    }

    async fn serve_at<S, F, ResBody>(self, addr: SocketAddr, svc: S, signal: Option<F>) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send + 'static,
        F: Future<Output = ()>,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        if !self.engine_can_listen() {
            let incoming = self.bind(addr)?;
            return self.run(svc, incoming, signal).await;
        }
        let config = self.config()?;
        let settings = self.call_settings();
        let service = Mutex::new(self.apply_layers(svc));
        let extensions = RequestExtensionsFactory::new();
        let accepts_http1 = settings.accepts_http1;
        let calls = Box::new(move |connection: &ConnectionInfo| {
            let (local_addr, remote_addr) = (connection.local_addr(), connection.remote_addr());
            let service = service.lock().unwrap_or_else(PoisonError::into_inner).clone();
            settings.calls(service, extensions.for_connection(TcpConnectInfo { local_addr, remote_addr }))
        });
        let router = PerConnectionRouter { calls, accepts_http1 };
        let server = engine::server::bind(config, Arc::new(router), &[addr.into()]).await;
        let server = server.map_err(Error::transport)?;
        match signal {
            Some(signal) => server.serve_until(signal).await,
            None => server.serve().await,
        }
        .map_err(Error::transport)
    }

    async fn run<S, I, F, IO, IE, ResBody>(self, svc: S, incoming: I, signal: Option<F>) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send + 'static,
        I: Stream<Item = Result<IO, IE>>,
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
        IE: Into<BoxError>,
        F: Future<Output = ()>,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let config = self.config()?;
        let settings = self.call_settings();
        let service = self.apply_layers(svc);
        let extensions = RequestExtensionsFactory::new();
        let incoming = Incoming::new(incoming).map(move |io: IO| {
            let calls = settings.calls(service.clone(), extensions.for_connection(io.connect_info()));
            (io, Arc::new(calls) as Arc<dyn engine::server::Router>)
        });
        engine::server::serve_routed(config, incoming, signal).await;
        Ok(())
    }
}

/// Creates the router of each connection.
struct PerConnectionRouter {
    calls: Box<dyn Fn(&ConnectionInfo) -> Calls + Send + Sync>,
    accepts_http1: bool,
}

impl engine::server::Router for PerConnectionRouter {
    fn find(&self, _: &[u8]) -> Result<Arc<ServerMethod>, engine::Status> {
        Err(engine::Status::new(engine::Code::Unimplemented, "each connection has its own"))
    }

    fn of_connection(&self, info: &ConnectionInfo) -> Option<Arc<dyn engine::server::Router>> {
        Some(Arc::new((self.calls)(info)))
    }

    fn accepts_http1(&self) -> bool {
        self.accepts_http1
    }
}

impl fmt::Debug for PerConnectionRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PerConnectionRouter")
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;

    /// Checks whether the engine's own listener accepts at the address of `server`.
    async fn check(server: Server, expected: bool) {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = free.local_addr().unwrap();
        drop(free);
        let empty_service =
            tower::service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
        let serving = tokio::spawn(server.clone().serve(addr, empty_service));
        let connected = async {
            while tokio::net::TcpStream::connect(addr).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), connected).await.unwrap();
        let address = engine::ListenAddress::from(addr);
        let listens = engine::server::servers()
            .iter()
            .any(|server| server.listening.iter().any(|(_, listening)| *listening == address));
        assert_eq!(listens, expected, "{server:?}");
        // The address is in use.
        assert!(server.serve(addr, empty_service).await.is_err());
        serving.abort();
    }

    #[tokio::test]
    async fn engine_listens_if_it_supports_the_options() {
        check(Server::builder(), true).await;
        check(Server::builder().tcp_keepalive_interval(Some(Duration::from_secs(1))), true).await;
        check(Server::builder().tcp_nodelay(false), false).await;
        check(Server::builder().tcp_keepalive(Some(Duration::from_secs(60))), false).await;
        check(Server::builder().accept_http1(true), true).await;
    }
}
