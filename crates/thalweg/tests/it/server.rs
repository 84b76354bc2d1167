//! Servers: listeners, requests other than gRPC, messages that cannot be encoded.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::support::peer::{Peer, REQUEST, client_of};
use crate::support::{ECHO, Echo, Receiver, chat, connect, echo, items, raw, serve, soon};
use thalweg::server::{Methods, Service};
use thalweg::{
    CallOptions, Code, DecodeError, ListenAddress, Message, Raw, Request, Response, ServiceOptions, Status,
    Streaming,
};
use thalweg_engine::http2::frame::Kind;

#[tokio::test]
async fn non_grpc_requests_get_http_errors() {
    let check =
        async |method: &str, path: &str, content_type: &str, expected: &[&str], expected_body: &str| {
            let mut peer = client_of(Echo::default()).await;
            let fields = [
                (":method", method),
                (":scheme", "http"),
                (":path", path),
                (":authority", "test"),
                ("content-type", content_type),
            ];
            peer.headers(1, true, &fields).send().await;
            let headers = soon(peer.next_of(Kind::Headers)).await;
            let text = headers.text();
            for part in expected {
                assert!(text.contains(part), "{method} {path}: {part} is not in\n{text}");
            }
            if expected_body.is_empty() {
                assert!(headers.end_stream, "{method} {path}");
            } else {
                let body = soon(peer.next_of(Kind::Data)).await.text();
                assert!(body.contains(expected_body), "{method} {path}: {body}");
            }
        };
    let html = "text/html";
    check("GET", "/", html, &[":status: 200", "content-type: text/plain"], "This is a gRPC server").await;
    check("HEAD", "/", html, &[":status: 200", "content-length: "], "").await;
    check("GET", "/test.Echo/Echo", html, &[":status: 405", "allow: POST"], "POST").await;
    check("POST", "/test.Echo/Echo", html, &[":status: 415"], "application/grpc").await;
    check("OPTIONS", "*", html, &[":status: 400"], "slash").await;
    let grpc = "application/grpc";
    check("POST", "/test.Echo/Nothing", grpc, &[":status: 200", "grpc-status: 12"], "").await;
    check("POST", "/", grpc, &["grpc-status: 12", "grpc-message: malformed method name"], "").await;
    check("POST", "/test.Echo/Echo", grpc, &["grpc-status: 12", "received none"], "").await;
    check("POST", "/test.Echo/Echo", "application/grpc+proto", &["grpc-status: 12"], "").await;
}

#[tokio::test]
async fn rejected_calls_release_their_stream() {
    let mut peer = client_of(Echo::default()).await;
    let unknown = REQUEST.iter().map(|&(name, value)| match name {
        ":path" => (name, "/test.Echo/Nothing"),
        _ => (name, value),
    });
    let unknown: Vec<_> = unknown.collect();
    // Many more than the concurrency limit; their bodies arrive after the response.
    for call in 0..600 {
        let stream = 2 * call + 1;
        peer.headers(stream, false, &unknown).send().await;
        assert!(soon(peer.next_of(Kind::Headers)).await.text().contains("grpc-status: 12"));
        assert_eq!(soon(peer.next_of(Kind::RstStream)).await.stream, stream);
        peer.message(stream, true, b"late").send().await;
    }
    peer.headers(1201, false, REQUEST).message(1201, true, b"x").send().await;
    assert_eq!(soon(peer.next_of(Kind::Data)).await.payload[5..], *b"x");
}

#[tokio::test]
async fn server_listens_on_several_addresses() {
    let path = temporary("listeners");
    let name = format!("thalweg-test-{}", std::process::id());
    let addresses =
        ["127.0.0.1:0".to_owned(), format!("unix:{}", path.display()), format!("unix-abstract:{name}")];
    let addresses: Vec<ListenAddress> =
        addresses.iter().map(|address| address.parse().expect("an address")).collect();
    let server = thalweg::Server::builder().add_service(Echo::default());
    let server = server.bind(&addresses).await.expect("free addresses");
    let targets: Vec<_> = server.local_addresses().iter().map(ToString::to_string).collect();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
    for target in &targets {
        let channel = connect(target).await;
        assert_eq!(echo(&channel, raw("x")).await.expect(target), raw("x"), "{target}");
    }
    stop.send(()).expect("it serves");
    soon(serving).await.expect("no panic").expect("a clean end");
    assert!(!path.exists(), "the socket's file goes with the server");
}

#[tokio::test]
async fn socket_file_is_replaced_and_removed() {
    let bind = async |path: &PathBuf| {
        let address = format!("unix:{}", path.display()).parse().expect("an address");
        thalweg::Server::builder().bind(&[address]).await.map_err(|error| error.to_string())
    };
    // A socket left by a killed process.
    let path = temporary("stale");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a new path"));
    assert!(path.exists());
    let first = bind(&path).await.expect("nobody listens there");
    let error = bind(&path).await.expect_err("the first listens there");
    assert!(error.contains("in use by another process") && error.contains("stale"), "{error}");
    drop(first);
    assert!(!path.exists());

    let path = temporary("file");
    std::fs::write(&path, "precious").expect("a file");
    bind(&path).await.expect_err("a file is no stale socket");
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "precious");
    std::fs::remove_file(&path).expect("a file");
}

#[tokio::test]
async fn unavailable_address_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|at| (at.to_string(), taken)).expect("bound");
    let path = temporary("second");
    let addresses =
        [format!("unix:{}", path.display()), taken.0.clone()].map(|it| it.parse().expect("an address"));
    let error = thalweg::Server::builder().bind(&addresses).await.expect_err("taken").to_string();
    assert!(error.contains(&taken.0) && error.contains("in use by another process"), "{error}");
    assert!(!path.exists(), "what had been bound before is given back");
}

#[tokio::test]
async fn serve_binds_and_serves() {
    // A unique address of this test identifies its server.
    let ip = IpAddr::from([127, 0, 13, 1]);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = thalweg::Server::builder().add_service(Echo::default());
    let stopped = async move { stopped.await.unwrap_or(()) };
    let serving = tokio::spawn(server.serve_with_shutdown(SocketAddr::new(ip, 0), stopped));
    let target = soon(async {
        loop {
            let servers = thalweg::inventory::servers().into_iter();
            let mut listening = servers.flat_map(|server| server.listening).map(|(_, at)| at.to_string());
            match listening.find(|at| at.starts_with(&ip.to_string())) {
                Some(target) => return target,
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    let channel = connect(&target).await;
    assert_eq!(echo(&channel, raw("x")).await.expect("a response"), raw("x"));

    let taken = target.parse().expect("a socket's address");
    let error = thalweg::Server::builder().serve(taken).await.expect_err("taken").to_string();
    assert!(error.contains(&target) && error.contains("in use by another process"), "{error}");

    stop.send(()).expect("it serves");
    soon(serving).await.expect("no panic").expect("a clean end");
}

/// The server's sweep releases memory of idle connections after two of its intervals.
#[tokio::test(start_paused = true)]
async fn call_continues_after_idle_connection() {
    let channel = connect(&serve(Echo::default()).await).await;
    let (requests, source) = tokio::sync::mpsc::unbounded_channel();
    let mut responses = chat(&channel, Receiver(source)).await.expect("a stream");
    for message in ["first", "second"] {
        tokio::time::sleep(Duration::from_secs(5)).await;
        requests.send(raw(message)).expect("open");
        assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw(message)));
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    drop(requests);
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
    assert_eq!(echo(&channel, raw("x")).await.expect("a response"), raw("x"));
}

/// A message that breaks the contract of [`Message`] if its first byte says so.
struct Faulty(&'static [u8]);

impl Message for Faulty {
    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self.0.first() {
            Some(b'p') => {
                out.push(b'p');
                panic!("asked to");
            }
            Some(b's') => out.push(b's'),
            Some(b'l') => out.extend_from_slice(&[b'l'; 1000]),
            _ => out.extend_from_slice(self.0),
        }
    }

    fn decode(wire: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self(match wire {
            b"panic" => b"panic",
            b"short" => b"short",
            b"long" => b"long",
            _ => b"ok",
        }))
    }
}

struct FaultyService;

impl Service for FaultyService {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let service = Arc::new(self);
        let options = ServiceOptions::default();
        methods.unary("Echo", &service, &options, async |_, request: Request<Faulty>| {
            Ok(Response::new(request.into_inner()))
        });
        methods.bidi_streaming("Chat", &service, &options, async |_, request: Request<Streaming<Faulty>>| {
            Ok(Response::new(request.into_inner()))
        });
    }
}

#[tokio::test]
async fn unencodable_response_ends_its_call() {
    let channel = connect(&serve(FaultyService).await).await;
    let other_call = tokio::spawn({
        let channel = channel.clone();
        async move { channel.unary::<Raw, Raw>(&ECHO, Request::new(raw("ok")), &CallOptions::default()).await }
    });
    for order in ["panic", "short", "long"] {
        let status = echo(&channel, raw(order)).await.expect_err(order);
        assert_eq!(status.code(), Code::Internal, "{order}");
        assert_eq!(echo(&channel, raw("ok")).await.expect("the connection is whole"), raw("ok"), "{order}");
    }
    soon(other_call).await.expect("no panic").expect("a response");
    let mut responses = chat(&channel, items(vec![raw("ok"), raw("panic")])).await.expect("a stream");
    assert_eq!(soon(responses.message()).await.expect("the first"), Some(raw("ok")));
    let status = soon(responses.message()).await.expect_err("the second panics");
    assert_eq!((status.code(), status.message()), (Code::Internal, "encoding the message panicked"));
}

#[tokio::test]
async fn unencodable_request_ends_its_call() {
    let channel = connect(&serve(Echo::default()).await).await;
    let options = CallOptions::default();
    for (order, expected) in [
        ("panic", "encoding the message panicked"),
        ("short", "the message announced 5 bytes but encoded 1"),
        ("long", "the message announced 4 bytes but encoded 1000"),
    ] {
        let message = Faulty::decode(order.as_bytes()).expect("an order");
        let outcome: Result<Response<Raw>, Status> =
            channel.unary(&ECHO, Request::new(message), &options).await;
        let status = outcome.expect_err(order);
        assert_eq!(status.code(), Code::Internal);
        let detail = status.message().strip_prefix(expected).expect("why");
        assert!(detail.starts_with(" [/test.Echo/Echo to ") && detail.ends_with(", not sent]"), "{detail}");
        assert_eq!(channel.lanes()[0].in_flight, 0);
        assert_eq!(echo(&channel, raw("ok")).await.expect("the connection is whole"), raw("ok"), "{order}");
    }
    let status = match soon(chat(&channel, items(vec![Faulty(b"ok"), Faulty(b"panic")]))).await {
        Err(status) => status,
        Ok(mut responses) => {
            assert_eq!(soon(responses.message()).await.expect("the first"), Some(raw("ok")));
            soon(responses.message()).await.expect_err("the second panics")
        }
    };
    assert_eq!(status.code(), Code::Internal);
}

/// Returns a path that no other test uses.
fn temporary(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("thalweg-{}-{name}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[tokio::test]
async fn garbage_after_request_ends_only_that_call() {
    let mut peer: Peer = client_of(Echo::default()).await;
    peer.headers(1, false, REQUEST).data(1, true, &[9, 0, 0, 0, 0]);
    peer.headers(3, false, REQUEST).data(3, true, &[0, 0, 0, 0, 9, 1]);
    peer.headers(5, false, REQUEST).data(5, true, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    peer.headers(7, false, REQUEST).message(7, true, b"x").send().await;
    let mut responses = Vec::new();
    while responses.len() < 5 {
        let frame = soon(peer.next_of(Kind::Headers)).await;
        responses.push((frame.stream, frame.text()));
    }
    let status = |stream, code: &str| {
        let code = format!("grpc-status: {code}\n");
        assert!(responses.iter().any(|(of, text)| *of == stream && text.contains(&code)), "{responses:?}");
    };
    status(1, "13");
    status(3, "13");
    status(5, "12");
    status(7, "0");
}
