//! Non-gRPC traffic on a server's port: HTTP/2 requests that are not gRPC, and HTTP/1.1 connections.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body::Frame;
use thalweg_engine::raw::{OutgoingBody, RawHead, Trailers};
use thalweg_engine::server::{
    self, BoundServer, Fallback, Handler, Http1, Http1Connection, MessageResponse, RawHandler, Router,
    ServerConfig, ServerMethod, UnaryHandler,
};
use thalweg_engine::{
    CallOptions, Channel, ChannelConfig, Code, Encode, Envelope, ListenAddress, RawBody, RequestHead,
    ServiceOptions, Status,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// A body that is available at once.
struct CompleteBody(Option<Bytes>);

impl http_body::Body for CompleteBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl OutgoingBody for CompleteBody {
    fn status(error: Status) -> Status {
        error
    }
}

/// Responds with a description of the request.
struct Says;

impl RawHandler for Says {
    type Head = ();
    type RequestBody = RawBody;
    type Body = CompleteBody;
    type Future = std::future::Ready<Response<CompleteBody>>;

    fn read_head(&self, _: &RawHead<'_>) {}

    fn start(&self, head: &RawHead<'_>, (): &(), _: RawBody) -> Self::Future {
        let text = format!("{} {} fallback", head.method, head.uri.path());
        std::future::ready(Response::new(CompleteBody(Some(text.into()))))
    }
}

/// Echoes bytes one at a time. A `?` is a request that gets no response, and `bye` marks the end.
#[derive(Clone, Debug, Default)]
struct Echo {
    dropped: Arc<AtomicUsize>,
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Http1 for Echo {
    fn serve(&self, connection: Http1Connection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let dropped = CountDrop(Arc::clone(&self.dropped));
        let Http1Connection { mut io, stop, requests, .. } = connection;
        Box::pin(async move {
            let _dropped = dropped;
            let mut underway = Vec::new();
            let echo = async {
                loop {
                    let mut byte = [0];
                    io.read_exact(&mut byte).await?;
                    if byte == [b'?'] {
                        underway.push(requests.begin());
                    }
                    io.write_all(&byte).await?;
                }
            };
            tokio::select! {
                ended = echo => { let _: std::io::Result<()> = ended; }
                () = stop => {
                    while !underway.is_empty() {
                        tokio::time::sleep(Duration::from_secs(60)).await;
                    }
                    let _ = io.write_all(b"bye").await;
                }
            }
        })
    }
}

/// Responds to calls with `grpc`.
struct Says1;

struct Text(&'static str);

impl Encode for Text {
    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
}

impl UnaryHandler for Says1 {
    type Future = std::future::Ready<()>;
    type Output = ();

    fn start(&self, _: &RequestHead, _: Envelope<'_>) -> Result<Self::Future, Status> {
        Ok(std::future::ready(()))
    }

    fn response((): &()) -> Result<MessageResponse<'_, impl Encode>, Status> {
        Ok(MessageResponse { metadata: &NONE, message: Text("grpc"), trailers: None })
    }
}

static NONE: std::sync::LazyLock<http::HeaderMap> = std::sync::LazyLock::new(http::HeaderMap::new);

struct Methods {
    open: Arc<ServerMethod>,
    json: Arc<ServerMethod>,
}

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Methods")
    }
}

impl Router for Methods {
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        match path {
            b"/a.B/Open" => Ok(Arc::clone(&self.open)),
            b"/a.B/Json" => Ok(Arc::clone(&self.json)),
            _ => Err(Status::new(Code::Unimplemented, "it is not here")),
        }
    }
}

fn config(echo: &Echo) -> ServerConfig {
    let mut config = ServerConfig::default();
    let fallback = Fallback::new(Says, Arc::new(echo.clone())).with_content_subtypes();
    config.fallback = Some(fallback);
    config
}

async fn bind(config: ServerConfig) -> (BoundServer, String) {
    let method = || ServerMethod::new("a.B/C", ServiceOptions::default(), Handler::unary(Says1));
    let router = Methods { open: Arc::new(method()), json: Arc::new(method().with_content_subtype("json")) };
    let address: ListenAddress = "127.0.0.1:0".parse().expect("an address");
    let server = server::bind(config, Arc::new(router), &[address]).await.expect("a port");
    let target = server.local_addresses()[0].to_string();
    (server, target)
}

async fn serve(config: ServerConfig) -> String {
    let (server, target) = bind(config).await;
    tokio::spawn(server.serve());
    target
}

/// Awaits `future` and panics on timeout.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it takes no longer")
}

async fn text_of(channel: &Channel, method: &str, path: &str, content_type: &'static str) -> String {
    let mut request = Request::new(CompleteBody(Some(Bytes::from_static(b"\0\0\0\0\0"))));
    *request.method_mut() = method.parse().expect("a method");
    *request.uri_mut() = path.parse().expect("a path");
    request.headers_mut().insert("content-type", HeaderValue::from_static(content_type));
    let mut body = soon(channel.raw(request, &CallOptions::default())).await.expect("a response").into_body();
    let mut text = Vec::new();
    if let Some((bytes, trailers)) = body.take_complete() {
        text.extend_from_slice(&bytes);
        if let Trailers::Fields(fields) = trailers {
            text.extend_from_slice(fields["grpc-status"].as_bytes());
        }
    } else {
        while let Some(frame) =
            soon(std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx))).await
        {
            text.extend_from_slice(&frame.expect("a frame").into_data().unwrap_or_default());
        }
    }
    String::from_utf8(text).expect("text")
}

const GRPC: &str = "\0\0\0\0\u{4}grpc";

#[tokio::test]
async fn non_grpc_requests_go_to_the_fallback() {
    let target = serve(config(&Echo::default())).await;
    let channel = Channel::new(&target, ChannelConfig::default()).expect("a target");
    let check = async |method: &str, path: &str, content_type: &'static str, expected: &str| {
        let text = text_of(&channel, method, path, content_type).await;
        assert_eq!(text, expected, "{method} {path} as {content_type}");
    };
    check("POST", "/a.B/Open", "application/grpc", GRPC).await;
    check("POST", "/a.B/Open", "application/grpc+proto", GRPC).await;
    check("POST", "/a.B/Open", "application/json", "POST /a.B/Open fallback").await;
    check("POST", "/a.B/Open", "application/grpc-web", "POST /a.B/Open fallback").await;
    check("PUT", "/a.B/Open", "application/grpc", "PUT /a.B/Open fallback").await;
    check("GET", "/elsewhere?x=1", "text/plain", "GET /elsewhere fallback").await;
    // The fallback gets subtypes other than Protobuf's and the method's own.
    check("POST", "/a.B/Open", "application/grpc+json", "POST /a.B/Open fallback").await;
    check("POST", "/a.B/Open", "application/grpc+JSON;v=1", "POST /a.B/Open fallback").await;
    check("POST", "/a.B/Json", "application/grpc+json", GRPC).await;
    check("POST", "/a.B/Open", "application/grpc+other", "POST /a.B/Open fallback").await;
    // Unknown gRPC methods get a gRPC status.
    check("POST", "/a.B/None", "application/grpc", "").await;
}

#[tokio::test]
async fn without_fallback_non_grpc_requests_are_refused() {
    let target = serve(ServerConfig::default()).await;
    let channel = Channel::new(&target, ChannelConfig::default()).expect("a target");
    let text = text_of(&channel, "GET", "/", "text/plain").await;
    assert!(text.contains("gRPC server"), "{text}");
    let mut client = TcpStream::connect(&target).await.expect("a connection");
    // The server sends SETTINGS before it receives anything.
    let mut header = [0; 9];
    soon(client.read_exact(&mut header)).await.expect("a frame");
    assert_eq!(header[3], 4);
}

#[tokio::test]
async fn first_bytes_choose_the_protocol() {
    let target = serve(config(&Echo::default())).await;
    let mut client = TcpStream::connect(&target).await.expect("a connection");
    client.write_all(b"GET").await.expect("it is taken");
    let mut echoed = [0; 3];
    soon(client.read_exact(&mut echoed)).await.expect("it comes back");
    assert_eq!(&echoed, b"GET");

    // A preface in pieces is HTTP/2; the server sends nothing before it is complete.
    let mut client = TcpStream::connect(&target).await.expect("a connection");
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nS").await.expect("it is taken");
    let mut header = [0; 9];
    let early = tokio::time::timeout(Duration::from_millis(50), client.read(&mut header)).await;
    assert!(early.is_err(), "{early:?}");
    client.write_all(b"M\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("it is taken");
    soon(client.read_exact(&mut header)).await.expect("a frame");
    assert_eq!(header[3], 4, "SETTINGS");
}

#[tokio::test]
async fn connection_without_first_bytes_is_closed() {
    let mut config = config(&Echo::default());
    config.header_timeout = Duration::from_millis(50);
    let target = serve(config).await;
    let mut client = TcpStream::connect(&target).await.expect("a connection");
    client.write_all(b"PRI * HTTP/2.0\r\n").await.expect("it is taken");
    let read = soon(client.read(&mut [0; 9])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

/// Reads the rest of what a connection receives.
async fn rest(mut client: TcpStream) -> String {
    let mut rest = Vec::new();
    // A reset connection may end with an error.
    let _ = soon(client.read_to_end(&mut rest)).await;
    String::from_utf8(rest).expect("text")
}

async fn begin(target: &str, first: &str) -> TcpStream {
    let mut client = TcpStream::connect(target).await.expect("a connection");
    client.write_all(first.as_bytes()).await.expect("it is taken");
    let mut echoed = vec![0; first.len()];
    soon(client.read_exact(&mut echoed)).await.expect("it comes back");
    assert_eq!(echoed, first.as_bytes());
    client
}

#[tokio::test]
async fn stopping_server_drains_http1_connections() {
    let echo = Echo::default();
    let mut config = config(&echo);
    config.shutdown_grace = Duration::from_millis(300);
    let (server, target) = bind(config).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(async {
        let _ = stopped.await;
    }));
    let idle = begin(&target, "a").await;
    let silent = TcpStream::connect(&target).await.expect("a connection");
    let busy = begin(&target, "?").await;
    stop.send(()).expect("it serves");
    assert_eq!(rest(idle).await, "bye");
    assert_eq!(rest(silent).await, "");
    // A connection with an active request has the grace period, but no longer.
    assert_eq!(rest(busy).await, "");
    soon(serving).await.expect("no panic").expect("it served");
    assert_eq!(echo.dropped.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn idle_http1_connections_make_room() {
    let mut config = config(&Echo::default());
    config.max_connections = Some(2);
    let target = serve(config).await;
    let _busy = begin(&target, "?").await;
    let idle = begin(&target, "a").await;
    let refused = TcpStream::connect(&target).await.expect("the listener's queue has it");
    assert_eq!(rest(refused).await, "");
    assert_eq!(rest(idle).await, "");
    // The busy one stayed, and there is room for another.
    begin(&target, "b").await;
}

#[tokio::test]
async fn http1_connections_have_timeouts() {
    let mut config = config(&Echo::default());
    config.max_connection_idle = Some(Duration::from_millis(500));
    let target = serve(config).await;
    let busy = begin(&target, "?").await;
    let idle = begin(&target, "a").await;
    assert_eq!(rest(idle).await, "bye");
    // A connection with an active request survives several maintenance passes.
    tokio::time::sleep(Duration::from_millis(2200)).await;
    let mut busy = busy;
    busy.write_all(b"b").await.expect("it is taken");
    let mut byte = [0];
    soon(busy.read_exact(&mut byte)).await.expect("it comes back");
    assert_eq!(&byte, b"b");
}
