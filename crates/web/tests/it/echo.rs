//! A service of four methods, implemented directly on the engine, and requests to it in all protocols.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Version};
use http_body::{Body as _, Frame};
use thalweg_engine::server::{
    Handler, LocalCalls, MessageResponse, Router, ServerConfig, ServerMethod, StreamingCall,
    StreamingHandler, UnaryHandler,
};
use thalweg_engine::{Code, Encode, Envelope, Incoming, RequestHead, ServiceOptions, Source, Status};
use thalweg_protobuf::{Schema, json, sources};
use thalweg_web::body::Body;
use thalweg_web::{Web, WebService};

const SOURCE: &str = r#"
syntax = "proto3"; package echo;
message Order { string text = 1; int32 count = 2; int64 big = 3; bytes data = 4; Order inner = 5; }
service Echo {
    rpc One(Order) returns (Order);
    rpc Look(Order) returns (Order) { option idempotency_level = NO_SIDE_EFFECTS; }
    rpc Fold(stream Order) returns (Order);
    rpc Many(Order) returns (stream Order);
    rpc Chat(stream Order) returns (stream Order);
}
service Absent { rpc One(Order) returns (Order); }
"#;

static DESCRIPTORS: LazyLock<Vec<u8>> =
    LazyLock::new(|| sources::compile(&["echo.proto"], |_| Some(SOURCE.to_owned())).unwrap());

pub(crate) fn descriptors() -> &'static [u8] {
    &DESCRIPTORS
}

/// Counters of the handlers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) dropped: Arc<AtomicUsize>,
    pub(crate) started: Arc<AtomicUsize>,
}

/// Counts its drop.
struct CountDrop(Counters);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) struct Wire(pub(crate) Vec<u8>);

impl Encode for Wire {
    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// Returns an order in wire format: a text, and a count unless it is 0.
pub(crate) fn order(text: &str, count: u8) -> Vec<u8> {
    let json = format!("{{\"text\":{},\"count\":{count}}}", serde_json::Value::from(text));
    let schema = Schema::from_descriptor_set(descriptors()).unwrap();
    json::to_wire(schema.message("echo.Order").unwrap(), json.as_bytes()).unwrap()
}

fn read(schema: &Schema, wire: &[u8]) -> (String, usize) {
    let message = thalweg_protobuf::Message::decode(schema.message("echo.Order").unwrap(), wire.to_vec());
    let message = message.unwrap();
    let order = message.as_ref();
    let text = match order.get("text") {
        Some(thalweg_protobuf::Value::String(text)) => text.to_owned(),
        _ => String::new(),
    };
    let count = match order.get("count") {
        Some(thalweg_protobuf::Value::I32(count)) => count as usize,
        _ => 0,
    };
    (text, count)
}

/// Returns a failure with all parts.
pub(crate) fn failure() -> Status {
    let detail = [&b"\x0a\x1etype.googleapis.com/echo.Order"[..], b"\x12\x05\x0a\x03why"].concat();
    let mut details = vec![0x08, 10, 0x1a, detail.len() as u8];
    details.extend(detail);
    let mut status = Status::with_details(Code::Aborted, "ganz: ü", details.into());
    status.metadata_mut().insert("x-why", "tired".parse().expect("a value"));
    status
}

struct Output {
    metadata: HeaderMap,
    message: Wire,
    trailers: HeaderMap,
}

/// Follows the text of an order and responds with an order.
async fn execute(
    counters: Counters,
    schema: Schema,
    head: RequestHead,
    wire: Vec<u8>,
) -> Result<Output, Status> {
    counters.started.fetch_add(1, Ordering::SeqCst);
    let (text, _) = read(&schema, &wire);
    let (mut metadata, mut trailers) = (HeaderMap::new(), HeaderMap::new());
    let mut message = wire;
    match text.split_once(' ').unwrap_or((&text, "")) {
        ("fail", _) => return Err(failure()),
        ("panic", _) => panic!("asked to"),
        ("sleep", _) => {
            let _dropped = CountDrop(counters);
            std::future::pending::<()>().await;
        }
        ("yield", _) => tokio::task::yield_now().await,
        ("size", size) => message = order(&"x".repeat(size.parse().unwrap()), 0),
        ("timeout", _) => {
            let remaining = head.timeout.map(|remaining| remaining.as_millis() / 100 * 100);
            message = order(&format!("{remaining:?}"), 0);
        }
        ("broken", _) => message = b"\xff".to_vec(),
        ("metadata", _) => {
            for (name, value) in head.metadata.iter().filter(|(name, _)| name.as_str().starts_with("x-")) {
                metadata.append(name, value.clone());
                trailers.append(HeaderName::try_from(format!("{name}-t")).unwrap(), value.clone());
            }
            if let Some(connection) = &head.connection {
                let address = HeaderValue::try_from(format!("{:?}", connection.remote_addr())).unwrap();
                metadata.insert("x-connection", address);
            }
        }
        _ => {}
    }
    Ok(Output { metadata, message: Wire(message), trailers })
}

struct One(Counters, Schema);

impl UnaryHandler for One {
    type Future = Pin<Box<dyn Future<Output = Self::Output> + Send>>;
    type Output = Result<Output, Status>;

    fn start(&self, head: &RequestHead, mut request: Envelope<'_>) -> Result<Self::Future, Status> {
        let wire = request.open()?.as_bytes().to_vec();
        Ok(Box::pin(execute(self.0.clone(), self.1.clone(), head.clone(), wire)))
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        let output = output.as_ref().map_err(Status::clone)?;
        let message = Wire(output.message.0.clone());
        Ok(MessageResponse { metadata: &output.metadata, message, trailers: Some(&output.trailers) })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Fold,
    Many,
    Chat,
}

struct Streaming(Counters, Schema, Kind);

/// Returns the next message of a stream.
pub(crate) async fn next(requests: &mut Incoming) -> Result<Option<Vec<u8>>, Status> {
    let Some(prefix) = poll_fn(|cx| requests.poll_prefix(cx)).await.transpose()? else { return Ok(None) };
    Ok(Some(requests.take(prefix)?.as_bytes().to_vec()))
}

impl StreamingHandler for Streaming {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (counters, schema, kind, head) = (self.0.clone(), self.1.clone(), self.2, head.clone());
        let mut requests = call.requests();
        Box::pin(async move {
            if kind == Kind::Chat {
                counters.started.fetch_add(1, Ordering::SeqCst);
                let mut metadata = HeaderMap::new();
                if let Some(value) = head.metadata.get("x-a") {
                    metadata.insert("x-a", value.clone());
                }
                let dropped = CountDrop(counters);
                call.respond_stream(
                    &metadata,
                    Chat { requests, schema, _dropped: dropped },
                    Some(metadata.clone()),
                )
                .await;
                return;
            }
            let mut folded = (String::new(), 0);
            loop {
                match next(&mut requests).await {
                    Ok(None) => break,
                    Ok(Some(wire)) => {
                        let (text, count) = read(&schema, &wire);
                        folded = (folded.0 + &text, folded.1 + count);
                    }
                    Err(status) => return call.fail(&status),
                }
            }
            let wire = order(&folded.0, folded.1 as u8);
            match execute(counters.clone(), schema, head, wire).await {
                Err(status) => call.fail(&status),
                Ok(output) if kind == Kind::Fold => {
                    let Output { metadata, message, trailers } = &output;
                    let message = Wire(message.0.clone());
                    call.respond(Ok(MessageResponse { metadata, message, trailers: Some(trailers) }));
                }
                Ok(output) => {
                    let remaining = folded.1;
                    let many = Many { remaining, text: folded.0, _dropped: CountDrop(counters) };
                    call.respond_stream(&output.metadata, many, Some(output.trailers)).await;
                }
            }
        })
    }
}

/// `remaining` messages with the same text, numbered down to 1. A text that starts with `late` ends with a failure.
struct Many {
    remaining: usize,
    text: String,
    _dropped: CountDrop,
}

impl Stream for Many {
    type Item = Result<Wire, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.text.starts_with("forever") && self.remaining == 1 {
            return Poll::Pending;
        }
        let Some(remaining) = self.remaining.checked_sub(1) else {
            return Poll::Ready(self.text.starts_with("late").then(|| Err(failure())));
        };
        let wire = order(&self.text, self.remaining as u8);
        self.remaining = remaining;
        Poll::Ready(Some(Ok(Wire(wire))))
    }
}

impl Source for Many {
    type Message = Wire;
}

struct Chat {
    requests: Incoming,
    schema: Schema,
    _dropped: CountDrop,
}

impl Stream for Chat {
    type Item = Result<Wire, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let prefix = match this.requests.poll_prefix(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(status))),
            Poll::Ready(Some(Ok(prefix))) => prefix,
        };
        let wire = this.requests.take(prefix).map(|payload| payload.as_bytes().to_vec());
        Poll::Ready(Some(wire.and_then(|wire| match &*read(&this.schema, &wire).0 {
            "fail" => Err(failure()),
            "broken" => Ok(Wire(b"\xff".to_vec())),
            _ => Ok(Wire(wire)),
        })))
    }
}

impl Source for Chat {
    type Message = Wire;
}

impl Router for Methods {
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        let path = String::from_utf8_lossy(path);
        let method = self.0.get(&*path).cloned();
        method.ok_or_else(|| Status::new(Code::Unimplemented, format!("nothing is called {path}")))
    }

    fn method_names(&self) -> Vec<Arc<str>> {
        self.0.values().map(|method| Arc::clone(method.name())).collect()
    }
}

struct Methods(BTreeMap<String, Arc<ServerMethod>>);

impl std::fmt::Debug for Methods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Methods")
    }
}

/// Returns the calls of the service and the counters of its handlers.
pub(crate) fn calls(options: &ServiceOptions) -> (LocalCalls, Counters) {
    let (counters, schema) = (Counters::default(), Schema::from_descriptor_set(descriptors()).unwrap());
    let mut methods = BTreeMap::new();
    let mut add = |name: &str, handler: Handler| {
        let method = ServerMethod::new(&format!("echo.Echo/{name}"), options.clone(), handler);
        methods.insert(format!("/echo.Echo/{name}"), Arc::new(method));
    };
    let streaming = |kind| Handler::streaming(Streaming(counters.clone(), schema.clone(), kind));
    add("One", Handler::unary(One(counters.clone(), schema.clone())));
    add("Look", Handler::unary(One(counters.clone(), schema.clone())));
    add("Fold", streaming(Kind::Fold));
    add("Many", streaming(Kind::Many));
    add("Chat", streaming(Kind::Chat));
    (LocalCalls::new(&ServerConfig::default(), Arc::new(Methods(methods))), counters)
}

/// Returns the service with all protocols.
pub(crate) fn service() -> WebService {
    serve(Web::new().descriptors(descriptors()), &ServiceOptions::default()).0
}

pub(crate) fn serve(web: Web, options: &ServiceOptions) -> (WebService, Counters) {
    let (calls, counters) = calls(options);
    (web.into_service(calls).unwrap(), counters)
}

/// Builds a request from a line with method and path, and lines with headers. It is HTTP/1.1 if the first line says so.
pub(crate) fn request(head: &str, body: impl Into<Body>) -> Request<Body> {
    let mut lines = head.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut first = lines.next().unwrap().split(' ');
    let mut request = Request::builder().method(first.next().unwrap()).uri(first.next().unwrap());
    request =
        request.version(if first.next() == Some("HTTP/1.1") { Version::HTTP_11 } else { Version::HTTP_2 });
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    request.body(body.into()).unwrap()
}

/// A body that yields these pieces. It ends only after a `None`.
pub(crate) fn pieces(pieces: impl IntoIterator<Item = Option<Vec<u8>>>) -> Body {
    Body::new(Pieces(pieces.into_iter().collect::<Vec<_>>().into_iter()))
}

struct Pieces(std::vec::IntoIter<Option<Vec<u8>>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.0.next() {
            Some(Some(piece)) => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
            Some(None) => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct FullResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl FullResponse {
    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    /// Returns status and headers, except headers that all responses have.
    pub(crate) fn head(&self) -> String {
        format!("{} {}", self.status, header_list(&self.headers))
    }
}

pub(crate) fn header_list(headers: &HeaderMap) -> String {
    let mut lines: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    lines.sort();
    lines.join(", ")
}

pub(crate) async fn send(service: &WebService, request: Request<Body>) -> FullResponse {
    collect(in_time(service.call(request)).await).await
}

pub(crate) async fn collect(response: Response<Body>) -> FullResponse {
    let (head, mut body) = response.into_parts();
    let mut collected = FullResponse {
        status: head.status.as_u16(),
        headers: head.headers,
        body: Vec::new(),
        trailers: None,
    };
    while let Some(frame) = in_time(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))).await {
        match frame.unwrap().into_data() {
            Ok(piece) => collected.body.extend_from_slice(&piece),
            Err(frame) => collected.trailers = frame.into_trailers().ok(),
        }
    }
    collected
}

/// Returns the next piece of a body if it is ready.
pub(crate) fn ready_piece(body: &mut Body) -> Option<Bytes> {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    match Pin::new(body).poll_frame(&mut cx) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
        _ => None,
    }
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("it takes too long")
}

/// Returns an envelope.
pub(crate) fn envelope(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![flags];
    out.extend((payload.len() as u32).to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// Returns envelopes as text: `0 payload | 2 payload`.
pub(crate) fn envelopes(mut body: &[u8]) -> String {
    let mut words = String::new();
    while let [flags, a, b, c, d, rest @ ..] = body {
        let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let separator = if words.is_empty() { "" } else { " | " };
        write!(words, "{separator}{flags} {}", String::from_utf8_lossy(&rest[..len])).unwrap();
        body = &rest[len..];
    }
    words
}
