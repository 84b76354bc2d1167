//! What serves: from a server that is set up, and a service, to calls.

use std::future::{Future, pending};
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

    /// Serves `svc`, whatever is called, on connections from anywhere until there come no more.
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
        self.serve_with_incoming_shutdown(svc, incoming, pending()).await
    }

    /// Serves `svc`, whatever is called, on connections from anywhere until there come no more, or until `signal` is
    /// ready: `incoming` is dropped then, and the connections are ended gracefully.
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
        let config = self.config()?;
        let around = self.around().clone();
        let service = self.layered(svc);
        let telling = Telling::new();
        let incoming = incoming.filter_map(|accepted| match accepted {
            Ok(io) => {
                let calls = Calls::new(around.service(service.clone()), telling.of(io.connect_info()));
                Some((io, Arc::new(calls) as Arc<dyn engine::server::Router>))
            }
            Err(error) => {
                let error: BoxError = error.into();
                tracing::debug!(error, "a connection can't be accepted");
                None
            }
        });
        engine::server::serve_routed(config, incoming, signal).await;
        Ok(())
    }
}
