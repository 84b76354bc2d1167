//! Timeouts of request bodies other than gRPC's, over both HTTP versions.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Version};
use thalweg::web::Web;
use thalweg::web::body::Body;
use thalweg::web::http1::Http1Limits;
use thalweg::{Server, Status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, sleep, timeout};

use crate::support::peer::{PIPE, Peer};
use crate::web_tls::descriptors;

/// Reads the body of a request and responds with how it ended.
#[derive(Clone)]
struct Reads;

impl tower_service::Service<Request<Body>> for Reads {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut body = request.into_body();
        Box::pin(async move {
            loop {
                match std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await {
                    Some(Ok(_)) => {}
                    Some(Err(status)) => return Ok(Response::new(Body::from(status.message().to_owned()))),
                    None => return Ok(Response::new(Body::from("all of it".to_owned()))),
                }
            }
        })
    }
}

fn server(limits: Http1Limits) -> DuplexStream {
    let (near, far) = duplex(PIPE);
    let web = Web::new().descriptors(descriptors()).fallback(Reads).http1(limits);
    let server = Server::builder().add_service(crate::support::Echo::default()).web(web);
    tokio::spawn(server.serve_connection(far));
    near
}

/// A request whose body arrives in pieces, each after a pause in seconds, and then stops.
struct Slow<'a> {
    path: &'a str,
    content_type: &'a str,
    length: Option<usize>,
    pieces: &'a [(u64, &'a [u8])],
}

fn reports_timeout(response: &[u8]) -> bool {
    let response = String::from_utf8_lossy(response);
    // Plain text, or Base64 inside a gRPC-Web text body.
    response.contains("took too long") || response.contains("dG9vayB0b28gbG9u")
}

impl Slow<'_> {
    /// Returns the seconds until the response says that the request took too long, or `None` after an hour.
    async fn closing_time(&self, version: Version, limits: Http1Limits) -> Option<u64> {
        let (io, began) = (server(limits), Instant::now());
        let response = async {
            if version == Version::HTTP_2 {
                self.closing_time_over_http2(io).await;
            } else {
                self.closing_time_over_http1(io).await;
            }
        };
        timeout(Duration::from_secs(3600), response).await.ok()?;
        Some(began.elapsed().as_secs())
    }

    async fn closing_time_over_http1(&self, mut io: DuplexStream) {
        let length = self
            .length
            .map_or("transfer-encoding: chunked".to_owned(), |len| format!("content-length: {len}"));
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: a\r\ncontent-type: {}\r\n{length}\r\n\r\n",
            self.path, self.content_type
        );
        io.write_all(head.as_bytes()).await.expect("it is open");
        for (pause, piece) in self.pieces {
            sleep(Duration::from_secs(*pause)).await;
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            io.write_all(if self.length.is_some() { piece } else { &chunk }).await.expect("it is open");
        }
        let mut response = Vec::new();
        while !reports_timeout(&response) {
            let len = io.read_buf(&mut response).await.expect("it is open");
            assert_ne!(len, 0, "it has ended: {:?}", String::from_utf8_lossy(&response));
        }
    }

    async fn closing_time_over_http2(&self, io: DuplexStream) {
        let mut peer = Peer::client(io).await;
        let length = self.length.map(|len| len.to_string());
        let mut fields =
            vec![(":method", "POST"), (":scheme", "http"), (":path", self.path), (":authority", "a")];
        fields.push(("content-type", self.content_type));
        fields.extend(length.as_deref().map(|length| ("content-length", length)));
        peer.headers(1, false, &fields).send().await;
        for (pause, piece) in self.pieces {
            sleep(Duration::from_secs(*pause)).await;
            peer.data(1, false, piece).send().await;
        }
        loop {
            let frame = peer.next().await.expect("the connection stays");
            if reports_timeout(&frame.payload) {
                return;
            }
        }
    }
}

/// Checks after how many seconds a body times out, over both versions.
async fn check(slow: Slow<'_>, expected: Option<u64>) {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let closing_time = slow.closing_time(version, Http1Limits::default()).await;
        assert_eq!(closing_time, expected, "{version:?} {} {}", slow.path, slow.content_type);
    }
    let mut limits = Http1Limits::default();
    limits.request_timeout = None;
    for version in [Version::HTTP_11, Version::HTTP_2] {
        assert_eq!(slow.closing_time(version, limits.clone()).await, None, "{version:?} without a limit");
    }
}

fn unary<'a>(content_type: &'a str, pieces: &'a [(u64, &'a [u8])]) -> Slow<'a> {
    Slow { path: "/test.Echo/Echo", content_type, length: None, pieces }
}

fn stream<'a>(content_type: &'a str, pieces: &'a [(u64, &'a [u8])]) -> Slow<'a> {
    Slow { path: "/test.Echo/Chat", ..unary(content_type, pieces) }
}

#[tokio::test(start_paused = true)]
async fn unary_message_has_request_timeout() {
    check(unary("application/json", &[(0, b"{\"text\":")]), Some(30)).await;
    check(unary("application/proto", &[(14, b"a"), (14, b"b")]), Some(30)).await;
    // 2 KiB extend the limit by two seconds.
    check(unary("application/proto", &[(29, &[b'a'; 2048])]), Some(32)).await;
    // One message in an envelope, without an end.
    check(unary("application/grpc-web", &[(1, b"\0\0\0\0\0")]), Some(30)).await;
}

#[tokio::test(start_paused = true)]
async fn stream_messages_are_timed_without_pauses() {
    let connect: &[(u64, &[u8])] =
        &[(1000, b"\0\0\0"), (29, b"\0\x01"), (0, b"a"), (1000, b"\0\0\0\0\x05ab")];
    check(stream("application/connect+proto", connect), Some(2059)).await;
    check(stream("application/grpc-web", connect), Some(2059)).await;
    check(stream("application/grpc-web-text", &[(1000, b"AAA")]), Some(1030)).await;
    let lines: &[(u64, &[u8])] = &[(1000, b"{\"text\":"), (29, b"\"a\"}\n"), (1000, b"{}\n"), (1000, b"{")];
    check(stream("application/x-ndjson", lines), Some(3059)).await;
    let complete: &[(u64, &[u8])] = &[(1000, b"{}\n"), (1000, b"{}\n")];
    check(stream("application/x-ndjson", complete), None).await;
}

#[tokio::test(start_paused = true)]
async fn non_call_body_with_known_length_is_timed() {
    let of = |length, pieces| Slow { path: "/other", content_type: "text/plain", length, pieces };
    check(of(Some(10), &[(29, b"a")]), Some(30)).await;
    check(of(None, &[(1000, b"a"), (1000, b"b")]), None).await;
}
