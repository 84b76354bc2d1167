//! Layers around calls on both sides: tower's, interceptors, routes.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response};
use http_body::Frame;
use thalweg_tonic_tests::pb::bakery_client::BakeryClient;
use thalweg_tonic_tests::pb::bakery_server::BakeryServer;
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::{self, ShopServer};
use thalweg_tonic_tests::{BakeryService, ShopService, in_memory, order, serve};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, StdError};
use tonic::server::NamedService;
use tonic::service::{Routes, RoutesBuilder};
use tonic::transport::{Endpoint, Server};
use tonic::{Code, GrpcMethod, Status};
use tower::{Layer, ServiceBuilder};

fn endpoint() -> Endpoint {
    Endpoint::from_static("http://shop.test")
}

/// A value in the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark(u32);

/// Creates a service that returns the metadata `name` and the mark of the request.
fn reporting(name: &'static str) -> ShopService {
    ShopService::on_buy(move |request| async move {
        let value = request.metadata().get(name).map(|value| value.to_str().unwrap().to_owned());
        let mark = request.extensions().get::<Mark>().map_or(0, |mark| mark.0);
        Ok(tonic::Response::new(order(&format!("{} {mark}", value.unwrap_or_default()))))
    })
}

#[tokio::test]
async fn layers_wrap_a_channel() {
    let router = Server::builder().add_service(ShopServer::new(reporting("x-from")));
    let channel = in_memory(router, &endpoint());
    // Layers of all kinds: of requests, bodies and futures.
    let channel = ServiceBuilder::new()
        .map_request(|mut request: Request<Body>| {
            request.headers_mut().insert("x-from", HeaderValue::from_static("Ada"));
            request
        })
        .map_request(|request: Request<tonic::body::Body>| request.map(Body::new))
        .map_response(|response: Response<Body>| response.map(PassthroughBody))
        .map_err(|error: tonic::transport::Error| StdError::from(error))
        .service(channel);
    let mut client = ShopClient::new(channel);
    assert_eq!(client.buy(order("")).await.unwrap().into_inner(), order("Ada 0"));
    let mut responses = client.list(order("bread")).await.unwrap().into_inner();
    assert_eq!(responses.message().await.unwrap(), Some(order("bread")));
}

/// A third-party body around another.
struct PassthroughBody<B>(B);

impl<B: http_body::Body<Error: Into<StdError>> + Unpin> http_body::Body for PassthroughBody<B> {
    type Data = B::Data;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, StdError>>> {
        Pin::new(&mut self.0).poll_frame(cx).map_err(Into::into)
    }
}

/// A layer that only fulfils tower's requirements: its own errors and bodies, any requests.
#[derive(Clone, Copy)]
struct WrappingLayer;

impl<S> Layer<S> for WrappingLayer {
    type Service = WrappingService<S>;

    fn layer(&self, inner: S) -> WrappingService<S> {
        WrappingService(inner)
    }
}

#[derive(Clone)]
struct WrappingService<S>(S);

impl<S, R, B> Service<R> for WrappingService<S>
where
    S: Service<R, Response = Response<B>, Error: Into<StdError>, Future: Send + 'static>,
{
    type Response = Response<PassthroughBody<B>>;
    type Error = StdError;
    type Future = BoxFuture<Response<PassthroughBody<B>>, StdError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let response = self.0.call(request);
        Box::pin(async { response.await.map(|response| response.map(PassthroughBody)).map_err(Into::into) })
    }
}

#[tokio::test]
async fn layers_wrap_a_server() {
    let router = Server::builder()
        .layer(WrappingLayer)
        .layer(WrappingLayer)
        .add_service(ShopServer::new(reporting("x-from")));
    let server = serve(router).await;
    let mut client = ShopClient::new(server.channel().await);
    assert_eq!(client.buy(order("")).await.unwrap().into_inner(), order(" 0"));
    let orders = || tokio_stream::iter(["a", "b"].map(order));
    assert_eq!(client.collect(orders()).await.unwrap().into_inner(), order("ab"));
    let mut responses = client.haggle(orders()).await.unwrap().into_inner();
    assert_eq!(responses.message().await.unwrap(), Some(order("a")));
    drop((client, responses));
    server.stop().await;
}

#[tokio::test]
async fn interceptors_modify_requests() {
    let shop = ShopServer::with_interceptor(reporting("x-from"), |mut request: tonic::Request<()>| {
        if request.metadata().get("x-from").is_none() {
            return Err(Status::unauthenticated("who are you?"));
        }
        request.extensions_mut().insert(Mark(42));
        Ok(request)
    });
    let channel = in_memory(Server::builder().add_service(shop), &endpoint());
    let refused = ShopClient::new(channel.clone()).buy(order("")).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unauthenticated, "who are you?"));
    let mut client = ShopClient::with_interceptor(channel, |mut request: tonic::Request<()>| {
        let method = request.extensions().get::<GrpcMethod>().unwrap();
        let name = format!("{}/{}", method.service(), method.method());
        request.metadata_mut().insert("x-from", name.parse().unwrap());
        Ok(request)
    });
    assert_eq!(client.buy(order("")).await.unwrap().into_inner(), order("shop.Shop/Buy 42"));
}

/// A hand-written service around a generated one.
#[derive(Clone)]
struct MarkingService<S>(S);

impl<S: Service<Request<Body>>> Service<Request<Body>> for MarkingService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> S::Future {
        request.extensions_mut().insert(Mark(7));
        self.0.call(request)
    }
}

impl<S: NamedService> NamedService for MarkingService<S> {
    const NAME: &'static str = S::NAME;
}

#[tokio::test]
async fn services_wrap_a_service() {
    let router = Server::builder().add_service(MarkingService(ShopServer::new(reporting("x-from"))));
    let mut client = ShopClient::new(in_memory(router, &endpoint()));
    assert_eq!(client.buy(order("")).await.unwrap().into_inner(), order(" 7"));
    assert_eq!(shop_server::SERVICE_NAME, "shop.Shop");
}

#[tokio::test]
async fn requests_have_origin_and_user_agent() {
    let recorded = tower::layer::layer_fn(|inner| RecordingService { inner });
    let router = Server::builder().layer(recorded).add_service(ShopServer::new(reporting("user-agent")));
    let mut server_side = in_memory(
        router,
        &endpoint().origin("https://docs.example:8443".parse().unwrap()).user_agent("my-client").unwrap(),
    );
    let response = ShopClient::new(&mut server_side).buy(order("")).await.unwrap().into_inner().item;
    assert!(
        response.starts_with("my-client grpc-rust-thalweg/") && response.ends_with(" 8443"),
        "{response}"
    );
}

#[derive(Clone)]
struct RecordingService<S> {
    inner: S,
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for RecordingService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> S::Future {
        assert_eq!(request.uri().host(), Some("docs.example"));
        let port = request.uri().port_u16().unwrap();
        request.extensions_mut().insert(Mark(port.into()));
        self.inner.call(request)
    }
}

#[tokio::test]
async fn routes_combine_services() {
    let mut builder = RoutesBuilder::default();
    builder
        .add_service(ShopServer::new(ShopService::default()))
        .add_service(BakeryServer::new(BakeryService));
    // Once as services, once as an axum router with an extra route.
    let mut with_axum = builder.clone().routes();
    let health = axum::routing::get(async || "well");
    *with_axum.axum_router_mut() = std::mem::take(with_axum.axum_router_mut()).route("/health", health);
    for routes in [builder.routes(), with_axum] {
        let server = serve(Server::builder().accept_http1(true).add_routes(routes)).await;
        let channel = server.channel().await;
        let mut shop = ShopClient::new(channel.clone());
        assert_eq!(shop.buy(order("bread")).await.unwrap().into_inner(), order("bread"));
        let mut responses = shop.list(order("bread")).await.unwrap().into_inner();
        assert_eq!(responses.message().await.unwrap(), Some(order("bread")));
        let mut bakery = BakeryClient::new(channel);
        bakery.bake("bread".to_owned()).await.unwrap();
        assert_eq!(bakery.bake("stones".to_owned()).await.unwrap_err().code(), Code::InvalidArgument);
        drop((shop, bakery, responses));
        server.stop().await;
    }
    let without = Server::builder().add_routes(Routes::new(BakeryServer::new(BakeryService)));
    let mut shop = ShopClient::new(in_memory(without, &endpoint()));
    assert_eq!(shop.buy(order("")).await.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn failing_service_returns_its_status() {
    let layer = tower::layer::layer_fn(|_| {
        tower::service_fn(async |_: Request<Body>| Err::<Response<Body>, _>(Status::aborted("not today")))
    });
    let router = Server::builder().layer(layer).add_service(ShopServer::new(ShopService::default()));
    let status = ShopClient::new(in_memory(router, &endpoint())).buy(order("")).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Aborted, "not today"));
}
