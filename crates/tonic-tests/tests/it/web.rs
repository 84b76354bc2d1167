//! gRPC-Web and HTTP/1.1 next to gRPC.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use thalweg_tonic_tests::pb::Order;
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{RunningServer, ShopService, by_package, order, serve, within_a_minute};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tonic::transport::Server;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Code, Status};
use tonic_web::GrpcWebLayer;

/// Creates a service that rejects stones.
fn shop() -> ShopServer<ShopService> {
    ShopServer::new(ShopService::on_buy(async |request: tonic::Request<Order>| {
        match request.get_ref().item.as_str() {
            "stones" => Err(Status::invalid_argument("no stones here")),
            _ => Ok(tonic::Response::new(request.into_inner())),
        }
    }))
}

async fn serve_web(accepts_http1: bool) -> RunningServer {
    let server = Server::builder().accept_http1(accepts_http1);
    serve(server.layer(GrpcWebLayer::new()).add_service(shop())).await
}

/// Encodes a message with its prefix.
fn encode_frame(order: &Order) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(order.encoded_len()).unwrap());
    order.encode(&mut frame).unwrap();
    frame.freeze()
}

fn request(address: SocketAddr, kind: &str, method: &str, body: Bytes) -> Request<Full<Bytes>> {
    let body = if kind == "grpc-web-text" { STANDARD.encode(body).into() } else { body };
    Request::post(format!("http://{address}/shop.Shop/{method}"))
        .header("host", address.to_string())
        .header("content-type", format!("application/{kind}"))
        .header("accept", format!("application/{kind}"))
        .header("origin", "http://shop.example")
        .body(Full::new(body))
        .unwrap()
}

/// Sends a request over a new connection.
async fn send(address: SocketAddr, request: Request<Full<Bytes>>, is_http2: bool) -> Response<Incoming> {
    let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
    if is_http2 {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        return sender.send_request(request).await.unwrap();
    }
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await.unwrap()
}

/// Reads the messages and the trailers of a response.
async fn read(response: Response<Incoming>, kind: &str) -> (Vec<Order>, String) {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], format!("application/{kind}+proto"));
    let mut body = response.into_body().collect().await.unwrap().to_bytes();
    if kind == "grpc-web-text" {
        // Each chunk was encoded separately.
        let pieces = str::from_utf8(&body).unwrap().split_inclusive("==").flat_map(|part| {
            part.split_inclusive('=').map(|piece| STANDARD.decode(piece)).collect::<Vec<_>>()
        });
        body = match STANDARD.decode(&body) {
            Ok(whole) => whole.into(),
            Err(_) => pieces.flat_map(Result::unwrap).collect(),
        };
    }
    let mut orders = Vec::new();
    loop {
        let (kind, len) = (body.get_u8(), body.get_u32());
        let frame = body.split_to(len as usize);
        if kind == 0x80 {
            assert!(body.is_empty());
            return (orders, String::from_utf8(frame.into()).unwrap());
        }
        orders.push(Order::decode(frame).unwrap());
    }
}

#[tokio::test]
async fn grpc_web_works_in_both_encodings_and_http_versions() {
    let server = serve_web(true).await;
    for kind in ["grpc-web", "grpc-web-text"] {
        for is_http2 in [false, true] {
            let call = async |method: &str, item: &str| {
                let request = request(server.address, kind, method, encode_frame(&order(item)));
                send(server.address, request, is_http2).await
            };
            let (orders, trailers) = read(call("Buy", "bread").await, kind).await;
            assert_eq!((orders, trailers.as_str()), (vec![order("bread")], "grpc-status:0\r\n"));
            let (orders, trailers) = read(call("List", "bread").await, kind).await;
            assert_eq!((orders, trailers.as_str()), (vec![order("bread"); 2], "grpc-status:0\r\n"));
            // A failure without messages has headers only.
            let failed = call("Buy", "stones").await;
            assert_eq!(failed.headers()["grpc-status"], "3");
            let message = by_package("no%20stones%20here", "no stones here");
            assert_eq!(failed.headers()["grpc-message"], message);
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn grpc_is_unaffected_by_grpc_web() {
    for layered in [false, true] {
        for accepts_http1 in [false, true] {
            let server = if layered {
                serve_web(accepts_http1).await
            } else {
                serve(Server::builder().accept_http1(accepts_http1).add_service(shop())).await
            };
            let mut client = ShopClient::connect(server.uri()).await.unwrap();
            assert_eq!(client.buy(order("bread")).await.unwrap().into_inner(), order("bread"));
            let failed = client.buy(order("stones")).await.unwrap_err();
            assert_eq!((failed.code(), failed.message()), (Code::InvalidArgument, "no stones here"));
            let orders = || tokio_stream::iter(["a", "b"].map(order));
            assert_eq!(client.collect(orders()).await.unwrap().into_inner(), order("ab"));
            let mut responses = client.list(order("a")).await.unwrap().into_inner();
            let mut echoes = client.haggle(orders()).await.unwrap().into_inner();
            for item in ["a", "b"] {
                assert_eq!(responses.message().await.unwrap(), Some(order("a")));
                assert_eq!(echoes.message().await.unwrap(), Some(order(item)));
            }
            assert_eq!((responses.message().await.unwrap(), echoes.message().await.unwrap()), (None, None));
            drop((client, responses, echoes));
            server.stop().await;
        }
    }
}

#[tokio::test]
async fn http1_is_rejected_by_default() {
    let server = serve_web(false).await;
    let io = TokioIo::new(TcpStream::connect(server.address).await.unwrap());
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let request = request(server.address, "grpc-web", "Buy", encode_frame(&order("bread")));
    assert!(sender.send_request(request).await.is_err());
    server.stop().await;
}

#[tokio::test]
async fn http1_handlers_have_connect_info() {
    let shop = ShopService::on_buy(async |request: tonic::Request<Order>| {
        assert!(request.extensions().get::<TcpConnectInfo>().is_some());
        let (local, remote) = (request.local_addr().unwrap(), request.remote_addr().unwrap());
        Ok(tonic::Response::new(order(&format!("{local} {}", remote.ip()))))
    });
    let mut server = Server::builder().accept_http1(true).layer(GrpcWebLayer::new());
    let server = serve(server.add_service(ShopServer::new(shop))).await;
    let call = request(server.address, "grpc-web", "Buy", encode_frame(&order("")));
    let (orders, _) = read(send(server.address, call, false).await, "grpc-web").await;
    assert_eq!(orders, [order(&format!("{} 127.0.0.1", server.address))]);
    server.stop().await;
}

/// A connection carries several requests, and ends with the server, but not before its call.
#[tokio::test]
async fn http1_connections_end_gracefully() {
    let (started, proceed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (on_start, on_proceed) = (Arc::clone(&started), Arc::clone(&proceed));
    let shop = ShopService::on_buy(move |request| {
        let (on_start, on_proceed) = (Arc::clone(&on_start), Arc::clone(&on_proceed));
        async move {
            on_start.notify_one();
            on_proceed.notified().await;
            Ok(tonic::Response::new(request.into_inner()))
        }
    });
    let mut server = Server::builder().accept_http1(true).layer(GrpcWebLayer::new());
    let server = serve(server.add_service(ShopServer::new(shop))).await;
    let address = server.address;
    let request_for = |item: &str| request(address, "grpc-web", "Buy", encode_frame(&order(item)));
    // A silent connection, one that starts like HTTP/2, and an idle one.
    let mut silent_connection = TcpStream::connect(address).await.unwrap();
    let mut partial_preface = TcpStream::connect(address).await.unwrap();
    partial_preface.write_all(b"PRI * HTTP").await.unwrap();
    let (mut idle, connection) =
        http1::handshake(TokioIo::new(TcpStream::connect(address).await.unwrap())).await.unwrap();
    let idle_connection = tokio::spawn(connection);
    proceed.notify_one();
    read(idle.send_request(request_for("a")).await.unwrap(), "grpc-web").await;
    proceed.notify_one();
    read(idle.send_request(request_for("b")).await.unwrap(), "grpc-web").await;
    within_a_minute(started.notified()).await;
    let call = tokio::spawn(send(address, request_for("bread"), false));
    within_a_minute(started.notified()).await;
    let stopping = tokio::spawn(server.stop());
    // These have nothing to finish.
    assert_eq!(silent_connection.read(&mut [0; 8]).await.unwrap_or_default(), 0);
    assert_eq!(partial_preface.read(&mut [0; 8]).await.unwrap_or_default(), 0);
    idle_connection.await.unwrap().unwrap();
    assert!(!stopping.is_finished());
    proceed.notify_one();
    let (orders, _) = read(call.await.unwrap(), "grpc-web").await;
    assert_eq!(orders, [order("bread")]);
    within_a_minute(stopping).await.unwrap();
}

#[tokio::test]
async fn http1_connections_have_a_maximum_age() {
    let server = Server::builder().accept_http1(true).max_connection_age(Duration::from_millis(100));
    let server = serve(server.layer(GrpcWebLayer::new()).add_service(shop())).await;
    let io = TokioIo::new(TcpStream::connect(server.address).await.unwrap());
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    let connection = tokio::spawn(connection);
    let call = request(server.address, "grpc-web", "Buy", encode_frame(&order("bread")));
    read(sender.send_request(call).await.unwrap(), "grpc-web").await;
    within_a_minute(connection).await.unwrap().unwrap();
    server.stop().await;
}
