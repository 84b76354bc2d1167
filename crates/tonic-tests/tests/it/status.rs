//! Failures of calls, as callers see them.

use std::error::Error as _;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{ShopService, in_memory, order, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::{Channel, Endpoint, Error, Server};
use tonic::{Code, Status};

fn client(shop: ShopService) -> ShopClient<Channel> {
    let router = Server::builder().add_service(ShopServer::new(shop));
    ShopClient::new(in_memory(router, &Endpoint::from_static("http://shop.test")))
}

#[tokio::test]
async fn code_message_details_and_metadata_arrive() {
    let mut metadata = MetadataMap::new();
    metadata.insert("x-host", "127.0.0.1".parse().unwrap());
    metadata.insert_bin("x-name-bin", MetadataValue::from_bytes(b"\0 name \xff"));
    let details = Bytes::from_static(&[0, 1, 255]);
    let status =
        Status::with_details_and_metadata(Code::ResourceExhausted, "zu viele: 10 % ü", details, metadata);
    let sent = status.clone();
    let mut client = client(ShopService::on_buy(move |_| {
        let status = sent.clone();
        async { Err(status) }
    }));
    let received = client.buy(order("")).await.unwrap_err();
    assert_eq!((received.code(), received.message()), (status.code(), status.message()));
    assert_eq!(received.details(), status.details());
    assert_eq!(received.metadata().get("x-host").unwrap(), "127.0.0.1");
    let name = received.metadata().get_bin("x-name-bin").unwrap();
    assert_eq!(&name.to_bytes().unwrap()[..], b"\0 name \xff");
}

#[tokio::test]
async fn stream_ends_with_its_first_failure() {
    let check = async |sent: fn() -> Vec<Result<_, Status>>, count: usize| {
        let mut client = client(ShopService::on_list(move |_| sent()));
        let mut responses = client.list(order("")).await.unwrap().into_inner();
        for _ in 0..count {
            assert_eq!(responses.message().await.unwrap(), Some(order("bread")));
        }
        let status = responses.message().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "foo"));
        assert_eq!(responses.message().await.unwrap(), None);
    };
    check(|| vec![Err(Status::unavailable("foo")), Err(Status::unavailable("bar"))], 0).await;
    check(|| vec![Ok(order("bread")), Err(Status::unavailable("foo"))], 1).await;
}

#[tokio::test]
async fn status_is_derived_from_http_status() {
    let layer = tower::layer::layer_fn(|_| {
        tower::service_fn(async |_: http::Request<Body>| {
            let response = http::Response::builder().status(http::StatusCode::BAD_GATEWAY);
            Ok::<_, std::convert::Infallible>(response.body(Body::empty()).unwrap())
        })
    });
    let server =
        serve(Server::builder().layer(layer).add_service(ShopServer::new(ShopService::default()))).await;
    let mut client = ShopClient::new(server.channel().await);
    let mut responses = client.list(order("")).await.unwrap().into_inner();
    assert_eq!(responses.message().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(responses.message().await.unwrap(), None);
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
    server.stop().await;
}

#[tokio::test]
async fn transport_error_has_its_source() {
    let connector = tower::service_fn(async |_| {
        Err::<TokioIo<tokio::io::DuplexStream>, _>(std::io::Error::other("no way there"))
    });
    let channel = Endpoint::from_static("http://[::]:50051").connect_with_connector_lazy(connector);
    let status = ShopClient::new(channel).list(order("")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let source = status.source().unwrap();
    assert!(source.downcast_ref::<Error>().is_some(), "{source:?}");
}

/// A third-party server starts a response and then goes silent.
#[tokio::test]
async fn response_without_trailers_is_internal() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let (headers_received, proceed) = oneshot::channel();
    tokio::spawn(async move {
        let mut connection = h2::server::handshake(listener.accept().await.unwrap().0).await.unwrap();
        let (_, mut respond) = connection.accept().await.unwrap().unwrap();
        let response = http::Response::builder().header("content-type", "application/grpc").body(()).unwrap();
        let mut stream = respond.send_response(response, false).unwrap();
        tokio::spawn(async move {
            proceed.await.unwrap();
            stream.send_reset(h2::Reason::NO_ERROR);
        });
        while connection.accept().await.is_some() {}
    });
    let mut client = ShopClient::connect(uri).await.unwrap();
    let mut responses = client.list(order("")).await.unwrap().into_inner();
    headers_received.send(()).unwrap();
    // tonic's transport takes this for a regular end and returns UNKNOWN.
    let status = responses.message().await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().contains("NO_ERROR"), "{status:?}");
}
