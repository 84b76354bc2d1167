//! Raw requests and responses, passed verbatim from a channel to a server.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use thalweg_engine::raw::{OutgoingBody, RawHead};
use thalweg_engine::server::{self, Handler, HandlerCost, RawHandler, Router, ServerConfig, ServerMethod};
use thalweg_engine::{
    CallOptions, Channel, ChannelConfig, Code, ListenAddress, RawBody, ServiceOptions, Status,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::peer::{OK, OK_HEADERS, Peer};
use crate::support::{channel_config, connected, connected_by, soon};

/// A body of pieces that arrive one after the other, some of them late.
#[derive(Default)]
pub(crate) struct Pieces {
    ready: VecDeque<Result<Frame<Bytes>, Status>>,
    later: Option<mpsc::UnboundedReceiver<Bytes>>,
}

impl Pieces {
    pub(crate) fn of<const N: usize>(pieces: [&[u8]; N]) -> Self {
        let ready = pieces.iter().map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece)))).collect();
        Self { ready, later: None }
    }

    pub(crate) fn and_later(mut self, later: mpsc::UnboundedReceiver<Bytes>) -> Self {
        self.later = Some(later);
        self
    }

    fn then(mut self, fields: &[(&'static str, &'static str)]) -> Self {
        let mut trailers = HeaderMap::new();
        for (name, value) in fields {
            trailers.insert(*name, HeaderValue::from_static(value));
        }
        self.ready.push_back(Ok(Frame::trailers(trailers)));
        self
    }

    fn then_fail(mut self) -> Self {
        self.ready.push_back(Err(Status::new(Code::Internal, "no more of it")));
        self
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(frame) = self.ready.pop_front() {
            return Poll::Ready(Some(frame));
        }
        match &mut self.later {
            None => Poll::Ready(None),
            Some(later) => later.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
        }
    }
}

impl OutgoingBody for Pieces {
    fn status(error: Status) -> Status {
        error
    }
}

/// A body that echoes the request's.
struct Echoed(RawBody);

impl http_body::Body for Echoed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }
}

/// Either body.
enum Body {
    Pieces(Pieces),
    Echoed(Echoed),
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.get_mut() {
            Self::Pieces(pieces) => Pin::new(pieces).poll_frame(cx),
            Self::Echoed(echoed) => Pin::new(echoed).poll_frame(cx),
        }
    }
}

impl OutgoingBody for Body {
    fn status(error: Status) -> Status {
        error
    }
}

#[derive(Clone, Debug, Default)]
struct Service {
    dropped: Arc<AtomicUsize>,
    /// Number of requests, and of those that arrived complete.
    counts: Arc<[AtomicUsize; 2]>,
    headers_read: Arc<AtomicUsize>,
    busy_cost: Arc<HandlerCost>,
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl RawHandler for Service {
    type Head = Option<Arc<HandlerCost>>;
    type RequestBody = RawBody;
    type Body = Body;
    type Future = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

    fn read_head(&self, head: &RawHead<'_>) -> Self::Head {
        self.headers_read.fetch_add(1, Ordering::SeqCst);
        (head.uri.path() == "/busy").then(|| Arc::clone(&self.busy_cost))
    }

    fn cost(read: &Self::Head) -> Option<&HandlerCost> {
        read.as_deref()
    }

    fn start(&self, head: &RawHead<'_>, _: &Self::Head, body: RawBody) -> Self::Future {
        let mut request = head.to_request(body);
        let dropped = Arc::clone(&self.dropped);
        if request.uri().path() == "/count" {
            let is_whole = request.body_mut().take_complete().is_some();
            self.counts[1].fetch_add(usize::from(is_whole), Ordering::SeqCst);
            self.counts[0].fetch_add(1, Ordering::SeqCst);
        }
        Box::pin(async move {
            let mut response = Response::new(Body::Pieces(Pieces::default()));
            let content_type = request.headers().get("content-type").cloned();
            response.headers_mut().extend(content_type.map(|value| (http::header::CONTENT_TYPE, value)));
            match request.uri().path() {
                "/echo" => {
                    response.headers_mut().extend(
                        request
                            .headers()
                            .get("x-a")
                            .map(|value| (http::HeaderName::from_static("x-a"), value.clone())),
                    );
                    *response.body_mut() = Body::Echoed(Echoed(request.into_body()));
                }
                "/ok" => {
                    *response.body_mut() =
                        Body::Pieces(Pieces::of([b"\0\0\0\0\x02ok"]).then(&[("grpc-status", "0")]));
                }
                "/more" => {
                    let ok = Pieces::of([b"\0\0\0\0\x02ok"]);
                    *response.body_mut() = Body::Pieces(ok.then(&[("grpc-status", "0"), ("x-b", "c")]));
                    response.headers_mut().insert("te", HeaderValue::from_static("trailers"));
                    response.headers_mut().extend(request.headers().clone());
                }
                "/refused" => {
                    response.headers_mut().insert("grpc-status", HeaderValue::from_static("7"));
                }
                "/missing" => {
                    *response.status_mut() = StatusCode::NOT_FOUND;
                    let seen = format!("{} {} is not here", request.method(), request.uri());
                    *response.body_mut() = Body::Pieces(Pieces::of([seen.as_bytes()]));
                }
                "/fails" => *response.body_mut() = Body::Pieces(Pieces::of([b"some"]).then_fail()),
                "/panics" => panic!("asked to"),
                "/task" => {
                    let seen = tokio::task::id().to_string();
                    *response.body_mut() = Body::Pieces(Pieces::of([seen.as_bytes()]));
                }
                "/busy" => {
                    std::thread::sleep(Duration::from_millis(50));
                    let seen = tokio::task::id().to_string();
                    *response.body_mut() = Body::Pieces(Pieces::of([seen.as_bytes()]));
                }
                "/waits" => {
                    let _guard = CountDrop(dropped);
                    std::future::pending::<()>().await;
                }
                _ => {}
            }
            response
        })
    }
}

struct Everything(Arc<ServerMethod>);

impl fmt::Debug for Everything {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Everything")
    }
}

impl Router for Everything {
    fn find(&self, _: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        Ok(Arc::clone(&self.0))
    }
}

async fn serve(service: Service) -> Channel {
    Channel::new(&serve_at(service).await, ChannelConfig::default()).expect("a target")
}

async fn serve_at(service: Service) -> String {
    let method = ServerMethod::new("any", ServiceOptions::default(), Handler::raw(service));
    let router = Arc::new(Everything(Arc::new(method)));
    let address: ListenAddress = "127.0.0.1:0".parse().expect("an address");
    let server = server::bind(ServerConfig::default(), router, &[address]).await.expect("a port");
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    target
}

pub(crate) fn request(path: &str, content_type: &'static str, body: Pieces) -> Request<Pieces> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().expect("a path");
    request.headers_mut().insert("content-type", HeaderValue::from_static(content_type));
    request.headers_mut().insert("te", HeaderValue::from_static("trailers"));
    request
}

pub(crate) async fn send(channel: &Channel, request: Request<Pieces>) -> Result<Response<RawBody>, Status> {
    let options = CallOptions::default();
    let response = channel.raw(request, &options);
    tokio::time::timeout(Duration::from_secs(20), response).await.expect("a response")
}

/// Reads the pieces of a body, and its trailers.
pub(crate) async fn read(body: RawBody) -> Result<(Vec<Bytes>, Option<HeaderMap>), Status> {
    let (mut body, mut pieces) = (body, Vec::new());
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        match tokio::time::timeout(Duration::from_secs(20), frame).await.expect("a frame") {
            None => return Ok((pieces, None)),
            Some(frame) => match frame?.into_data() {
                Ok(bytes) => pieces.push(bytes),
                Err(trailers) => return Ok((pieces, trailers.into_trailers().ok())),
            },
        }
    }
}

const GRPC: &str = "application/grpc";

#[tokio::test]
async fn complete_call_is_one_piece() {
    let channel = serve(Service::default()).await;
    for path in ["/ok", "/ok?again=1"] {
        let response =
            send(&channel, request(path, GRPC, Pieces::of([b"\0\0\0\0\0"]))).await.expect("a response");
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], GRPC);
        assert_eq!(response.headers().len(), 1);
        let mut body = response.into_body();
        let (bytes, trailers) = body.take_complete().expect("it came with its end");
        assert_eq!(&bytes[..], b"\0\0\0\0\x02ok");
        let trailers = trailers.into_fields().expect("trailers");
        assert_eq!((trailers.len(), &trailers["grpc-status"]), (1, &HeaderValue::from_static("0")));
        assert_eq!(read(body).await.expect("nothing more"), (Vec::new(), None));
    }
}

#[tokio::test]
async fn all_fields_are_passed_through() {
    let channel = serve(Service::default()).await;
    for names in [&["x-a"][..], &["x-a", "x-c", "x-d"]] {
        let mut sent = request("/more", GRPC, Pieces::of([b"\0\0\0\0\0"]));
        sent.headers_mut().extend(
            names.iter().map(|name| (http::HeaderName::from_static(name), HeaderValue::from_static("b"))),
        );
        let response = send(&channel, sent).await.expect("a response");
        for name in names {
            assert_eq!(response.headers()[*name], "b");
        }
        // Our user agent and the content type; `te` is only for requests.
        assert!(!response.headers().contains_key("te"));
        assert!(response.headers()["user-agent"].to_str().is_ok_and(|agent| agent.contains("thalweg")));
        assert_eq!(response.headers().len(), names.len() + 2);
        let (pieces, trailers) = read(response.into_body()).await.expect("a body");
        assert_eq!(pieces, [&b"\0\0\0\0\x02ok"[..]]);
        let trailers = trailers.expect("trailers");
        assert_eq!(
            (&trailers["grpc-status"], &trailers["x-b"], trailers.len()),
            (&HeaderValue::from_static("0"), &HeaderValue::from_static("c"), 2)
        );
    }
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).expect("short");
    [&[0, 0, len, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

#[tokio::test]
async fn request_with_headers_and_body_in_one_read_is_complete() {
    const REQUESTS: usize = 8;
    let service = Service::default();
    let mut peer = TcpStream::connect(serve_at(service.clone()).await).await.expect("a connection");
    peer.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("it is taken");
    peer.write_all(&frame(4, 0, 0, &[])).await.expect("it is taken");
    // Reads its SETTINGS and the acknowledgement of ours; the server sleeps then.
    let mut settings = [0; 1024];
    let mut read = 0;
    while !settings[..read].ends_with(&frame(4, 1, 0, &[])) {
        read += peer.read(&mut settings[read..]).await.expect("more");
    }
    let field = |name: u8, value: &str| {
        let len = u8::try_from(value.len()).expect("short");
        [&[name, len][..], value.as_bytes()].concat()
    };
    // Static table (RFC 7541, appendix A): POST, http, and literals for the path and the content type.
    let content_type = [&[0x0f][..], &field(16, GRPC)].concat();
    let headers = [&[0x83, 0x86][..], &field(4, "/count"), &field(1, "host"), &content_type].concat();
    let mut next = 0;
    // One by one first: a connection that is the only one of its thread for some polls is read in parts.
    for requests in [1; 30].into_iter().chain([REQUESTS]) {
        let streams = (next..next + requests).map(|index| u8::try_from(2 * index + 1).expect("few"));
        let header_frames = streams.clone().flat_map(|stream| frame(1, 4, stream, &headers));
        let messages = streams.flat_map(|stream| frame(0, 1, stream, &[0; 5]));
        let batch: Vec<u8> = header_frames.chain(messages).collect();
        peer.write_all(&batch).await.expect("it is taken");
        next += requests;
        let all = async {
            while service.counts[0].load(Ordering::SeqCst) < next {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), all).await.expect("all requests");
    }
    assert_eq!(service.counts[1].load(Ordering::SeqCst), next);
    assert_eq!(service.headers_read.load(Ordering::SeqCst), 1, "identical header blocks are read once");
}

/// Returns the id of the task that handles such a request: the connection's or its own.
async fn task_of(channel: &Channel, path: &str, fields: [&'static str; 2], body: &[u8]) -> Vec<u8> {
    let [content_type, encoding] = fields;
    let mut sent = request(path, content_type, Pieces::of([body]));
    if !encoding.is_empty() {
        sent.headers_mut().insert("content-encoding", HeaderValue::from_static(encoding));
    }
    let response = send(channel, sent).await.expect("a response");
    read(response.into_body()).await.expect("a body").0.concat()
}

#[tokio::test]
async fn slow_to_decode_request_gets_a_task() {
    const JSON: &str = "application/json";
    let channel = serve(Service::default()).await;
    let task = async |fields, body| task_of(&channel, "/task", fields, body).await;
    let connections = task([JSON, ""], b"{}").await;
    assert_eq!(task([JSON, ""], b"{}").await, connections);
    assert_eq!(task([JSON, ""], b"").await, connections);
    assert_eq!(task([GRPC, ""], b"\0\0\0\0\0").await, connections);
    assert_ne!(task([GRPC, ""], b"\x01\0\0\0\x01a").await, connections, "a compressed message");
    assert_ne!(task([JSON, "gzip"], b"{}").await, connections, "a compressed body");
    assert_eq!(task([JSON, ""], b"{}").await, connections);
}

#[tokio::test]
async fn slow_handlers_get_tasks_and_quick_ones_do_not() {
    let channel = serve(Service::default()).await;
    let task = async |path| task_of(&channel, path, ["text/plain", ""], b"a").await;
    let connections = task("/task").await;
    let mut is_busy_apart = false;
    for _ in 0..10 {
        is_busy_apart |= task("/busy").await != connections;
        assert_eq!(task("/task").await, connections);
    }
    assert!(is_busy_apart);
}

#[tokio::test]
async fn non_grpc_responses_are_passed_through() {
    let channel = serve(Service::default()).await;
    let mut get = request("/missing", "text/plain", Pieces::default());
    *get.method_mut() = Method::GET;
    let response = send(&channel, get).await.expect("a response");
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let (pieces, trailers) = read(response.into_body()).await.expect("a body");
    let text = String::from_utf8(pieces.concat()).expect("text");
    let port =
        text.strip_prefix("GET http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/missing is not here"));
    assert!(port.is_some_and(|port| port.parse::<u16>().is_ok()), "{text}");
    assert!(trailers.is_none());

    let response = send(&channel, request("/refused", GRPC, Pieces::default())).await.expect("a response");
    assert_eq!(response.headers()["grpc-status"], "7");
    assert_eq!(read(response.into_body()).await.expect("an end"), (Vec::new(), None));
}

#[tokio::test]
async fn bytes_are_passed_on_as_they_arrive() {
    let channel = serve(Service::default()).await;
    let (sender, later) = mpsc::unbounded_channel();
    let mut sent = request("/echo", "text/plain", Pieces { ready: VecDeque::new(), later: Some(later) });
    sent.headers_mut().insert("x-a", HeaderValue::from_static("b"));
    let response = send(&channel, sent).await.expect("a response before the end of the request");
    assert_eq!(response.headers()["x-a"], "b");
    let mut body = response.into_body();
    // The last one would be the start of a message.
    for piece in ["a", "longer", "\0\0\0\0\u{9}ab", ""] {
        sender.send(Bytes::from(piece)).expect("it is read");
        if piece.is_empty() {
            continue;
        }
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.expect("a frame").expect("bytes");
        assert_eq!(frame.into_data().expect("bytes"), piece);
    }
    drop(sender);
    assert_eq!(read(body).await.expect("an end"), (Vec::new(), None));
}

fn message(len: usize) -> Vec<u8> {
    let mut message = vec![0];
    message.extend(u32::try_from(len).expect("short").to_be_bytes());
    message.extend((0..len).map(|index| index as u8));
    message
}

/// Sends messages in pieces of `piece_len` bytes and receives them back. Each received piece is one or more whole
/// messages.
async fn check_messages(lens: &[usize], piece_len: usize, is_cut_at_messages: bool) {
    let channel = serve(Service::default()).await;
    let (sender, later) = mpsc::unbounded_channel();
    let pieces = Pieces { ready: VecDeque::new(), later: Some(later) };
    let response = send(&channel, request("/echo", GRPC, pieces)).await.expect("a response");
    let expected: Vec<u8> = lens.iter().flat_map(|len| message(*len)).collect();
    for piece in expected.chunks(piece_len) {
        sender.send(Bytes::copy_from_slice(piece)).expect("it is read");
    }
    drop(sender);
    let (pieces, _) = read(response.into_body()).await.expect("a body");
    assert!(pieces.concat() == expected, "{lens:?} in {piece_len}");
    if is_cut_at_messages {
        let mut ends: Vec<usize> = Vec::new();
        for len in lens {
            ends.push(ends.last().unwrap_or(&0) + len + 5);
        }
        let mut end = 0;
        for piece in &pieces {
            end += piece.len();
            assert!(ends.contains(&end), "{lens:?} in {piece_len}: a piece ends at {end}");
        }
    }
}

#[tokio::test]
async fn messages_are_gathered() {
    check_messages(&[0, 1, 5, 100_000, 3, 70_000, 0], 7, true).await;
    check_messages(&[0, 1, 5, 100_000, 3, 2_000_000, 0], 50_000, true).await;
}

#[tokio::test]
async fn small_messages_are_returned_in_pieces_of_some_kib() {
    let channel = serve(Service::default()).await;
    let expected: Vec<u8> = std::iter::repeat_n(1000, 300).chain([50_000, 9, 9]).flat_map(message).collect();
    // All of it is available when the body is first read.
    let (sender, later) = mpsc::unbounded_channel();
    let mut body = Pieces::of([&expected]);
    body.later = Some(later);
    let response = send(&channel, request("/echo", GRPC, body)).await.expect("a response");
    drop(sender);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (pieces, _) = read(response.into_body()).await.expect("a body");
    assert!(pieces.concat() == expected);
    let large = pieces.iter().filter(|piece| piece.len() > 16 << 10).map(Bytes::len);
    assert_eq!(large.collect::<Vec<_>>(), [50_005]);
    assert!(pieces.iter().any(|piece| piece.len() > 10 * 1005), "not one by one");
}

#[tokio::test]
async fn message_too_large_to_gather_arrives_in_pieces() {
    check_messages(&[3, (16 << 20) + 1, 4, 5, 20 << 20], 1 << 20, false).await;
}

#[tokio::test]
async fn invalid_message_is_passed_on() {
    let channel = serve(Service::default()).await;
    for bytes in [&b"<html>"[..], b"abc", b"\0\0\0\0\x09half", b"\x02\0\0\0\x01x"] {
        for is_whole in [true, false] {
            let (sender, later) = mpsc::unbounded_channel();
            let mut pieces = Pieces::of([bytes]);
            pieces.later = (!is_whole).then_some(later);
            let response = send(&channel, request("/echo", GRPC, pieces));
            let close = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                drop(sender);
            };
            let (response, ()) = tokio::join!(response, close);
            let (pieces, _) = read(response.expect("a response").into_body()).await.expect("a body");
            assert_eq!(pieces.concat(), bytes, "whole: {is_whole}");
        }
    }
}

#[tokio::test]
async fn failing_body_resets_the_stream() {
    let channel = serve(Service::default()).await;
    let outcome = match send(&channel, request("/fails", GRPC, Pieces::default())).await {
        Ok(response) => read(response.into_body()).await.map(|_| ()),
        Err(status) => Err(status),
    };
    assert_eq!(outcome.expect_err("it was cut off").code(), Code::Internal);
    let failing = Pieces::of([b"some"]).then_fail();
    let status = send(&channel, request("/echo", GRPC, failing)).await.expect_err("it can't be sent");
    assert!(status.message().starts_with("no more of it"), "{status}");
}

#[tokio::test]
async fn panicking_handler_gives_an_internal_error() {
    let channel = serve(Service::default()).await;
    let response = send(&channel, request("/panics", GRPC, Pieces::default())).await.expect("a response");
    assert_eq!(
        (response.status(), &response.headers()["grpc-status"]),
        (StatusCode::OK, &HeaderValue::from_static("13"))
    );
    let response =
        send(&channel, request("/panics", "text/plain", Pieces::default())).await.expect("a response");
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn abandoned_call_ends_its_handler() {
    let service = Service::default();
    let channel = serve(service.clone()).await;
    let (_sender, later) = mpsc::unbounded_channel();
    let bodies = [Pieces::default(), Pieces { ready: VecDeque::new(), later: Some(later) }];
    for (count, body) in bodies.into_iter().enumerate() {
        let options = CallOptions::default();
        let call = channel.raw(request("/waits", GRPC, body), &options);
        assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err(), "it waits");
        let dropped = async {
            while service.dropped.load(Ordering::SeqCst) <= count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), dropped).await.expect("the handler is dropped");
    }
    // Dropping a response before its end does so too.
    let (sender, later) = mpsc::unbounded_channel();
    let pieces = Pieces { ready: VecDeque::new(), later: Some(later) };
    let response = send(&channel, request("/echo", GRPC, pieces)).await.expect("a response");
    drop(response);
    let closed = async {
        while sender.send(Bytes::from_static(b"more")).is_ok() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), closed).await.expect("the request is given up");
}

/// A request that its server has not processed is sent again completely, on another stream (gRFC A6).
#[tokio::test(start_paused = true)]
async fn refused_request_is_sent_again() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    for is_whole in [true, false] {
        let (sender, later) = mpsc::unbounded_channel();
        let mut body = Pieces::of([b"\0\0\0\0\x01x"]);
        body.later = (!is_whole).then_some(later);
        let call = tokio::spawn({
            let channel = channel.clone();
            async move { send(&channel, request("/echo", GRPC, body)).await }
        });
        let refused = peer.next_of(Kind::Headers).await.stream;
        let first = peer.next_of(Kind::Data).await;
        peer.reset(refused, ErrorCode::RefusedStream).send().await;
        let stream = peer.next_of(Kind::Headers).await.stream;
        let again = peer.next_of(Kind::Data).await;
        assert_eq!((again.stream, again.payload), (stream, first.payload), "whole: {is_whole}");
        drop(sender);
        peer.headers(stream, false, OK_HEADERS)
            .message(stream, false, b"y")
            .headers(stream, true, OK)
            .send()
            .await;
        let response = call.await.expect("no panic").expect("a response");
        assert_eq!(read(response.into_body()).await.expect("a body").0, [&b"\0\0\0\0\x01y"[..]]);
    }
}

/// A channel whose service config limits the calls of `/test.Echo/...`, and its peer.
async fn limited(settings: &str) -> (Channel, Peer, mpsc::UnboundedReceiver<tokio::io::DuplexStream>) {
    let json = format!(r#"{{ "methodConfig": [{{ "name": [{{ "service": "test.Echo" }}], {settings} }}] }}"#);
    connected_by(channel_config(|config| config.service_config = Some(json.into())), &[]).await
}

fn spawn_raw(channel: &Channel, request: Request<Pieces>) -> JoinHandle<Result<Response<RawBody>, Status>> {
    let call = channel.raw(request, &CallOptions::default());
    tokio::spawn(call)
}

#[tokio::test(start_paused = true)]
async fn timeout_of_the_service_config_applies_to_grpc_calls() {
    let (channel, mut peer, _accepted) = limited(r#""timeout": "2s""#).await;
    for (own, content_type, sent, ends) in [
        (None, GRPC, Some("2S"), true),
        (Some("5S"), GRPC, Some("2S"), true),
        // API layers apply the timeouts of their requests.
        (Some("1S"), GRPC, Some("1S"), false),
        (None, "application/json", None, false),
    ] {
        let mut request = request("/test.Echo/Echo", content_type, Pieces::of([b"\0\0\0\0\0"]));
        if let Some(own) = own {
            request.headers_mut().insert("grpc-timeout", HeaderValue::from_static(own));
        }
        let (started, call) = (Instant::now(), spawn_raw(&channel, request));
        let headers = soon(peer.next_of(Kind::Headers)).await.text();
        let timeout = headers.lines().find_map(|line| line.strip_prefix("grpc-timeout: "));
        assert_eq!(timeout, sent, "{own:?}, {content_type}");
        if ends {
            let status = soon(call).await.expect("no panic").expect_err("no response");
            assert_eq!((status.code(), started.elapsed().as_secs()), (Code::DeadlineExceeded, 2), "{status}");
        } else {
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(!call.is_finished(), "{own:?}, {content_type}");
            call.abort();
        }
        assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);
    }
    let started = Instant::now();
    let call = spawn_raw(&channel, request("/test.Echo/Echo", GRPC, Pieces::of([b"\0\0\0\0\0"])));
    let stream = soon(peer.next_of(Kind::Headers)).await.stream;
    peer.headers(stream, false, OK_HEADERS).message(stream, false, b"x").send().await;
    let body = soon(call).await.expect("no panic").expect("a response").into_body();
    let status = read(body).await.expect_err("no end");
    assert_eq!((status.code(), started.elapsed().as_secs()), (Code::DeadlineExceeded, 2), "{status}");
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.code(), ErrorCode::Cancel);
}

#[tokio::test(start_paused = true)]
async fn message_sizes_of_the_service_config_apply_to_grpc_calls() {
    let settings = r#""maxRequestMessageBytes": 3, "maxResponseMessageBytes": 4"#;
    let (channel, mut peer, _accepted) = limited(settings).await;
    let message = |len: u8| [&[0, 0, 0, 0, len][..], &vec![0; len.into()]].concat();
    let path = "/test.Echo/Echo";
    let too_large = |outcome: Result<Response<RawBody>, Status>, named: &str| {
        let status = outcome.expect_err("it is too large");
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains(named), "{status}");
    };
    let pieces = [message(3), message(4)].concat();
    let whole = Pieces::of([&pieces]);
    too_large(
        soon(spawn_raw(&channel, request(path, GRPC, whole))).await.expect("no panic"),
        "maxRequestMessageBytes",
    );
    let streamed =
        Pieces { later: Some(mpsc::unbounded_channel().1), ..Pieces::of([&pieces[..10], &pieces[10..]]) };
    too_large(
        soon(spawn_raw(&channel, request(path, GRPC, streamed))).await.expect("no panic"),
        "maxRequestMessageBytes",
    );
    for (len, is_whole) in [(4, true), (5, true), (4, false), (5, false)] {
        let call = spawn_raw(&channel, request(path, GRPC, Pieces::of([&message(3)])));
        // The beginning of the streamed request above was sent, too.
        let mut data = soon(peer.next_of(Kind::Data)).await;
        while !data.end_stream {
            data = soon(peer.next_of(Kind::Data)).await;
        }
        let stream = data.stream;
        peer.headers(stream, false, OK_HEADERS);
        if !is_whole {
            peer.send().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        peer.message(stream, false, &vec![0; len]).headers(stream, true, OK).send().await;
        let outcome = match soon(call).await.expect("no panic") {
            Ok(response) => {
                let head = response.map(read);
                head.into_body().await.map(|_| Response::default())
            }
            Err(status) => Err(status),
        };
        if len == 4 {
            outcome.map(drop).expect("small enough");
        } else {
            too_large(outcome, "maxResponseMessageBytes");
        }
    }
    // Other protocols apply the limits to their own messages.
    let call = spawn_raw(&channel, request(path, "application/json", Pieces::of([&[0xff; 20]])));
    let stream = soon(peer.next_of(Kind::Data)).await.stream;
    peer.headers(stream, true, &[(":status", "200")]).send().await;
    soon(call).await.expect("no panic").expect("a response");
}
