//! Requests other than gRPC count towards `max_memory`, over all protocols.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Version;
use thalweg::server::{Methods, Service};
use thalweg::web::Web;
use thalweg::{Encoding, Raw, Request, Response, Server, ServiceOptions, Status};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::timeout;

use crate::memory_limits::{KeepsRequests, client_of, streams};
use crate::support::peer::{compressed_envelope, envelope};

const MEBIBYTE: usize = 1 << 20;
/// Longer than the interval at which the server checks its connections.
const CHECK_TIMEOUT: Duration = Duration::from_secs(4);

/// Requests on one connection to a handler that never responds.
struct RequestCase<'a> {
    content_type: &'a str,
    /// Name of the encoding's header, if the body is compressed.
    encoding: Option<&'a str>,
    body: &'a [u8],
    /// The bodies are complete.
    ends: bool,
}

impl RequestCase<'_> {
    /// Returns true if the server closes the connection with this many requests in flight.
    async fn is_closed(&self, version: Version, calls: usize) -> bool {
        let server = Server::builder().add_service(KeepsRequests).web(Web::new()).max_memory(2 * MEBIBYTE);
        if version == Version::HTTP_11 {
            assert_eq!(calls, 1, "one goes after the other");
            return self.is_http1_closed(server).await;
        }
        let mut peer = client_of(server).await;
        let mut fields = vec![(":method", "POST"), (":scheme", "http"), (":path", "/test.Keeping/One")];
        fields.extend([(":authority", "a"), ("content-type", self.content_type)]);
        fields.extend(self.encoding.map(|name| (name, "gzip")));
        for stream in streams().take(calls) {
            peer.headers(stream, false, &fields).send().await;
            for part in self.body.chunks(16_000) {
                peer.data(stream, false, part).send().await;
            }
            if self.ends {
                peer.data(stream, true, b"").send().await;
            }
        }
        let goaway = timeout(CHECK_TIMEOUT, peer.next_of(Kind::GoAway)).await;
        assert!(goaway.as_ref().map_or(true, |goaway| goaway.code() == ErrorCode::EnhanceYourCalm));
        goaway.is_ok()
    }

    async fn is_http1_closed(&self, server: thalweg::server::ServerBuilder) -> bool {
        let (mut near, far) = duplex(64 * 1024);
        tokio::spawn(server.serve_connection(far));
        let encoding = self.encoding.map(|name| format!("{name}: gzip\r\n")).unwrap_or_default();
        let len = self.body.len() + usize::from(!self.ends);
        let head = format!(
            "POST /test.Keeping/One HTTP/1.1\r\nhost: a\r\ncontent-type: {}\r\n{encoding}content-length: {len}\r\n\r\n",
            self.content_type
        );
        // The server may close the connection before it has read everything.
        let _ = near.write_all(&[head.as_bytes(), self.body].concat()).await;
        timeout(CHECK_TIMEOUT, near.read(&mut [0; 1])).await.is_ok_and(|read| matches!(read, Ok(0)))
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    Encoding::Gzip.compress(bytes, &mut compressed);
    compressed
}

/// Checks that `calls` requests are too many, and a quarter of them is not.
async fn check(case: RequestCase<'_>, calls: usize) {
    let RequestCase { content_type, encoding, body, ends } = case;
    let context = format!("{content_type} {encoding:?}, {} bytes, {ends}", body.len());
    assert!(case.is_closed(Version::HTTP_2, calls).await, "{calls} of {context}");
    assert!(!case.is_closed(Version::HTTP_2, calls / 4).await, "{} of {context}", calls / 4);
}

const CONNECT: &str = "application/proto";
const GRPC_WEB: &str = "application/grpc-web+proto";

#[tokio::test(start_paused = true)]
async fn incomplete_bodies_count() {
    let bytes = vec![0; 100_000];
    check(RequestCase { content_type: CONNECT, encoding: None, body: &bytes, ends: false }, 40).await;
    let incomplete = envelope(&vec![0; 200_000]);
    let incomplete = &incomplete[..100_000];
    check(RequestCase { content_type: GRPC_WEB, encoding: None, body: incomplete, ends: false }, 40).await;
}

#[tokio::test(start_paused = true)]
async fn messages_in_handlers_count() {
    let bytes = vec![0; 100_000];
    check(RequestCase { content_type: CONNECT, encoding: None, body: &bytes, ends: true }, 40).await;
    let compressed = gzip(&bytes);
    let encoding = Some("content-encoding");
    check(RequestCase { content_type: CONNECT, encoding, body: &compressed, ends: true }, 40).await;
    let complete = envelope(&bytes);
    check(RequestCase { content_type: GRPC_WEB, encoding: None, body: &complete, ends: true }, 40).await;
    let compressed = compressed_envelope(&bytes);
    let encoding = Some("grpc-encoding");
    check(RequestCase { content_type: GRPC_WEB, encoding, body: &compressed, ends: true }, 40).await;
}

#[tokio::test(start_paused = true)]
async fn http1_bodies_count() {
    let check = async |case: RequestCase<'_>, expected: bool| {
        let context = format!("{} {:?}, {} bytes", case.content_type, case.encoding, case.body.len());
        assert_eq!(case.is_closed(Version::HTTP_11, 1).await, expected, "{context}");
    };
    for ends in [true, false] {
        for (len, is_closed) in [(3_000_000, true), (500_000, false)] {
            let bytes = vec![0; len];
            check(RequestCase { content_type: CONNECT, encoding: None, body: &bytes, ends }, is_closed).await;
            let complete = envelope(&bytes);
            check(RequestCase { content_type: GRPC_WEB, encoding: None, body: &complete, ends }, is_closed)
                .await;
        }
    }
    let compressed = gzip(&vec![0; 3_000_000]);
    let encoding = Some("content-encoding");
    check(RequestCase { content_type: CONNECT, encoding, body: &compressed, ends: true }, true).await;
}

/// Counts its calls.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Counting {
    fn count(self: Arc<Self>, request: Request<Raw>) -> Ready<Result<Response<Raw>, Status>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        ready(Ok(Response::new(request.into_inner())))
    }
}

struct Counted(Arc<Counting>);

impl Service for Counted {
    const NAME: &'static str = "test.Counted";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("One", &self.0, &ServiceOptions::default(), Counting::count);
    }
}

/// Small bodies that decompress to large ones are processed one by one, and other requests run in between.
#[tokio::test(start_paused = true)]
async fn decompressing_bodies_yields_to_other_tasks() {
    let mebibyte = vec![0; MEBIBYTE];
    let (body, message) = (gzip(&mebibyte), compressed_envelope(&mebibyte));
    for (content_type, encoding, body) in
        [(CONNECT, "content-encoding", &body), (GRPC_WEB, "grpc-encoding", &message)]
    {
        let counting = Arc::new(Counting::default());
        // No one reads the responses.
        let server = Server::builder().max_connection_memory(64 * MEBIBYTE);
        let server = server.add_service(Counted(Arc::clone(&counting))).web(Web::new());
        let (near, far) = duplex(MEBIBYTE);
        tokio::spawn(server.serve_connection(far));
        let mut peer = crate::support::peer::Peer::client(near).await;
        let fields = [(":method", "POST"), (":scheme", "http"), (":path", "/test.Counted/One")];
        let fields =
            [&fields[..], &[(":authority", "a"), ("content-type", content_type), (encoding, "gzip")]]
                .concat();
        for stream in streams().take(40) {
            peer.headers(stream, false, &fields).data(stream, true, body);
        }
        peer.send().await;
        let mut request_counts = Vec::new();
        while counting.0.load(Ordering::SeqCst) < 40 {
            let before = counting.0.load(Ordering::SeqCst);
            tokio::task::yield_now().await;
            request_counts.push(counting.0.load(Ordering::SeqCst) - before);
        }
        assert!(
            request_counts.iter().all(|request_count| *request_count <= 2),
            "{content_type}: {request_counts:?}"
        );
    }
}
