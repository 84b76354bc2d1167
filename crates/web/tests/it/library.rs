//! An annotated service, implemented directly on the engine, and requests to it.

use std::fmt::{self, Write as _};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Body as _;
use serde_json::{Value, json};
use thalweg_engine::server::{
    Handler, LocalCalls, MessageResponse, Router, ServerConfig, ServerMethod, StreamingCall,
    StreamingHandler, UnaryHandler,
};
use thalweg_engine::{Code, Encode, Envelope, Incoming, RequestHead, ServiceOptions, Source, Status};
use thalweg_protobuf::{MessageType, Schema, json as protojson, sources};
use thalweg_web::body::Body;
use thalweg_web::{Web, WebError, WebService};
use tokio::sync::mpsc;

use crate::declared::google_api;

const SOURCE: &str = r#"
syntax = "proto3"; package library;
import "google/api/annotations.proto";
import "google/api/resources.proto";
message Order {
    string name = 1; string text = 2; int32 count = 3; repeated string words = 4; int64 long_number = 5;
    repeated double numbers = 6; Order inner = 7;
}
message File { string name = 1; google.api.HttpBody raw = 2; }
message Why { string main_reason = 1; }
service Library {
    rpc One(Order) returns (Order) {
        option (google.api.http) = {
            get: "/v1/one/{name}"
            additional_bindings { post: "/v1/one" body: "*" }
            additional_bindings { put: "/v1/one/{name}" body: "words" }
            additional_bindings { get: "/v1/words" response_body: "words" }
            additional_bindings { post: "/v1/one/{name}:cancel" }
        };
    }
    rpc Many(Order) returns (stream Order) {
        option (google.api.http) = {
            get: "/v1/many/{name}"
            additional_bindings { post: "/v1/many" body: "*" }
            additional_bindings { get: "/v1/many-words" response_body: "words" }
        };
    }
    rpc Fold(stream Order) returns (Order) {
        option (google.api.http) = {
            post: "/v1/fold/{name}" body: "*"
            additional_bindings { put: "/v1/fold" body: "text" }
            additional_bindings { put: "/v1/fold-words" body: "words" }
            additional_bindings { put: "/v1/fold/{inner.name}" body: "inner" }
            additional_bindings { get: "/v1/fold" }
        };
    }
    rpc Chat(stream Order) returns (stream Order) {
        option (google.api.http) = { post: "/v1/chat" body: "*" };
    }
    rpc Put(File) returns (google.api.HttpBody) {
        option (google.api.http) = { put: "/v1/files/{name}" body: "raw" };
    }
    rpc Get(Order) returns (stream google.api.HttpBody) {
        option (google.api.http) = { get: "/v1/files/{name}" };
    }
    rpc Upload(stream File) returns (Order) {
        option (google.api.http) = { post: "/v1/files/{name}" body: "raw" };
    }
    rpc Absent(Order) returns (Order) { option (google.api.http) = { get: "/v1/absent" }; }
    rpc Plain(Order) returns (Order);
    rpc PlainChat(stream Order) returns (stream Order);
}
"#;

static DESCRIPTORS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let read = |name: &str| if name == "library.proto" { Some(SOURCE.to_owned()) } else { google_api(name) };
    sources::compile(&["library.proto"], read).unwrap()
});

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::from_descriptor_set(&DESCRIPTORS).unwrap());

/// Returns a message type by its name without the package.
fn message_type(name: &str) -> MessageType<'static> {
    SCHEMA.message(name).unwrap_or_else(|| SCHEMA.message(&format!("library.{name}")).unwrap())
}

/// Converts JSON to wire bytes.
fn wire(name: &str, json: &Value) -> Vec<u8> {
    protojson::to_wire(message_type(name), json.to_string().as_bytes()).unwrap()
}

fn value(name: &str, wire: &[u8]) -> Value {
    serde_json::from_str(&protojson::from_wire(message_type(name), wire).unwrap()).unwrap()
}

/// Returns a failure with all parts.
pub(crate) fn failure() -> Status {
    let why = wire("Why", &json!({ "mainReason": "gone" }));
    let record = |tag: u8, value: &[u8]| [&[tag, value.len() as u8], value].concat();
    let any = [record(0x0a, b"a/library.Why"), record(0x12, &why)].concat();
    let mut status = Status::with_details(Code::NotFound, "no such book", record(0x1a, &any).into());
    status.metadata_mut().insert("retry-after", "7".parse().expect("a value"));
    status
}

/// JSON of [`failure`].
pub(crate) const FAILURE: &str =
    r#"{"code":5,"message":"no such book","details":[{"@type":"a/library.Why","mainReason":"gone"}]}"#;

/// Counts its drop.
struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
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

struct Output {
    metadata: HeaderMap,
    message: Value,
    trailers: HeaderMap,
}

/// Follows the text of an order and responds with the order.
async fn execute(head: RequestHead, order: Value, dropped: Arc<AtomicUsize>) -> Result<Output, Status> {
    let mut output = Output { metadata: HeaderMap::new(), message: order, trailers: HeaderMap::new() };
    let text = output.message["text"].as_str().unwrap_or_default().to_owned();
    match text.split_once(' ').unwrap_or((&text, "")) {
        ("fail", _) => return Err(failure()),
        ("sleep", _) => {
            let _dropped = CountDrop(dropped);
            std::future::pending::<()>().await;
        }
        ("yield", _) => tokio::task::yield_now().await,
        ("timeout", _) => output.message = json!({ "text": format!("{:?}", head.timeout) }),
        ("long", len) => output.message = json!({ "text": "x".repeat(len.parse().unwrap()) }),
        ("metadata", _) => {
            let mut text: Vec<String> = Vec::new();
            for (name, value) in &head.metadata {
                text.push(format!("{name}={}", value.to_str().unwrap()));
            }
            text.sort();
            output.message = json!({ "words": text });
            for (headers, name) in [(&mut output.metadata, "x-first"), (&mut output.trailers, "x-last")] {
                headers.insert(name, HeaderValue::from_static("1"));
                headers.insert("content-length", HeaderValue::from_static("3"));
            }
        }
        _ => {}
    }
    Ok(output)
}

struct One {
    input: &'static str,
    output: &'static str,
    dropped: Arc<AtomicUsize>,
}

impl UnaryHandler for One {
    type Future = Pin<Box<dyn Future<Output = Self::Output> + Send>>;
    type Output = Result<(&'static str, Output), Status>;

    fn start(&self, head: &RequestHead, mut request: Envelope<'_>) -> Result<Self::Future, Status> {
        let (message, output) = (value(self.input, request.open()?.as_bytes()), self.output);
        let obeyed = execute(head.clone(), message, Arc::clone(&self.dropped));
        Ok(Box::pin(async move {
            let mut obeyed = obeyed.await?;
            if output == BODY {
                // Returns the received data, preceded by the name.
                let (raw, name) = (obeyed.message["raw"].clone(), obeyed.message["name"].clone());
                let data = STANDARD.decode(raw["data"].as_str().unwrap_or_default()).unwrap();
                let data = [name.as_str().unwrap().as_bytes(), b":", &data].concat();
                obeyed.message = json!({ "contentType": raw["contentType"], "data": STANDARD.encode(data) });
            }
            Ok((output, obeyed))
        }))
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        let (name, output) = output.as_ref().map_err(Status::clone)?;
        let broken = output.message["text"] == "broken";
        let message = Wire(if broken { b"\xff".to_vec() } else { wire(name, &output.message) });
        Ok(MessageResponse { metadata: &output.metadata, message, trailers: Some(&output.trailers) })
    }
}

const BODY: &str = "google.api.HttpBody";

/// A stream of requests.
struct Orders(Incoming, &'static str);

impl Orders {
    async fn next(&mut self) -> Result<Option<Value>, Status> {
        let Some(prefix) = poll_fn(|cx| self.0.poll_prefix(cx)).await.transpose()? else { return Ok(None) };
        Ok(Some(value(self.1, self.0.take(prefix)?.as_bytes())))
    }
}

pub(crate) type Sent = Result<Wire, Status>;

/// Messages sent by a task.
pub(crate) struct ResponseStream(pub(crate) mpsc::Receiver<Sent>);

impl Stream for ResponseStream {
    type Item = Sent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Sent>> {
        self.0.poll_recv(cx)
    }
}

impl Source for ResponseStream {
    type Message = Wire;
}

/// Sends `count` messages and then follows the text of the order: `late` fails, `hang` never ends, `broken` sends an
/// invalid message. `slow` waits 2 s before each message.
async fn many(order: Value, response_type: &'static str, to: mpsc::Sender<Sent>, dropped: Arc<AtomicUsize>) {
    let text = order["text"].as_str().unwrap_or_default().to_owned();
    for number in 1..=order["count"].as_i64().unwrap_or_default() {
        if text.starts_with("slow") {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        }
        let message = if response_type == BODY {
            json!({ "contentType": "text/x-count", "data": STANDARD.encode(format!("{number};")) })
        } else {
            json!({ "count": number, "words": [number.to_string()] })
        };
        if to.send(Ok(Wire(wire(response_type, &message)))).await.is_err() {
            break;
        }
    }
    match text.rsplit(' ').next().unwrap_or_default() {
        "late" => drop(to.send(Err(failure())).await),
        "broken" => drop(to.send(Ok(Wire(b"\xff".to_vec()))).await),
        "hang" => to.closed().await,
        _ => {}
    }
    dropped.fetch_add(usize::from(to.is_closed()), Ordering::SeqCst);
}

/// Echoes each request; one with the text `fail` ends the call.
async fn chat(mut orders: Orders, to: mpsc::Sender<Sent>, dropped: Arc<AtomicUsize>) {
    loop {
        let sent = match orders.next().await {
            Ok(None) => break,
            Ok(Some(order)) if order["text"] == "fail" => Err(failure()),
            Ok(Some(order)) => Ok(Wire(wire("Order", &order))),
            Err(status) => Err(status),
        };
        let is_last = sent.is_err();
        if to.send(sent).await.is_err() || is_last {
            break;
        }
    }
    dropped.fetch_add(usize::from(to.is_closed()), Ordering::SeqCst);
}

struct Streaming {
    name: &'static str,
    dropped: Arc<AtomicUsize>,
}

impl StreamingHandler for Streaming {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (name, dropped, head) = (self.name, Arc::clone(&self.dropped), head.clone());
        let input = if name == "Upload" { "File" } else { "Order" };
        let mut orders = Orders(call.requests(), input);
        Box::pin(async move {
            let (to, responses) = mpsc::channel(1);
            let mut trailers = HeaderMap::new();
            trailers.insert("x-last", HeaderValue::from_static("2"));
            let mut metadata = HeaderMap::new();
            metadata.insert("x-first", HeaderValue::from_static("2"));
            match name {
                "Fold" | "Upload" => match folded(orders, head, dropped).await {
                    Err(status) => call.fail(&status),
                    Ok(output) => call.respond(Ok(MessageResponse {
                        metadata: &metadata,
                        message: Wire(wire("Order", &output)),
                        trailers: Some(&trailers),
                    })),
                },
                "Chat" | "PlainChat" => {
                    tokio::spawn(chat(orders, to, dropped));
                    call.respond_stream(&metadata, ResponseStream(responses), Some(trailers)).await;
                }
                _ => {
                    let order = match orders.next().await {
                        Ok(order) => order.unwrap_or_default(),
                        Err(status) => return call.fail(&status),
                    };
                    if let Err(status) = execute(head, order.clone(), Arc::clone(&dropped)).await {
                        return call.fail(&status);
                    }
                    tokio::spawn(many(order, if name == "Get" { BODY } else { "Order" }, to, dropped));
                    call.respond_stream(&metadata, ResponseStream(responses), Some(trailers)).await;
                }
            }
        })
    }
}

/// Returns all requests as the words of one response.
async fn folded(mut orders: Orders, head: RequestHead, dropped: Arc<AtomicUsize>) -> Result<Value, Status> {
    let mut words = Vec::new();
    while let Some(order) = orders.next().await? {
        words.push(Value::from(order.to_string()));
        execute(head.clone(), order, Arc::clone(&dropped)).await?;
    }
    Ok(json!({ "words": words }))
}

pub(crate) struct Methods(pub(crate) Vec<Arc<ServerMethod>>);

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Methods")
    }
}

impl Router for Methods {
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        let found = self.0.iter().find(|method| path.strip_prefix(b"/") == Some(method.name().as_bytes()));
        found.cloned().ok_or_else(|| Status::new(Code::Unimplemented, "nothing is called so"))
    }

    fn method_names(&self) -> Vec<Arc<str>> {
        self.0.iter().map(|method| Arc::clone(method.name())).collect()
    }
}

/// The service, and the number of handlers dropped before their end.
pub(crate) struct Library {
    pub(crate) service: WebService,
    pub(crate) dropped: Arc<AtomicUsize>,
}

impl Library {
    pub(crate) fn new() -> Library {
        Library::with(Web::new(), &ServiceOptions::default())
    }

    pub(crate) fn with(web: Web, options: &ServiceOptions) -> Library {
        let dropped = Arc::<AtomicUsize>::default();
        let unary = |input, output| Handler::unary(One { input, output, dropped: Arc::clone(&dropped) });
        let handler = |name| match name {
            "One" | "Plain" => unary("Order", "Order"),
            "Put" => unary("File", BODY),
            name => Handler::streaming(Streaming { name, dropped: Arc::clone(&dropped) }),
        };
        let names = ["Chat", "Fold", "Get", "Many", "One", "Plain", "PlainChat", "Put", "Upload"];
        let methods = names.map(|name| {
            Arc::new(ServerMethod::new(&format!("library.Library/{name}"), options.clone(), handler(name)))
        });
        let calls = LocalCalls::new(&ServerConfig::default(), Arc::new(Methods(methods.to_vec())));
        let service = web.descriptors(&DESCRIPTORS[..]).into_service(calls).unwrap();
        Library { service, dropped }
    }

    /// Returns the status, the named headers and the body of the response, one per line.
    pub(crate) async fn response_text(&self, request: Request<Body>, names: &[&str]) -> String {
        let (mut response, body) = self.exchange(request).await;
        let mut text = response.status().as_u16().to_string();
        for name in names {
            for value in response.headers_mut().get_all(*name) {
                write!(text, "\n{name}: {}", String::from_utf8_lossy(value.as_bytes())).unwrap();
            }
        }
        write!(text, "\n{body}").unwrap();
        text
    }

    /// Returns the response and its body as text, with trailers or the reason of a truncation.
    pub(crate) async fn exchange(&self, request: Request<Body>) -> (Response<()>, String) {
        let (head, mut body) = self.service.call(request).await.into_parts();
        let mut text = String::new();
        while let Some(frame) = next_frame(&mut body).await {
            text += &frame;
        }
        (Response::from_parts(head, ()), text)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

/// Returns an echo service; all its methods are unary.
pub(crate) fn echo(descriptors: Vec<u8>, methods: &[&str]) -> WebService {
    echo_with(Web::new(), descriptors, methods).unwrap()
}

/// Like [`echo`], with the configuration `web`.
pub(crate) fn echo_with(web: Web, descriptors: Vec<u8>, methods: &[&str]) -> Result<WebService, WebError> {
    let methods = methods
        .iter()
        .map(|name| Arc::new(ServerMethod::new(name, ServiceOptions::default(), Handler::unary(Echo))))
        .collect();
    let calls = LocalCalls::new(&ServerConfig::default(), Arc::new(Methods(methods)));
    web.descriptors(descriptors).into_service(calls)
}

struct Echo;

static NOTHING: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

impl UnaryHandler for Echo {
    type Future = std::future::Ready<Vec<u8>>;
    type Output = Vec<u8>;

    fn start(&self, _: &RequestHead, mut request: Envelope<'_>) -> Result<Self::Future, Status> {
        Ok(std::future::ready(request.open()?.as_bytes().to_vec()))
    }

    fn response(output: &Vec<u8>) -> Result<MessageResponse<'_, impl Encode>, Status> {
        Ok(MessageResponse { metadata: &NOTHING, message: Wire(output.clone()), trailers: None })
    }
}

/// Returns the next part of a body: text, `<name: value>` for trailers, or `<cut off: why>`.
pub(crate) async fn next_frame(body: &mut Body) -> Option<String> {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
    Some(match frame.map(http_body::Frame::into_data) {
        Ok(Ok(data)) => String::from_utf8_lossy(&data).into_owned(),
        Ok(Err(frame)) => {
            let trailers = frame.into_trailers().unwrap();
            let text = trailers.iter().map(|(name, value)| format!("<{name}: {}>", value.to_str().unwrap()));
            text.collect()
        }
        Err(status) => format!("<cut off: {}>", status.message()),
    })
}

/// Builds a request from `METHOD target` and lines with headers. JSON is the default content type.
pub(crate) fn request(head: &str, body: &str) -> Request<Body> {
    request_with(head, Body::full(body.to_owned()))
}

pub(crate) fn request_with(head: &str, body: Body) -> Request<Body> {
    let mut lines = head.lines().map(str::trim).filter(|line| !line.is_empty());
    let (method, target) = lines.next().unwrap().split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(target);
    let headers = request.headers_mut().unwrap();
    for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
        headers.append(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    if !headers.contains_key("content-type") && (method == "POST" || !body.is_end_stream()) {
        headers.insert("content-type", HeaderValue::from_static("application/json"));
    }
    if headers.get("content-type").is_some_and(|value| value == "none") {
        headers.remove("content-type");
    }
    request.body(body).unwrap()
}

/// Returns a body and its sender; dropping the sender ends the body.
pub(crate) fn channel_body() -> (mpsc::UnboundedSender<Result<Bytes, Status>>, Body) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Body::new(Sending(receiver)))
}

struct Sending(mpsc::UnboundedReceiver<Result<Bytes, Status>>);

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(http_body::Frame::data)))
    }
}
