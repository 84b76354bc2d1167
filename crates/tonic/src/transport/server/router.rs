//! Servers with services: [`Router`].

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;

use crate::body::Body;
use crate::service::Routes;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_stream::Stream;
use tower::Service;
use tower::layer::Layer;
use tower::layer::util::Identity;
use vocabulary::server::NamedService;
use vocabulary::transport::server::Connected;

use super::builder::Server;
use crate::transport::error::{BoxError, Error};

/// A server and its services. Calls of other services end with UNIMPLEMENTED.
#[derive(Clone, Debug)]
pub struct Router<L = Identity> {
    server: Server<L>,
    routes: Routes,
}

impl<L: Clone> Server<L> {
    /// Adds a service and returns a router, which takes further services.
    pub fn add_service<S>(&mut self, svc: S) -> Router<L>
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        self.add_routes(Routes::new(svc))
    }

    /// Adds a service, if it is `Some`, and returns a router.
    pub fn add_optional_service<S>(&mut self, svc: Option<S>) -> Router<L>
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        self.add_routes(svc.map(Routes::new).unwrap_or_default())
    }

    /// Adds all services of `routes`.
    pub fn add_routes(&mut self, routes: Routes) -> Router<L> {
        Router { server: self.clone(), routes }
    }
}

impl<L> Router<L> {
    /// Adds a service.
    pub fn add_service<S>(self, svc: S) -> Self
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        Self { routes: self.routes.add_service(svc), ..self }
    }

    /// Adds a service if it is `Some`.
    pub fn add_optional_service<S>(self, svc: Option<S>) -> Self
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        match svc {
            Some(svc) => self.add_service(svc),
            None => self,
        }
    }

    /// Serves at `addr` until the process ends.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound or TLS cannot be set up.
    pub async fn serve<ResBody>(self, addr: SocketAddr) -> Result<(), Error>
    where
        L: Layer<Routes> + Clone,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.server.serve(addr, self.routes.prepare()).await
    }

    /// Serves at `addr` until `signal` completes, then shuts down gracefully.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound or TLS cannot be set up.
    pub async fn serve_with_shutdown<F: Future<Output = ()>, ResBody>(
        self,
        addr: SocketAddr,
        signal: F,
    ) -> Result<(), Error>
    where
        L: Layer<Routes>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.server.serve_with_shutdown(addr, self.routes.prepare(), signal).await
    }

    /// Serves the connections from `incoming` until it ends.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up.
    pub async fn serve_with_incoming<I, IO, IE, ResBody>(self, incoming: I) -> Result<(), Error>
    where
        I: Stream<Item = Result<IO, IE>>,
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
        IE: Into<BoxError>,
        L: Layer<Routes>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.server.serve_with_incoming(self.routes.prepare(), incoming).await
    }

    /// Serves the connections from `incoming` until it ends or `signal` completes. Then drops `incoming` and shuts the
    /// connections down gracefully.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up.
    pub async fn serve_with_incoming_shutdown<I, IO, IE, F, ResBody>(
        self,
        incoming: I,
        signal: F,
    ) -> Result<(), Error>
    where
        I: Stream<Item = Result<IO, IE>>,
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
        IE: Into<BoxError>,
        F: Future<Output = ()>,
        L: Layer<Routes>,
        L::Service: Service<Request<Body>, Response = Response<ResBody>> + Clone + Send + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + Send,
        ResBody: http_body::Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.server.serve_with_incoming_shutdown(self.routes.prepare(), incoming, signal).await
    }
}
