//! Routing to services by name: [`Routes`].

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::response::IntoResponse;
use bytes::Bytes;
use http::{Request, Response};
use tower::{Service, ServiceExt};
use vocabulary::Status;
use vocabulary::server::NamedService;

use crate::BoxError;
use crate::body::Body;
use crate::downcast::take_as;

/// Services by name, and optionally an axum router for other paths.
///
/// Calls go directly to the service of their name. Other requests go to the router; without one, they end with
/// UNIMPLEMENTED.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    services: Arc<Vec<NamedRoute>>,
    router: Option<axum::Router>,
}

#[derive(Clone)]
struct NamedRoute {
    name: &'static str,
    service: Arc<dyn CallService>,
}

impl fmt::Debug for NamedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

type BoxedResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// A service with any response type.
trait CallService: Send + Sync {
    fn call(&self, request: Request<Body>) -> BoxedResponseFuture;
    /// Adds the service to a router.
    fn route(&self, router: axum::Router, path: &str) -> axum::Router;
}

struct ErasedRoute<S>(S);

impl<S> CallService for ErasedRoute<S>
where
    S: Service<Request<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    fn call(&self, request: Request<Body>) -> BoxedResponseFuture {
        let mut service = self.0.clone();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        if service.poll_ready(&mut cx).is_ready() {
            // Generated services return a future of this type.
            return match take_as::<BoxedResponseFuture, S::Future>(service.call(request)) {
                Ok(answering) => answering,
                Err(answering) => Box::pin(async move { answering.await.map(response) }),
            };
        }
        Box::pin(async move { service.oneshot(request).await.map(response) })
    }

    fn route(&self, router: axum::Router, path: &str) -> axum::Router {
        let service = self.0.clone().map_request(|request: Request<axum::body::Body>| request.map(Body::new));
        router.route_service(path, service)
    }
}

fn response<R: IntoResponse + 'static>(response: R) -> Response<Body> {
    match take_as::<Response<Body>, R>(response) {
        Ok(response) => response,
        Err(response) => response.into_response().map(Body::new),
    }
}

/// Builder of [`Routes`].
#[derive(Clone, Debug, Default)]
pub struct RoutesBuilder {
    routes: Option<Routes>,
}

impl RoutesBuilder {
    /// Adds a service.
    pub fn add_service<S>(&mut self, svc: S) -> &mut Self
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        self.routes.get_or_insert_default().add(svc);
        self
    }

    /// Returns the routes to the added services.
    pub fn routes(self) -> Routes {
        self.routes.unwrap_or_default()
    }
}

impl Routes {
    /// Creates routes to one service.
    pub fn new<S>(svc: S) -> Self
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        Self::default().add_service(svc)
    }

    /// Returns a builder without services.
    pub fn builder() -> RoutesBuilder {
        RoutesBuilder::default()
    }

    /// Adds a service, replacing one of the same name.
    #[must_use]
    pub fn add_service<S>(mut self, svc: S) -> Self
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        self.add(svc);
        self
    }

    fn add<S>(&mut self, svc: S)
    where
        S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        let services = Arc::make_mut(&mut self.services);
        services.retain(|named| named.name != S::NAME);
        services.push(NamedRoute { name: S::NAME, service: Arc::new(ErasedRoute(svc)) });
    }

    /// Does work that is needed only once; the serving functions call it.
    #[must_use]
    pub fn prepare(self) -> Self {
        Self { router: self.router.map(|router| router.with_state(())), ..self }
    }

    /// Converts the routes to an axum router.
    pub fn into_axum_router(mut self) -> axum::Router {
        std::mem::take(self.axum_router_mut())
    }

    /// Returns the axum router and moves all services into it. From then on their calls pass through the router, so
    /// changes to it apply to them, too.
    pub fn axum_router_mut(&mut self) -> &mut axum::Router {
        let services = std::mem::take(&mut self.services);
        let router = self.router.get_or_insert_with(|| axum::Router::new().fallback(unimplemented));
        for NamedRoute { name, service } in &*services {
            *router = service.route(std::mem::take(router), &format!("/{name}/{{*rest}}"));
        }
        router
    }

    fn find(&self, path: &str) -> Option<&NamedRoute> {
        let path = path.strip_prefix('/')?;
        self.services
            .iter()
            .find(|named| path.strip_prefix(named.name).is_some_and(|method| method.starts_with('/')))
    }
}

impl From<Routes> for RoutesBuilder {
    fn from(routes: Routes) -> Self {
        Self { routes: Some(routes) }
    }
}

impl From<axum::Router> for RoutesBuilder {
    fn from(router: axum::Router) -> Self {
        Self { routes: Some(router.into()) }
    }
}

impl From<axum::Router> for Routes {
    fn from(router: axum::Router) -> Self {
        Self { router: Some(router), ..Self::default() }
    }
}

async fn unimplemented() -> Response<Body> {
    Status::unimplemented("").into_http()
}

impl<B> Service<Request<B>> for Routes
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = RoutesFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> RoutesFuture {
        if let Some(named) = self.find(request.uri().path()) {
            return RoutesFuture(RoutesFutureKind::Service(named.service.call(request.map(Body::new))));
        }
        RoutesFuture(match &mut self.router {
            Some(router) => RoutesFutureKind::Router(Box::new(router.call(request.map(Body::new)))),
            None => RoutesFutureKind::Unimplemented,
        })
    }
}

/// A pending response.
pub struct RoutesFuture(RoutesFutureKind);

enum RoutesFutureKind {
    Service(BoxedResponseFuture),
    Router(Box<axum::routing::future::RouteFuture<Infallible>>),
    Unimplemented,
}

impl Future for RoutesFuture {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            RoutesFutureKind::Service(answering) => answering.as_mut().poll(cx),
            RoutesFutureKind::Router(answering) => {
                let Ok(response) = ready!(Pin::new(answering).poll(cx));
                Poll::Ready(Ok(response.map(Body::new)))
            }
            RoutesFutureKind::Unimplemented => Poll::Ready(Ok(Status::unimplemented("").into_http())),
        }
    }
}

impl fmt::Debug for RoutesFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutesFuture").finish_non_exhaustive()
    }
}
