//! HTTP/1.1 clients of scripted servers.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use thalweg_engine::{ByteStreams, CallOptions, ChannelConfig, Code, Encoding, Method, Status};
use thalweg_web::client::{Client, Http1, Http1Options, Protocol, Streams, UnaryResponse};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

static ECHO: Method = Method::new("/test.Echo/Echo");
static FIND: Method = Method::new("/test.Echo/Find").without_side_effects();

/// A server. Each of its connections follows its turns and is then closed.
struct ScriptedServer {
    target: String,
    /// Requests with their bodies.
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    /// Number of connections that the client closed without a response.
    abandoned: Arc<AtomicUsize>,
}

/// Reaction to a request.
#[derive(Clone)]
enum Action {
    Respond(Vec<u8>),
    /// Sends these bytes only, and stalls.
    Stall(Vec<u8>),
    /// Closes the connection after 20 ms, without a request.
    End,
}

impl ScriptedServer {
    async fn new(connections: Vec<Vec<Action>>) -> ScriptedServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = ScriptedServer {
            target: listener.local_addr().unwrap().to_string(),
            requests: Arc::default(),
            connections: Arc::default(),
            abandoned: Arc::default(),
        };
        let (requests, count) = (Arc::clone(&server.requests), Arc::clone(&server.connections));
        let abandoned = Arc::clone(&server.abandoned);
        tokio::spawn(async move {
            for actions in connections {
                let (mut stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let (requests, abandoned) = (Arc::clone(&requests), Arc::clone(&abandoned));
                tokio::spawn(async move {
                    for action in actions {
                        if matches!(action, Action::End) {
                            return tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                        let Some(request) = read_request(&mut stream).await else { return };
                        requests.lock().unwrap().push(request);
                        match action {
                            Action::Respond(bytes) => stream.write_all(&bytes).await.unwrap(),
                            Action::Stall(bytes) => {
                                stream.write_all(&bytes).await.unwrap();
                                let _ = stream.read(&mut [0; 64]).await;
                                abandoned.fetch_add(1, Ordering::SeqCst);
                                return;
                            }
                            Action::End => {}
                        }
                    }
                });
            }
        });
        server
    }

    /// Returns a server that responds once.
    async fn once(response: impl Into<Vec<u8>>) -> ScriptedServer {
        ScriptedServer::new(vec![vec![Action::Respond(response.into())]]).await
    }

    fn client(&self, protocol: Protocol, options: Http1Options) -> Client {
        let streams = ByteStreams::new(&self.target, &ChannelConfig::default()).unwrap();
        Client::new(protocol, Http1::new(streams, options).unwrap())
    }

    fn connect(&self) -> Client {
        self.client(Protocol::Connect, Http1Options::default())
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    async fn is_abandoned(&self) -> bool {
        for _ in 0..200 {
            if self.abandoned.load(Ordering::SeqCst) > 0 {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }
}

/// Reads a request with its body; `None` if the client has closed the connection.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let is_complete = match len {
                Some(len) => body.len() >= len.parse().unwrap(),
                None if head.contains("transfer-encoding: chunked") => body.ends_with("0\r\n\r\n"),
                None => true,
            };
            if is_complete {
                return Some(text);
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(len) if len > 0 => request.extend_from_slice(&piece[..len]),
            _ => return None,
        }
    }
}

/// Returns a response of known length.
fn http_response(status: &str, content_type: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let mut response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n{fields}content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    response.extend_from_slice(body);
    response
}

fn envelope(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut envelope = vec![flags];
    envelope.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    envelope.extend_from_slice(payload);
    envelope
}

async fn unary(client: &Client, options: &CallOptions) -> Result<UnaryResponse, Status> {
    client.unary(&ECHO, &HeaderMap::new(), Bytes::from_static(b"ping"), options).await
}

/// Returns the received messages and the outcome of the call.
async fn stream(client: &Client, options: &CallOptions) -> (Vec<Bytes>, Result<HeaderMap, Status>) {
    let requests = Items(vec![Ok("ping")]);
    let called = client.stream(&ECHO, &HeaderMap::new(), Streams::Responses, requests, options).await;
    let mut responses = match called {
        Ok((_, responses)) => responses,
        Err(status) => return (Vec::new(), Err(status)),
    };
    let mut messages = Vec::new();
    loop {
        match responses.message().await {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => return (messages, Ok(responses.take_trailers().unwrap_or_default())),
            Err(status) => return (messages, Err(status)),
        }
    }
}

struct Items(Vec<Result<&'static str, Status>>);

impl Stream for Items {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = (!self.0.is_empty()).then(|| self.0.remove(0));
        Poll::Ready(next.map(|item| item.map(|text| Bytes::from_static(text.as_bytes()))))
    }
}

fn code_and_message<T>(outcome: Result<T, Status>) -> Result<T, (Code, String)> {
    outcome.map_err(|status| (status.code(), status.message().to_owned()))
}

#[track_caller]
fn check_failure<T: std::fmt::Debug>(outcome: Result<T, Status>, code: Code, part: &str) {
    let (found, message) = code_and_message(outcome).unwrap_err();
    assert!(found == code && message.contains(part), "{found:?}: {message}");
}

#[tokio::test]
async fn connect_unary_call_succeeds() {
    let fields = "x-a: 1\r\ntrailer-x-b: 2\r\nx-c-bin: YQ\r\n";
    let server = ScriptedServer::once(http_response("200 OK", "application/proto", fields, b"pong")).await;
    let mut metadata = HeaderMap::new();
    metadata.insert("x-d-bin", "YQ==".parse().unwrap());
    metadata.insert("grpc-timeout", "2S".parse().unwrap());
    let response =
        server.connect().unary(&ECHO, &metadata, "ping".into(), &CallOptions::default()).await.unwrap();
    assert_eq!(
        (&response.message[..], &response.metadata["x-a"], &response.trailers["x-b"]),
        (&b"pong"[..], &"1".parse().unwrap(), &"2".parse().unwrap())
    );
    assert_eq!(response.metadata["x-c-bin"], "YQ");
    let request = &server.requests()[0];
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "ping");
    assert!(head.starts_with("POST /test.Echo/Echo HTTP/1.1\r\n"), "{head}");
    for field in [
        &format!("host: {}", server.target)[..],
        "content-type: application/proto",
        "connect-protocol-version: 1",
        "connect-timeout-ms: 2000",
        "x-d-bin: YQ",
        "content-length: 4",
        "user-agent: grpc-rust-thalweg/",
    ] {
        assert!(head.contains(&format!("\r\n{field}")), "{field} in {head}");
    }
}

#[tokio::test]
async fn invalid_connect_unary_response_is_reported() {
    async fn check(bytes: impl Into<Vec<u8>>, code: Code, part: &str) {
        let server = ScriptedServer::once(bytes).await;
        check_failure(unary(&server.connect(), &CallOptions::default()).await, code, part);
    }
    let page = |status: &str| http_response(status, "text/html", "", b"<h1>no</h1>");
    let not_found = "not a Connect response: HTTP status 404, content type text/html";
    check(page("404 Not Found"), Code::Unimplemented, not_found).await;
    check(page("502 Bad Gateway"), Code::Unavailable, "HTTP status 502").await;
    check(page("403 Forbidden"), Code::PermissionDenied, "HTTP status 403").await;
    check(page("200 OK"), Code::Unknown, "HTTP status 200, content type text/html").await;
    let long = http_response("503 Service Unavailable", "text/html", "", &vec![b'x'; 2 << 20]);
    check(long, Code::Unavailable, "HTTP status 503").await;
    let long = http_response("200 OK", "text/html", "", &vec![b'x'; 5 << 20]);
    check(long, Code::Unknown, "HTTP status 200, content type text/html").await;
    let other = http_response("200 OK", "application/json", "", b"{}");
    check(other, Code::Internal, "the server sent application/json").await;
    let packed = http_response("200 OK", "application/proto", "content-encoding: rot13\r\n", b"pong");
    check(packed, Code::Internal, "content-encoding \"rot13\" is not supported").await;
    let large = http_response("200 OK", "application/proto", "", &vec![b'x'; 5 << 20]);
    check(large, Code::ResourceExhausted, "larger than max").await;
    let error =
        http_response("404 Not Found", "application/json", "", br#"{"code":"not_found","message":"no Ada"}"#);
    check(error, Code::NotFound, "no Ada").await;
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-length: 9\r\n\r\npong";
    check(cut, Code::Unavailable, " lost: ").await;
    let cut =
        "HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ntransfer-encoding: chunked\r\n\r\n9\r\npong";
    check(cut, Code::Unavailable, " lost: ").await;
    check("HTTP/1.1 200 OK\r\ncontent-ty", Code::Unavailable, "before it responded").await;
    check("", Code::Unavailable, "before it responded").await;
    check("220 mail.example ready\r\n\r\n", Code::Internal, "invalid HTTP/1.1 response").await;
}

#[tokio::test]
async fn connect_streams_are_read() {
    async fn check(fields: &str, body: Vec<u8>, messages: &[&str], expected: Result<&str, (Code, &str)>) {
        let fields = format!("{fields}x-a: 1\r\n");
        let server =
            ScriptedServer::once(http_response("200 OK", "application/connect+proto", &fields, &body)).await;
        let (found, ended) = stream(&server.connect(), &CallOptions::default()).await;
        assert_eq!(found, messages);
        match expected {
            Ok(trailer) => assert_eq!(ended.unwrap()["x-b"], trailer),
            Err((code, part)) => check_failure(ended, code, part),
        }
        let request = server.requests().remove(0);
        assert!(request.contains("content-type: application/connect+proto"), "{request}");
        assert!(request.contains("\0\0\0\0\u{4}ping"), "{request}");
    }
    let end = envelope(2, br#"{"metadata":{"x-b":["2"]}}"#);
    let both = [envelope(0, b"a"), envelope(0, b"b")].concat();
    check("", [both.clone(), end.clone()].concat(), &["a", "b"], Ok("2")).await;
    let failed = envelope(2, br#"{"error":{"code":"aborted","message":"enough"}}"#);
    check("", [both.clone(), failed].concat(), &["a", "b"], Err((Code::Aborted, "enough"))).await;
    check("", both.clone(), &["a", "b"], Err((Code::Internal, "stream truncated"))).await;
    check("", both[..8].to_vec(), &["a"], Err((Code::Internal, "inside a message"))).await;
    check("", Vec::new(), &[], Err((Code::Internal, "stream truncated"))).await;
    let more = [both.clone(), end.clone(), envelope(0, b"c")].concat();
    check("", more, &["a", "b"], Err((Code::Internal, "bytes follow the end"))).await;
    let packed = envelope(1, b"a");
    check("", packed.clone(), &[], Err((Code::Internal, "without compression"))).await;
    let field = "connect-content-encoding: rot13\r\n";
    check(field, packed, &[], Err((Code::Internal, "\"rot13\" is not supported"))).await;
}

#[tokio::test]
async fn invalid_connect_stream_is_reported() {
    async fn check(bytes: impl Into<Vec<u8>>, messages: &[&str], code: Code, part: &str) {
        let server = ScriptedServer::once(bytes).await;
        let (found, ended) = stream(&server.connect(), &CallOptions::default()).await;
        assert_eq!(found, messages);
        check_failure(ended, code, part);
    }
    let page = http_response("404 Not Found", "text/html", "", b"<h1>no</h1>");
    check(page, &[], Code::Unimplemented, "not a Connect response: HTTP status 404").await;
    let unary = http_response("200 OK", "application/proto", "", b"pong");
    check(unary, &[], Code::Unknown, "not a Connect response").await;
    let json = http_response("200 OK", "application/connect+json", "", b"");
    check(json, &[], Code::Internal, "expected the content type").await;
    // Cut by an intermediary, inside a message and between two.
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n";
    check(format!("{head}7\r\n\0\0\0\0\u{1}a\0\r\n"), &["a"], Code::Unavailable, " lost: ").await;
    check(format!("{head}6\r\n\0\0\0\0\u{1}a\r\n"), &["a"], Code::Unavailable, " lost: ").await;
}

#[tokio::test]
async fn grpc_web_responses_are_read() {
    async fn check(protocol: Protocol, bytes: Vec<u8>, expected: Result<(&str, &str), (Code, &str)>) {
        let server = ScriptedServer::once(bytes).await;
        let client = server.client(protocol, Http1Options::default());
        let outcome = unary(&client, &CallOptions::default()).await;
        match expected {
            Ok((message, trailer)) => {
                let response = outcome.unwrap();
                assert_eq!(
                    (&response.message[..], response.trailers["x-b"].to_str().unwrap()),
                    (message.as_bytes(), trailer)
                );
            }
            Err((code, part)) => check_failure(outcome, code, part),
        }
    }
    let web = |fields: &str, body: &[u8]| http_response("200 OK", "application/grpc-web+proto", fields, body);
    let trailers = envelope(0x80, b"grpc-status: 0\r\nx-b: 2\r\n");
    let message = envelope(0, b"pong");
    let complete = [message.clone(), trailers.clone()].concat();
    check(Protocol::GrpcWeb, web("", &complete), Ok(("pong", "2"))).await;
    let text = "AAAAAARwb25ngAAAABhncnBjLXN0YXR1czogMA0KeC1iOiAyDQo=";
    let text = http_response("200 OK", "application/grpc-web-text+proto", "", text.as_bytes());
    check(Protocol::GrpcWebText, text, Ok(("pong", "2"))).await;
    let check = async |bytes, code, part| check(Protocol::GrpcWeb, bytes, Err((code, part))).await;
    check(web("", &message), Code::Internal, "no trailers").await;
    check(web("", &complete[..20]), Code::Internal, "inside a message").await;
    check(web("", &[]), Code::Unknown, "").await;
    check(web("grpc-status: 5\r\ngrpc-message: no%20Ada\r\n", &[]), Code::NotFound, "no Ada").await;
    let failed = envelope(0x80, b"grpc-status: 5\r\ngrpc-message: no%20Ada\r\n");
    check(web("", &failed), Code::NotFound, "no Ada").await;
    check(web("", &trailers), Code::Unimplemented, "received none").await;
    // A failure has the metadata of headers and trailers. With headers alone it has them once.
    let alone = web("x-a: 1\r\ngrpc-status: 5\r\n", &[]);
    for (bytes, expected) in
        [(web("x-a: 1\r\n", &envelope(0x80, b"grpc-status: 5\r\nx-a: 2\r\n")), 2), (alone, 1)]
    {
        let server = ScriptedServer::once(bytes).await;
        let client = server.client(Protocol::GrpcWeb, Http1Options::default());
        let status = unary(&client, &CallOptions::default()).await.unwrap_err();
        assert_eq!(
            (status.code(), status.metadata().get_all("x-a").iter().count()),
            (Code::NotFound, expected)
        );
    }
    let two = [message.clone(), message.clone(), trailers.clone()].concat();
    check(web("", &two), Code::Unimplemented, "more than one").await;
    check(web("grpc-encoding: rot13\r\n", &complete), Code::Internal, "rot13").await;
    check(
        http_response("502 Bad Gateway", "text/html", "", b""),
        Code::Unavailable,
        "not a gRPC-Web response",
    )
    .await;
    let other = http_response("200 OK", "application/grpc-web+json", "", &complete);
    check(other, Code::Internal, "application/grpc-web+json").await;
}

#[tokio::test]
async fn connection_is_reused_by_sequential_calls() {
    let good = || Action::Respond(http_response("200 OK", "application/proto", "", b"pong"));
    let failed = envelope(2, br#"{"error":{"code":"aborted"}}"#);
    let failed = Action::Respond(http_response("200 OK", "application/connect+proto", "", &failed));
    let error =
        Action::Respond(http_response("404 Not Found", "application/json", "", br#"{"code":"not_found"}"#));
    let server = ScriptedServer::new(vec![vec![good(), failed, error, good()]]).await;
    let (client, options) = (server.connect(), CallOptions::default());
    unary(&client, &options).await.unwrap();
    check_failure(stream(&client, &options).await.1, Code::Aborted, "");
    check_failure(unary(&client, &options).await, Code::NotFound, "");
    unary(&client, &options).await.unwrap();
    assert_eq!((server.connections(), server.requests().len()), (1, 4));
}

#[tokio::test]
async fn broken_idle_connection_is_skipped() {
    let good = || Action::Respond(http_response("200 OK", "application/proto", "", b"pong"));
    // Closed immediately, and later.
    let server = ScriptedServer::new(vec![vec![good()], vec![good(), Action::End], vec![good()]]).await;
    let (client, options) = (server.connect(), CallOptions::default());
    for count in 1..=3 {
        unary(&client, &options).await.unwrap();
        assert_eq!((server.connections(), server.requests().len()), (count, count));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A connection that is closed without a wake-up, as if the next call came first.
struct Breakable {
    stream: TcpStream,
    is_broken: Arc<AtomicBool>,
}

impl AsyncRead for Breakable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Breakable {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn unsent_call_moves_to_another_connection() {
    let good = || Action::Respond(http_response("200 OK", "application/proto", "", b"pong"));
    let server = ScriptedServer::new(vec![vec![good(), good()], vec![good()]]).await;
    let is_broken = Arc::new(AtomicBool::new(false));
    let mut config = ChannelConfig::default();
    let (target, first) = (server.target.clone(), Mutex::new(Some(Arc::clone(&is_broken))));
    config.set_connector(move || {
        let (target, is_broken) = (target.clone(), first.lock().unwrap().take().unwrap_or_default());
        async move { Ok(Breakable { stream: TcpStream::connect(target).await?, is_broken }) }
    });
    let streams = ByteStreams::new(&server.target, &config).unwrap();
    let client = Client::new(Protocol::Connect, Http1::new(streams, Http1Options::default()).unwrap());
    let options = CallOptions::default();
    unary(&client, &options).await.unwrap();
    // Now it is idle and waits for a call.
    tokio::time::sleep(Duration::from_millis(50)).await;
    is_broken.store(true, Ordering::SeqCst);
    unary(&client, &options).await.unwrap();
    assert_eq!((server.connections(), server.requests().len()), (2, 2));
}

#[tokio::test]
async fn sent_request_is_not_repeated() {
    let good = || Action::Respond(http_response("200 OK", "application/proto", "", b"pong"));
    let server = ScriptedServer::new(vec![vec![good(), Action::Respond(Vec::new())], vec![good()]]).await;
    let (client, options) = (server.connect(), CallOptions::default());
    unary(&client, &options).await.unwrap();
    check_failure(unary(&client, &options).await, Code::Unavailable, "before it responded");
    assert_eq!((server.connections(), server.requests().len()), (1, 2));
    unary(&client, &options).await.unwrap();
}

#[tokio::test]
async fn refused_connection_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap().to_string();
    drop(listener);
    let streams = ByteStreams::new(&target, &ChannelConfig::default()).unwrap();
    let client = Client::new(Protocol::Connect, Http1::new(streams, Http1Options::default()).unwrap());
    let part = "check that the server is running";
    check_failure(unary(&client, &CallOptions::default()).await, Code::Unavailable, part);
}

#[tokio::test]
async fn deadline_ends_calls() {
    let mut options = CallOptions::default();
    options.timeout = Some(Duration::from_millis(200));
    let server = ScriptedServer::new(vec![vec![Action::Stall(Vec::new())]]).await;
    check_failure(unary(&server.connect(), &options).await, Code::DeadlineExceeded, "deadline");
    assert!(server.requests()[0].contains("connect-timeout-ms: 200\r\n"));
    assert!(server.is_abandoned().await);

    // After the headers and a message.
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n";
    let partial = format!("{head}6\r\n\0\0\0\0\u{1}a\r\n").into_bytes();
    let server = ScriptedServer::new(vec![vec![Action::Stall(partial)]]).await;
    let (messages, ended) = stream(&server.connect(), &options).await;
    assert_eq!(messages, ["a"]);
    check_failure(ended, Code::DeadlineExceeded, "deadline");
    assert!(server.is_abandoned().await);
}

#[tokio::test]
async fn dropped_call_closes_its_connection() {
    let server = ScriptedServer::new(vec![vec![Action::Stall(Vec::new())]]).await;
    let (client, options) = (server.connect(), CallOptions::default());
    let timed_out = tokio::time::timeout(Duration::from_millis(200), unary(&client, &options)).await;
    assert!(timed_out.is_err());
    assert!(server.is_abandoned().await);

    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n";
    let server = ScriptedServer::new(vec![vec![Action::Stall(head.into())]]).await;
    let (client, requests) = (server.connect(), Items(vec![Ok("ping")]));
    let called = client.stream(&ECHO, &HeaderMap::new(), Streams::Responses, requests, &options).await;
    assert_eq!(server.abandoned.load(Ordering::SeqCst), 0);
    drop(called.unwrap());
    assert!(server.is_abandoned().await);

    // While its requests are still being sent.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let streams =
        ByteStreams::new(&listener.local_addr().unwrap().to_string(), &ChannelConfig::default()).unwrap();
    let client = Client::new(Protocol::Connect, Http1::new(streams, Http1Options::default()).unwrap());
    let metadata = HeaderMap::new();
    let called = client.stream(&ECHO, &metadata, Streams::Requests, Endless, &options);
    let (called, (mut stream, _)) = tokio::join!(called, async {
        let (mut stream, address) = listener.accept().await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        (stream, address)
    });
    drop(called.unwrap());
    let mut sink = tokio::io::sink();
    let rest = tokio::io::copy(&mut stream, &mut sink);
    let _ = tokio::time::timeout(Duration::from_secs(5), rest).await.expect("it is closed");
}

/// A stream of requests that is always ready.
struct Endless;

impl Stream for Endless {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(Bytes::from_static(&[7; 10_000]))))
    }
}

#[tokio::test]
async fn number_of_connections_is_limited() {
    let good = || Action::Respond(http_response("200 OK", "application/proto", "", b"pong"));
    let server = ScriptedServer::new(vec![vec![good(), good(), good()], vec![good()]]).await;
    let mut options = Http1Options::default();
    options.connections_max = 1;
    let client = server.client(Protocol::Connect, options);
    let options = CallOptions::default();
    let (first, second, third) =
        tokio::join!(unary(&client, &options), unary(&client, &options), unary(&client, &options));
    first.and(second).and(third).unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn bidirectional_calls_need_http2() {
    let server = ScriptedServer::new(vec![vec![]]).await;
    let called = server
        .connect()
        .stream(&ECHO, &HeaderMap::new(), Streams::Both, Items(Vec::new()), &CallOptions::default())
        .await;
    check_failure(called.map(|_| ()), Code::Unimplemented, "needs HTTP/2");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn get_is_used_for_methods_without_side_effects() {
    let good = || Action::Respond(http_response("200 OK", "application/proto", "", b"pong"));
    let server = ScriptedServer::new(vec![vec![good(), good(), good()]]).await;
    let (client, options) = (server.connect().with_get(true), CallOptions::default());
    let find = async |message: Bytes| client.unary(&FIND, &HeaderMap::new(), message, &options).await;
    find("ping".into()).await.unwrap();
    find(vec![b'x'; 8000].into()).await.unwrap();
    unary(&client, &options).await.unwrap();
    let request_lines: Vec<String> =
        server.requests().iter().map(|request| request[..request.len().min(22)].to_owned()).collect();
    assert_eq!(request_lines, ["GET /test.Echo/Find?co", "POST /test.Echo/Find H", "POST /test.Echo/Echo H"]);
    assert!(server.requests()[0].contains("message=cGluZw"));
}

#[tokio::test]
async fn client_stream_sends_all_requests() {
    let end = [envelope(0, b"pong"), envelope(2, b"{}")].concat();
    let server = ScriptedServer::once(http_response("200 OK", "application/connect+proto", "", &end)).await;
    let mut options = CallOptions::default();
    options.send_compressed = Some(Encoding::Gzip);
    let requests = Items(vec![Ok("one"), Ok("two")]);
    let called =
        server.connect().stream(&ECHO, &HeaderMap::new(), Streams::Requests, requests, &options).await;
    let (head, mut responses) = called.unwrap();
    let (message, _) = responses.only(&head).await.unwrap();
    assert_eq!(message, "pong");
    let request = server.requests().remove(0);
    assert!(request.contains("\0\0\0\0\u{3}one\0\0\0\0\u{3}two"), "{request}");
    assert!(request.contains("connect-content-encoding: gzip"), "{request}");
}

#[tokio::test]
async fn failed_request_stream_ends_the_call() {
    let server = ScriptedServer::new(vec![vec![Action::Stall(Vec::new())]]).await;
    let requests = Items(vec![Ok("one"), Err(Status::new(Code::DataLoss, "the tape is torn"))]);
    let options = CallOptions::default();
    let called =
        server.connect().stream(&ECHO, &HeaderMap::new(), Streams::Requests, requests, &options).await;
    check_failure(called.map(|_| ()), Code::DataLoss, "the tape is torn");
}

#[tokio::test]
async fn oversized_message_is_not_sent() {
    let server = ScriptedServer::new(vec![vec![Action::Stall(Vec::new())]]).await;
    let mut options = CallOptions::default();
    options.max_encoding_message_size = 3;
    let part = "trying to send message larger than max (4 vs. 3)";
    check_failure(unary(&server.connect(), &options).await, Code::ResourceExhausted, part);
    check_failure(stream(&server.connect(), &options).await.1, Code::ResourceExhausted, part);
}
