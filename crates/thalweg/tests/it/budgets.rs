//! Memory of unread responses, counted byte by byte, for all protocols and kinds of handlers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use thalweg::server::{Methods, ServerBuilder, Service};
use thalweg::web::Web;
use thalweg::{Raw, Request, Response, Server, ServiceOptions, Status, Stream};
use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::memory_limits::streams;
use crate::support::peer::{PIPE, Peer, REQUEST};
use crate::support::soon;

const MEBIBYTE: usize = 1 << 20;

/// Current and peak bytes of responses.
#[derive(Debug, Default)]
struct LiveBytes {
    bytes: AtomicUsize,
    peak: AtomicUsize,
}

/// The memory of one message.
struct Tracked {
    bytes: Vec<u8>,
    live: Arc<LiveBytes>,
}

impl Tracked {
    fn message(len: usize, live: &Arc<LiveBytes>) -> Raw {
        let now = live.bytes.fetch_add(len, Ordering::SeqCst) + len;
        live.peak.fetch_max(now, Ordering::SeqCst);
        Raw(Bytes::from_owner(Self { bytes: vec![7; len], live: Arc::clone(live) }))
    }
}

impl AsRef<[u8]> for Tracked {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.live.bytes.fetch_sub(self.bytes.len(), Ordering::SeqCst);
    }
}

/// Responds with the number of bytes given in the request in decimal, at once, later, or repeatedly.
#[derive(Clone, Default)]
struct Sized {
    live: Arc<LiveBytes>,
}

impl Sized {
    fn message(&self, request: Request<Raw>) -> Raw {
        let digits = request.into_inner().0;
        let len = std::str::from_utf8(&digits).expect("digits").parse().expect("a number");
        Tracked::message(len, &self.live)
    }

    #[expect(clippy::unused_async, reason = "handlers are async")]
    async fn at_once(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        Ok(Response::new(self.message(request)))
    }

    async fn later(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        sleep(Duration::from_millis(1)).await;
        Ok(Response::new(self.message(request)))
    }

    #[expect(clippy::unused_async, reason = "handlers are async")]
    async fn again(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Again>, Status> {
        Ok(Response::new(Again { service: self, request: request.into_inner() }))
    }
}

struct Again {
    service: Arc<Sized>,
    request: Raw,
}

impl Stream for Again {
    type Item = Result<Raw, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(self.service.message(Request::new(self.request.clone())))))
    }
}

impl Service for Sized {
    const NAME: &'static str = "test.Sized";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("AtOnce", &service, &options, Sized::at_once);
        methods.unary("Later", &service, &options, Sized::later);
        methods.server_streaming("Again", &service, &options, Sized::again);
    }
}

/// A server whose connections are pipes.
struct Served {
    connect: mpsc::UnboundedSender<DuplexStream>,
    live: Arc<LiveBytes>,
}

struct Incoming(mpsc::UnboundedReceiver<DuplexStream>);

impl Stream for Incoming {
    type Item = DuplexStream;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<DuplexStream>> {
        self.0.poll_recv(cx)
    }
}

impl Served {
    fn new(server: ServerBuilder) -> Self {
        let service = Sized::default();
        let live = Arc::clone(&service.live);
        let (connect, incoming) = mpsc::unbounded_channel();
        let server = server.add_service(service).web(Web::new());
        tokio::spawn(server.serve_incoming(Incoming(incoming), std::future::pending()));
        Self { connect, live }
    }

    fn pipe(&self) -> DuplexStream {
        let (near, far) = duplex(PIPE);
        self.connect.send(far).expect("the server runs");
        near
    }

    /// Opens an HTTP/2 connection with calls of `method` in flight that ask for responses of `len` bytes.
    async fn calls(&self, protocol: Protocol, method: &str, len: usize, calls: usize) -> Peer {
        let mut peer = Peer::client(self.pipe()).await;
        for stream in streams().take(calls) {
            protocol.call(&mut peer, stream, method, len);
        }
        peer.send().await;
        peer
    }

    /// Opens an HTTP/1.1 connection with a call in flight.
    async fn http1(&self, method: &str, len: usize) -> DuplexStream {
        let mut io = self.pipe();
        let body = len.to_string();
        let request = format!(
            "POST /test.Sized/{method} HTTP/1.1\r\nhost: a\r\ncontent-type: application/proto\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        io.write_all(request.as_bytes()).await.expect("the stream is open");
        io
    }

    fn peak(&self) -> usize {
        self.live.peak.load(Ordering::SeqCst)
    }
}

#[derive(Clone, Copy, Debug)]
enum Protocol {
    Grpc,
    GrpcWeb,
    Connect,
}

impl Protocol {
    fn call(self, peer: &mut Peer, stream: u32, method: &str, len: usize) {
        let content_type = match self {
            Self::Grpc => "application/grpc",
            Self::GrpcWeb => "application/grpc-web+proto",
            Self::Connect => "application/proto",
        };
        let path = format!("/test.Sized/{method}");
        let fields = REQUEST.iter().map(|(name, value)| match *name {
            ":path" => (*name, &*path),
            "content-type" => (*name, content_type),
            _ => (*name, *value),
        });
        let fields: Vec<_> = fields.collect();
        let message = len.to_string();
        peer.headers(stream, false, &fields);
        match self {
            Self::Grpc | Self::GrpcWeb => peer.message(stream, true, message.as_bytes()),
            Self::Connect => peer.data(stream, true, message.as_bytes()),
        };
    }
}

/// Opens all windows to their maximum.
fn open(peer: &mut Peer) {
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes());
    peer.settings(&[Setting::InitialWindowSize(1 << 30)]);
}

/// A connection buffers responses up to its budget plus one. After 1 s and 3 s without progress it buffers one more
/// each. This holds for all kinds of handlers, and responses are sent in order.
#[tokio::test(start_paused = true)]
async fn connection_buffers_at_most_its_budget() {
    for protocol in [Protocol::Grpc, Protocol::GrpcWeb, Protocol::Connect] {
        for method in ["AtOnce", "Later"] {
            let served = Served::new(Server::builder().max_connection_memory(4 * MEBIBYTE));
            let mut peer = served.calls(protocol, method, MEBIBYTE, 100).await;
            sleep(Duration::from_secs(5)).await;
            let peak = served.peak();
            assert!(peak <= 8 * MEBIBYTE, "{protocol:?}, {method}: {peak} B");
            open(&mut peer);
            peer.send().await;
            let mut ended = 0;
            while ended < 100 {
                ended += usize::from(soon(peer.next()).await.expect("a frame").end_stream);
            }
            // The output may hold the last frames of a few more.
            let peak = served.peak();
            assert!(peak <= 12 * MEBIBYTE, "{protocol:?}, {method}: {peak} B while they leave");
        }
    }
}

/// All connections together hold at most the server's budget and its reserve, over both HTTP versions.
#[tokio::test(start_paused = true)]
async fn connections_together_buffer_at_most_max_memory() {
    for method in ["AtOnce", "Later"] {
        for is_http1 in [false, true] {
            let served = Served::new(Server::builder().max_memory(8 * MEBIBYTE));
            let (mut peers, mut pipes) = (Vec::new(), Vec::new());
            for _ in 0..40 {
                if is_http1 {
                    pipes.push(served.http1(method, MEBIBYTE).await);
                } else {
                    peers.push(served.calls(Protocol::Grpc, method, MEBIBYTE, 4).await);
                }
            }
            sleep(Duration::from_secs(10)).await;
            let peak = served.peak();
            assert!(peak <= 10 * MEBIBYTE, "{method}, HTTP/1.1: {is_http1}: {peak} B");
            assert!(peak >= 6 * MEBIBYTE, "{method}, HTTP/1.1: {is_http1}: {peak} B");
        }
    }
}

/// A client that reads gets its responses promptly, despite other clients that do not read.
#[tokio::test(start_paused = true)]
async fn small_calls_continue_beside_stalled_readers() {
    let served = Served::new(Server::builder().max_memory(8 * MEBIBYTE));
    let mut honest = served.calls(Protocol::Grpc, "Later", 10, 1).await;
    while !soon(honest.next()).await.expect("a frame").end_stream {}
    let mut pipes = Vec::new();
    for _ in 0..40 {
        pipes.push(served.http1("Later", MEBIBYTE).await);
    }
    for stream in streams().skip(1).take(200) {
        let started = Instant::now();
        Protocol::Grpc.call(&mut honest, stream, "Later", 10);
        honest.send().await;
        while !soon(honest.next()).await.expect("a frame").end_stream {}
        assert!(started.elapsed() < Duration::from_millis(10), "{:?}", started.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    // Clients that do not read were closed to make room for each other.
    let mut closed = 0;
    for mut pipe in pipes {
        let mut response = Vec::new();
        closed += usize::from(timeout(Duration::from_secs(1), pipe.read_to_end(&mut response)).await.is_ok());
    }
    assert!(closed > 0);
}

/// A response larger than all budgets is sent if it is the only one.
#[tokio::test(start_paused = true)]
async fn response_may_exceed_the_budget() {
    let server = Server::builder().max_memory(2 * MEBIBYTE).max_connection_memory(MEBIBYTE);
    let served = Served::new(server);
    let mut peer = Peer::client(served.pipe()).await;
    open(&mut peer);
    Protocol::Grpc.call(&mut peer, 1, "Later", 8 * MEBIBYTE);
    peer.send().await;
    let mut received = 0;
    loop {
        let frame = soon(peer.next()).await.expect("a frame");
        if frame.kind == Kind::Data {
            received += frame.payload.len();
            // Slower than the server's checks of its connections.
            sleep(Duration::from_millis(20)).await;
        }
        if frame.end_stream {
            break;
        }
    }
    assert_eq!(received, 8 * MEBIBYTE + 5);

    let mut pipe = served.http1("Later", 8 * MEBIBYTE).await;
    let (mut received, mut part) = (0, vec![0; 64 << 10]);
    while received < 8 * MEBIBYTE {
        received += soon(pipe.read(&mut part)).await.expect("the stream is open");
        sleep(Duration::from_millis(20)).await;
    }
}
