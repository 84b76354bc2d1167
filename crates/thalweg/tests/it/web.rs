//! One port for all: gRPC, Connect, gRPC-Web and JSON, over HTTP/2 and HTTP/1.1, on the same services.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thalweg::interceptor::head;
use thalweg::server::BindError;
use thalweg::web::Web;
use thalweg::{Server, ServiceOptions, Status};
use thalweg_engine::ChannelConfig;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::http::{http1_by, http2_by};
use crate::support::{Echo, connect, echo, raw, start, until};

/// Sends a request and reads until the connection closes.
async fn http1(target: &str, head: &str, body: &[u8]) -> String {
    let response = http1_by(TcpStream::connect(target).await.expect("a server"), head, body).await;
    String::from_utf8_lossy(&response).into_owned()
}

/// Returns status and body of a response over HTTP/2.
async fn http2(target: &str, method: &str, path: &str, content_type: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let channel = thalweg_engine::Channel::new(target, ChannelConfig::default()).expect("a target");
    http2_by(&channel, method, path, content_type, body).await
}

#[tokio::test]
async fn one_port_serves_all_protocols() {
    let target = start(Server::builder().add_service(Echo::default()).web(Web::new())).await;
    let channel = connect(&target).await;
    assert_eq!(echo(&channel, raw("by gRPC")).await.expect("a response").0, "by gRPC");

    let post = "POST /test.Echo/Echo HTTP/1.1\r\ncontent-type: application/proto\r\nx-echo: a";
    let response = http1(&target, post, b"by Connect").await;
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nby Connect"),
        "{response}"
    );
    assert!(response.contains("\r\nx-echo: a\r\n"), "{response}");
    let by_h2 = http2(&target, "POST", "/test.Echo/Echo", "application/proto", b"by HTTP/2").await;
    assert_eq!(by_h2, (200, b"by HTTP/2".to_vec()));

    let stream = b"\0\0\0\0\x01a\0\0\0\0\x02bc";
    let counted = http2(&target, "POST", "/test.Echo/Count", "application/connect+proto", stream).await;
    assert_eq!(counted, (200, b"\0\0\0\0\x032 3\x02\0\0\0\x02{}".to_vec()));
    let web = http2(&target, "POST", "/test.Echo/Chat", "application/grpc-web", stream).await;
    assert_eq!(web, (200, [&stream[..], b"\x80\0\0\0\x10grpc-status: 0\r\n"].concat()));
    let response = http1(&target, "GET / HTTP/1.1", b"").await;
    assert!(response.contains("test.Echo"), "{response}");
    assert_eq!(http2(&target, "GET", "/nothing", "", b"").await.0, 404);
}

#[tokio::test]
async fn interceptors_see_calls_of_all_protocols() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let counting = head(move |request| {
        counter.fetch_add(1, Ordering::SeqCst);
        if request.metadata().contains_key("x-refused") {
            return Err(Status::permission_denied("not you"));
        }
        Ok(request)
    });
    // The order of the builder's calls does not matter.
    let server = Server::builder().web(Web::new()).interceptor(counting).add_service(Echo::default());
    let target = start(server).await;
    let post = "POST /test.Echo/Echo HTTP/1.1\r\ncontent-type: application/proto";
    assert!(http1(&target, post, b"a").await.ends_with("\r\n\r\na"));
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    let rejected = http1(&target, &format!("{post}\r\nx-refused: 1"), b"a").await;
    assert!(rejected.starts_with("HTTP/1.1 403 "), "{rejected}");
    assert!(rejected.ends_with(r#"{"code":"permission_denied","message":"not you"}"#), "{rejected}");
    let (_, stream) = http2(&target, "POST", "/test.Echo/Chat", "application/connect+proto", b"").await;
    assert_eq!((stream, seen.load(Ordering::SeqCst)), (b"\x02\0\0\0\x02{}".to_vec(), 3));
}

#[tokio::test]
async fn size_limits_apply_to_all_protocols() {
    let mut options = ServiceOptions::default();
    options.max_decoding_message_size = 10;
    let target =
        start(Server::builder().add_service(Echo { options, ..Echo::default() }).web(Web::new())).await;
    let post = "POST /test.Echo/Echo HTTP/1.1\r\ncontent-type: application/proto";
    assert!(http1(&target, post, &[b'a'; 10]).await.starts_with("HTTP/1.1 200 "));
    let rejected = http1(&target, post, &[b'a'; 11]).await;
    assert!(rejected.starts_with("HTTP/1.1 429 ") && rejected.contains("resource_exhausted"), "{rejected}");
}

#[tokio::test]
async fn closed_connection_cancels_handler() {
    let service = Echo::default();
    let cancelled = Arc::clone(&service.cancelled);
    let target = start(Server::builder().add_service(service).web(Web::new())).await;
    let mut io = TcpStream::connect(&target).await.expect("a server");
    let head = "POST /test.Echo/Echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/proto\r\n\
                content-length: 5\r\n\r\nsleep";
    io.write_all(head.as_bytes()).await.expect("the stream is open");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(cancelled.load(Ordering::SeqCst), 0);
    drop(io);
    until(|| cancelled.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn deadlines_apply_to_all_protocols() {
    let target = start(Server::builder().add_service(Echo::default()).web(Web::new())).await;
    let post = "POST /test.Echo/Echo HTTP/1.1\r\ncontent-type: application/proto\r\nconnect-timeout-ms: 50";
    let late = http1(&target, post, b"sleep").await;
    assert!(late.starts_with("HTTP/1.1 504 ") && late.contains("deadline_exceeded"), "{late}");
}

#[tokio::test]
async fn invalid_descriptors_are_an_error_at_start() {
    let server = Server::builder().web(Web::new().descriptors(&b"\xff"[..]));
    let address = "127.0.0.1:0".parse().expect("an address");
    let error = server.bind(&[address]).await.expect_err("no descriptors");
    assert!(matches!(error, BindError::Fallback(_)), "{error}");
    let expected = "failed to set up protocols other than gRPC: invalid descriptors: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}
