//! What serves: from a server that is set up, and a service, to calls.

use std::future::{Future, Pending};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use thalweg_engine as engine;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::Connected;
use tower::Service;
use tower::layer::Layer;

use super::builder::Server;
use super::connect_info::Telling;
use super::connection::Calls;
use super::http1;
use super::incoming::Incoming;
use crate::transport::error::{BoxError, Error};

impl<L> Server<L> {
    /// Serves `svc`, whatever is called, at `addr` until the process ends.
    ///
    /// # Errors
    /// When the address can't be had, or TLS can't be set up.
    pub async fn serve<S, ResBody>(self, addr: SocketAddr, svc: S) -> Result<(), Error>
    where
        L: Layer<S>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send + 'static,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let incoming = self.bind(addr)?;
        self.serve_with_incoming(svc, incoming).await
    }

    /// Serves `svc`, whatever is called, at `addr` until `signal` is ready, and ends the connections gracefully then.
    ///
    /// # Errors
    /// When the address can't be had, or TLS can't be set up.
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
        let incoming = self.bind(addr)?;
        self.serve_with_incoming_shutdown(svc, incoming, signal).await
    }

    /// Serves `svc`, whatever is called, on connections from anywhere until there come no more; those that there are go
    /// on then.
    ///
    /// # Errors
    /// When TLS can't be set up.
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

    /// Serves `svc`, whatever is called, on connections from anywhere until there come no more and all are over, or
    /// until `signal` is ready: `incoming` is dropped then, and the connections are ended gracefully.
    ///
    /// # Errors
    /// When TLS can't be set up.
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
        let around = self.around().clone();
        let service = self.layered(svc);
        let telling = Telling::new();
        let connection = move |io: IO| {
            let told = telling.of(io.connect_info());
            (io, around.service(service.clone()), told)
        };
        let incoming = Incoming::new(incoming).map(connection);
        if self.looks_for_http1() {
            http1::serve(config, incoming, signal).await;
            return Ok(());
        }
        let incoming = incoming.map(|(io, service, told)| {
            (io, Arc::new(Calls::new(service, told)) as Arc<dyn engine::server::Router>)
        });
        engine::server::serve_routed(config, incoming, signal).await;
        Ok(())
    }
}
