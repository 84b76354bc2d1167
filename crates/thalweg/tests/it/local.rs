//! In-process calls without a connection, compared with the same calls over a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg::bytes::Bytes;
use thalweg::interceptor::{Call, Next, head};
use thalweg::metadata::MetadataMap;
use thalweg::server::{Methods, ServerBuilder, Service, Trailers};
use thalweg::{
    CallOptions, Channel, Code, Method, Raw, Request, Response, Server, ServiceOptions, Status, Stream,
    Streaming,
};
use thalweg_engine::RequestHead;
use thalweg_engine::server::{LocalCalls, LocalResponse, LocalStream};

#[cfg(feature = "opentelemetry")]
use crate::support::recorded::Recorded;
#[cfg(feature = "opentelemetry")]
use crate::support::spans::{Spans, check as check_spans};
use crate::support::{Receiver, connect, items, poll_once, raw, soon, start, until};

const METHODS: [&str; 4] =
    ["/test.Orders/One", "/test.Orders/Fold", "/test.Orders/Many", "/test.Orders/Chat"];

/// Obeys the first message of a request; echoes other messages.
#[derive(Clone, Default)]
struct Orders {
    /// Handlers and streams that were dropped early.
    dropped: Arc<AtomicUsize>,
    /// Responses taken from a `flood`.
    flooded: Arc<AtomicUsize>,
    options: ServiceOptions,
}

struct CountDrop(Arc<AtomicUsize>, bool);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(usize::from(self.1), Ordering::SeqCst);
    }
}

fn details() -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert("x-why", "tired".parse().expect("ASCII"));
    metadata.insert("content-type", "text/html".parse().expect("ASCII"));
    Status::with_details_and_metadata(Code::Aborted, "ganz: ü %", Bytes::from_static(b"\0\xff"), metadata)
}

impl Orders {
    async fn obey(&self, order: Raw, metadata: &MetadataMap) -> Result<Response<Raw>, Status> {
        let text = String::from_utf8_lossy(&order.0).into_owned();
        let mut response = Response::new(order);
        match text.split_once(' ').unwrap_or((&text, "")) {
            ("sleep", _) => {
                let mut dropped = CountDrop(Arc::clone(&self.dropped), true);
                tokio::time::sleep(Duration::from_secs(3600)).await;
                dropped.1 = false;
            }
            ("yield", _) => tokio::task::yield_now().await,
            ("panic", _) => panic!("asked to"),
            ("fail", _) => return Err(details()),
            ("fine", _) => return Err(Status::new(Code::Ok, "fine")),
            ("huge", _) => {
                response.metadata_mut().insert("x-huge", "h".repeat(20_000).parse().expect("ASCII"));
            }
            ("huge-trailers", _) => {
                let mut trailers = MetadataMap::new();
                trailers.insert("x-huge", "h".repeat(20_000).parse().expect("ASCII"));
                response.extensions_mut().insert(Trailers(trailers));
            }
            ("size", size) => *response.get_mut() = raw(vec![7; size.parse().expect("a number")]),
            ("metadata", _) => {
                let mut trailers = MetadataMap::new();
                trailers.insert("x-rows", "42".parse().expect("ASCII"));
                trailers.insert("grpc-status", "7".parse().expect("ASCII"));
                response.extensions_mut().insert(Trailers(trailers));
                let sent = response.metadata_mut();
                sent.insert_bin("x-bin", thalweg::metadata::MetadataValue::from_bytes(b"\0\x01\xff"));
                sent.insert("x-spaced", " a b ".parse().expect("ASCII"));
                sent.insert("te", "trailers".parse().expect("ASCII"));
                if let Some(value) = metadata.get("x-echo") {
                    sent.insert("x-echo", value.clone());
                }
            }
            _ => {}
        }
        Ok(response)
    }

    async fn one(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        let (metadata, _, order) = request.into_parts();
        self.obey(order, &metadata).await
    }

    async fn fold(self: Arc<Self>, request: Request<Streaming<Raw>>) -> Result<Response<Raw>, Status> {
        let (metadata, _, mut requests) = request.into_parts();
        let Some(order) = requests.message().await? else { return Ok(Response::new(raw("nothing"))) };
        let mut folded = order.0.to_vec();
        while let Some(Raw(message)) = requests.message().await? {
            folded.extend_from_slice(&message);
        }
        self.obey(raw(folded), &metadata).await
    }

    async fn many(self: Arc<Self>, request: Request<Raw>) -> Result<Response<ManyResponses>, Status> {
        let (metadata, _, order) = request.into_parts();
        let remaining = if order.0.starts_with(b"once") { 1 } else { 3 };
        let remaining = if order.0.starts_with(b"flood") { 1000 } else { remaining };
        let late = order.0.starts_with(b"late").then(details);
        let flooded = Arc::clone(&self.flooded);
        let response = self.obey(order, &metadata).await?;
        Ok(response.map(|message| ManyResponses { remaining, message, late, flooded }))
    }

    async fn chat(self: Arc<Self>, request: Request<Streaming<Raw>>) -> Result<Response<Chat>, Status> {
        let (metadata, _, requests) = request.into_parts();
        if metadata.contains_key("x-unread") {
            return Ok(Response::new(Chat { requests: None, remaining: 2 }));
        }
        if metadata.contains_key("x-late-head") {
            tokio::task::yield_now().await;
        }
        let mut response =
            self.obey(raw("metadata"), &metadata).await?.map(|_| Chat { requests: None, remaining: 0 });
        response.get_mut().requests = Some(requests);
        Ok(response)
    }
}

struct ManyResponses {
    remaining: usize,
    message: Raw,
    late: Option<Status>,
    flooded: Arc<AtomicUsize>,
}

impl Stream for ManyResponses {
    type Item = Result<Raw, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.remaining == 0 {
            return Poll::Ready(self.late.take().map(Err));
        }
        self.remaining -= 1;
        self.flooded.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Some(Ok(self.message.clone())))
    }
}

/// Echoes; without requests, responds without reading any.
struct Chat {
    requests: Option<Streaming<Raw>>,
    remaining: usize,
}

impl Stream for Chat {
    type Item = Result<Raw, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(requests) = &mut self.requests else {
            self.remaining = self.remaining.saturating_sub(1);
            return Poll::Ready((self.remaining > 0).then(|| Ok(raw("unasked"))));
        };
        Pin::new(requests).poll_next(cx).map(|item| {
            item.map(|message| match message {
                Ok(Raw(order)) if order == "panic" => panic!("asked to"),
                Ok(Raw(order)) if order == "fail" => Err(details()),
                Ok(Raw(order)) if order.starts_with(b"size") => Ok(raw(vec![7; 101])),
                message => message,
            })
        })
    }
}

impl Service for Orders {
    const NAME: &'static str = "test.Orders";

    fn register(self, methods: &mut Methods<'_>) {
        let options = self.options.clone();
        let service = Arc::new(self);
        methods.unary("One", &service, &options, Orders::one);
        methods.client_streaming("Fold", &service, &options, Orders::fold);
        methods.server_streaming("Many", &service, &options, Orders::many);
        methods.bidi_streaming("Chat", &service, &options, Orders::chat);
    }
}

fn local(server: ServerBuilder) -> LocalCalls {
    let (config, router) = server.into_parts().expect("a configuration");
    LocalCalls::new(&config, router)
}

type Fields = Vec<(String, String)>;

fn fields(headers: &http::HeaderMap) -> Fields {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut fields: Fields = headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    fields.sort_unstable();
    fields
}

/// The outcome of a call, as the caller sees it.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    head: Fields,
    messages: Vec<Bytes>,
    trailers: Fields,
    failure: Option<(i32, String, Vec<u8>, Fields)>,
}

/// The limit on metadata depends slightly on the headers, so its digits are removed.
fn without_bytes(message: &str) -> String {
    let is_of_metadata = message.starts_with("the metadata to send exceeds");
    message.chars().filter(|char| !(is_of_metadata && char.is_ascii_digit())).collect()
}

impl Outcome {
    fn failed(mut self, status: &Status) -> Self {
        let metadata = fields(status.metadata().as_ref());
        let (message, details) = (without_bytes(status.message()), status.details().to_vec());
        self.failure = Some((status.code() as i32, message, details, metadata));
        self
    }

    async fn of_stream(mut stream: LocalStream) -> Self {
        let mut outcome = Self::default();
        match soon(stream.headers()).await {
            Ok(head) => outcome.head = fields(&head),
            Err(status) => return outcome.failed(&status),
        }
        loop {
            match soon(stream.message()).await {
                Ok(Some(message)) => outcome.messages.push(message),
                Ok(None) => break,
                Err(status) => return outcome.failed(&status),
            }
        }
        outcome.trailers = fields(&stream.take_trailers().expect("trailers behind the last message"));
        outcome
    }

    fn of_response(response: Result<LocalResponse, Status>) -> Self {
        match response {
            Ok(LocalResponse { metadata, message, trailers }) => Self {
                head: fields(&metadata),
                messages: vec![message],
                trailers: fields(&trailers),
                failure: None,
            },
            Err(status) => Self::default().failed(&status),
        }
    }

    async fn of_remote_call(channel: &Channel, path: &str, metadata: Fields, requests: Vec<Raw>) -> Self {
        let mut outcome = Self::default();
        let method = Method::from_path(path).expect("a path");
        let mut request = Request::new(items(requests));
        *request.metadata_mut() = MetadataMap::from_headers(headers(&metadata));
        let mut options = CallOptions::default();
        options.max_decoding_message_size = 8 << 20;
        let response = match soon(channel.bidi_streaming::<_, Raw>(&method, request, &options)).await {
            Ok(response) => response,
            Err(status) => return outcome.failed(&status),
        };
        outcome.head = fields(response.metadata().as_ref());
        let mut messages = response.into_inner();
        loop {
            match soon(messages.message()).await {
                Ok(Some(Raw(message))) => outcome.messages.push(message),
                Ok(None) => break,
                Err(status) => return outcome.failed(&status),
            }
        }
        let trailers = messages.trailers().await.expect("it ended well").unwrap_or_default();
        outcome.trailers = fields(trailers.as_ref());
        outcome
    }
}

fn headers(fields: &Fields) -> http::HeaderMap {
    let field = |(name, value): &(String, String)| {
        (name.parse::<http::HeaderName>().expect("a name"), value.parse().expect("a value"))
    };
    fields.iter().map(field).collect()
}

fn request_head(metadata: &Fields) -> RequestHead {
    RequestHead::new(headers(metadata), None, None)
}

fn messages(requests: &[Raw]) -> impl Stream<Item = Result<Bytes, Status>> + Send + 'static {
    items(requests.iter().map(|Raw(message)| Ok(message.clone())).collect())
}

/// Checks that a call ends as it does over a connection: as a stream and, with one message, as a unary call.
async fn check(calls: &LocalCalls, channel: &Channel, path: &str, metadata: &[&str], requests: &[&[u8]]) {
    let metadata: Fields = metadata.iter().map(|name| ((*name).to_owned(), "value".to_owned())).collect();
    let requests: Vec<Raw> = requests.iter().map(|request| raw(*request)).collect();
    let context = format!("{path} {metadata:?} {requests:.0?}");
    let expected = Outcome::of_remote_call(channel, path, metadata.clone(), requests.clone()).await;
    let stream = calls.call_stream(path, request_head(&metadata), messages(&requests));
    assert_eq!(Outcome::of_stream(stream).await, expected, "{context}");
    let [Raw(message)] = &requests[..] else { return };
    let response = soon(calls.call_unary(path, &request_head(&metadata), message.clone())).await;
    let unary_outcome = Outcome::of_response(response);
    if expected.messages.len() == 1 && expected.failure.is_none() {
        assert_eq!(unary_outcome, expected, "{context}");
    } else if let Some(failure) = expected.failure
        && expected.messages.len() < 2
    {
        assert_eq!(unary_outcome.failure, Some(failure), "{context}");
    } else {
        let (code, text, ..) = unary_outcome.failure.expect("there is no one answer");
        let many = "expected one message, received more than one";
        let none = "expected one message, received none";
        let expected = if expected.messages.is_empty() { none } else { many };
        assert_eq!((code, &*text), (Code::Unimplemented as i32, expected), "{context}");
    }
}

async fn check_all(server: impl Fn() -> ServerBuilder) {
    let limits = || {
        let mut options = ServiceOptions::default();
        options.max_decoding_message_size = 100;
        options.max_encoding_message_size = 100;
        options
    };
    for options in [ServiceOptions::default(), limits()] {
        let orders = Orders { options, ..Orders::default() };
        let calls = local(server().add_service(orders.clone()));
        let channel = connect(&start(server().add_service(orders)).await).await;
        for path in METHODS {
            for order in [
                "",
                "hello",
                "yield",
                "panic",
                "fail",
                "fine",
                "metadata",
                "huge",
                "late",
                "once",
                "size 100",
                "size 101",
                "size 5000",
                "size 100000",
            ] {
                check(&calls, &channel, path, &["x-echo"], &[order.as_bytes()]).await;
            }
            check(&calls, &channel, path, &["x-broken"], &[b"hello"]).await;
            check(&calls, &channel, path, &[], &[]).await;
            check(&calls, &channel, path, &["x-late-head"], &[b"a", b"bc"]).await;
            check(&calls, &channel, path, &[], &[b"panic", b"c"]).await;
            check(&calls, &channel, path, &[], &[b"a", b"fail"]).await;
            check(&calls, &channel, path, &["x-unread"], &[b"a", b"b"]).await;
            for len in [100, 101, 4095, 4096, 100_000, (4 << 20) + 1] {
                check(&calls, &channel, path, &[], &[&vec![7; len]]).await;
                // For messages beyond the window, a unary method's second message arrives too late to be rejected.
                if path != METHODS[0] || len < 10_000 {
                    check(&calls, &channel, path, &[], &[b"ok", &vec![7; len]]).await;
                }
            }
        }
        // Over a connection the message has been sent by then.
        let late =
            Outcome::of_remote_call(&channel, METHODS[0], Vec::new(), vec![raw("huge-trailers")]).await;
        let response = calls.call_unary(METHODS[0], &request_head(&Vec::new()), "huge-trailers".into()).await;
        assert_eq!(Outcome::of_response(response).failure, late.failure);
        check(&calls, &channel, "/test.Orders/None", &[], &[b"a"]).await;
        check(&calls, &channel, "/test.None/None", &[], &[b"a"]).await;
    }
}

fn reject_all<T>(request: Request<T>) -> Result<Request<T>, Status> {
    if request.metadata().contains_key("x-broken") { Err(details()) } else { Ok(request) }
}

#[tokio::test]
async fn local_calls_end_like_remote_calls() {
    check_all(Server::builder).await;
}

#[tokio::test]
async fn intercepted_local_calls_end_like_remote_calls() {
    check_all(|| Server::builder().interceptor(head(reject_all::<()>))).await;
    check_all(|| Server::builder().interceptor(|call: Call, next: Next| next.run(call))).await;
}

#[cfg(feature = "opentelemetry")]
#[tokio::test]
async fn traced_local_calls_end_like_remote_calls() {
    let spans = Spans::new();
    check_all(|| Server::builder().traces(spans.traces())).await;
}

fn text(status: &Status) -> (u8, &str) {
    (status.code().number(), status.message())
}

#[tokio::test(start_paused = true)]
async fn deadline_ends_local_calls() {
    let orders = Orders::default();
    let calls = local(Server::builder().add_service(orders.clone()));
    let head = || RequestHead::new(http::HeaderMap::new(), Some(Duration::from_millis(20)), None);
    let late = (4, "deadline exceeded: the handler was still running");
    for path in &METHODS[..3] {
        let status = calls.call_unary(path, &head(), "sleep".into()).await.expect_err("it sleeps");
        assert_eq!(text(&status), late, "{path}");
        let mut stream = calls.call_stream(path, head(), messages(&[raw("sleep")]));
        assert_eq!(text(&stream.headers().await.expect_err("it sleeps")), late, "{path}");
        assert!(stream.message().await.expect("no more").is_none());
    }
    assert_eq!(orders.dropped.load(Ordering::SeqCst), 6);
    // After headers and messages.
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut stream = calls.call_stream(METHODS[3], head(), Receiver(receiver));
    sender.send(Ok(Bytes::from("a"))).expect("a reader");
    stream.headers().await.expect("headers");
    assert_eq!(stream.message().await.expect("an echo").expect("one"), "a");
    assert_eq!(text(&stream.message().await.expect_err("no more came")), late);
    assert!(sender.is_closed(), "nobody reads requests any more");
    // Before a request.
    let (_sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut stream = calls.call_stream(METHODS[0], head(), Receiver(receiver));
    let too_late = (4, "deadline exceeded: the request was not complete");
    assert_eq!(text(&stream.headers().await.expect_err("no request")), too_late);
    // In time.
    assert_eq!(
        calls.call_unary(METHODS[0], &head(), "yield".into()).await.expect("an echo").message,
        "yield"
    );
}

#[tokio::test]
async fn dropped_local_call_cancels_handler() {
    let orders = Orders::default();
    let calls = local(Server::builder().add_service(orders.clone()));
    let head = || request_head(&Vec::new());
    for path in &METHODS[..3] {
        let before = orders.dropped.load(Ordering::SeqCst);
        let mut call = Box::pin(calls.call_unary(path, &head(), "sleep".into()));
        assert!(poll_once(call.as_mut()).is_none());
        assert_eq!(orders.dropped.load(Ordering::SeqCst), before);
        drop(call);
        assert_eq!(orders.dropped.load(Ordering::SeqCst), before + 1, "{path}");
    }
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut stream = calls.call_stream(METHODS[3], head(), Receiver(receiver));
    soon(stream.headers()).await.expect("headers");
    assert!(!sender.is_closed());
    drop(stream);
    assert!(sender.is_closed());
}

/// Reads its requests in a task that outlives the handler.
#[derive(Default)]
struct Leaving(Arc<std::sync::Mutex<Option<Status>>>);

impl Service for Leaving {
    const NAME: &'static str = "test.Leaving";

    fn register(self, methods: &mut Methods<'_>) {
        let service = Arc::new(self);
        let leave = async |service: Arc<Self>, request: Request<Streaming<Raw>>| {
            let mut requests = request.into_inner();
            tokio::spawn(async move {
                let read = async {
                    while requests.message().await?.is_some() {}
                    Ok(())
                };
                *service.0.lock().expect("no panic") = read.await.err();
            });
            Ok(Response::new(raw("left")))
        };
        methods.client_streaming("Leave", &service, &ServiceOptions::default(), move |service, request| {
            Box::pin(leave(service, request)) as Pin<Box<dyn Future<Output = _> + Send>>
        });
    }
}

#[tokio::test]
async fn reading_after_call_end_returns_cancelled() {
    let leaving = Leaving::default();
    let found = Arc::clone(&leaving.0);
    let calls = local(Server::builder().add_service(leaving));
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    sender.send(Ok(Bytes::from("a"))).expect("a reader");
    let stream = calls.call_stream("/test.Leaving/Leave", request_head(&Vec::new()), Receiver(receiver));
    assert_eq!(Outcome::of_stream(stream).await.messages, ["left"]);
    until(|| found.lock().expect("no panic").is_some()).await;
    let status = found.lock().expect("no panic").take().expect("it was there");
    assert_eq!((status.code(), status.message()), (Code::Cancelled, "the call has ended"));
    assert!(sender.is_closed());
}

#[tokio::test]
async fn messages_alternate() {
    let calls = local(Server::builder().add_service(Orders::default()));
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut stream = calls.call_stream(METHODS[3], request_head(&Vec::new()), Receiver(receiver));
    let echo = tokio::spawn(async move {
        stream.headers().await.expect("headers");
        let mut echoed = Vec::new();
        while let Some(message) = stream.message().await.expect("no error") {
            echoed.push(message);
        }
        echoed
    });
    for number in 0..5 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        sender.send(Ok(Bytes::from(format!("{number}")))).expect("a reader");
    }
    drop(sender);
    assert_eq!(soon(echo).await.expect("no panic"), ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn invalid_request_reaches_handler_as_error() {
    let calls = local(Server::builder().add_service(Orders::default()));
    for path in METHODS {
        let failed = Status::invalid_argument("not JSON");
        let requests = items(vec![Ok(Bytes::from("a")), Err(failed), Ok(Bytes::from("b"))]);
        let outcome = Outcome::of_stream(calls.call_stream(path, request_head(&Vec::new()), requests)).await;
        let failure = outcome.failure.map(|(code, text, ..)| (code, text));
        assert_eq!(failure, Some((3, "not JSON".to_owned())), "{path}");
    }
}

/// The handler's stream is polled only as far as the caller reads.
#[tokio::test]
async fn responses_wait_for_reader() {
    let orders = Orders::default();
    let calls = local(Server::builder().add_service(orders.clone()));
    let order = raw(format!("flood{}", " ".repeat(1019)));
    let mut stream = calls.call_stream(METHODS[2], request_head(&Vec::new()), messages(&[order]));
    stream.headers().await.expect("headers");
    let flooded = || orders.flooded.load(Ordering::SeqCst);
    let mut taken = 0;
    while taken < 1000 {
        assert_eq!(stream.message().await.expect("no error").expect("a message").len(), 1024);
        taken += 1;
        let ahead = flooded() - taken;
        assert!(ahead < 64, "{ahead} messages of 1 KiB wait");
        let made = flooded();
        for _ in 0..ahead {
            assert!(stream.message().await.expect("no error").is_some());
            assert_eq!(flooded(), made, "nothing is asked of a handler whose answers wait");
        }
        taken += ahead;
    }
    assert!(stream.message().await.expect("no error").is_none());
}

#[tokio::test]
async fn large_messages_are_not_copied() {
    let calls = local(Server::builder().add_service(Orders::default()));
    let sent = Bytes::from(vec![7; 100_000]);
    let response =
        calls.call_unary(METHODS[0], &request_head(&Vec::new()), sent.clone()).await.expect("an echo");
    assert_eq!((response.message.as_ptr(), response.message.len()), (sent.as_ptr(), sent.len()));
    let requests = items(vec![Ok(sent.clone())]);
    let echoed = Outcome::of_stream(calls.call_stream(METHODS[3], request_head(&Vec::new()), requests)).await;
    assert_eq!((echoed.messages[0].as_ptr(), echoed.messages[0].len()), (sent.as_ptr(), sent.len()));
}

#[test]
fn immediate_call_needs_no_runtime() {
    let calls = local(Server::builder().add_service(Orders::default()));
    let head = RequestHead::new(http::HeaderMap::new(), Some(Duration::from_secs(1)), None);
    let mut call = Box::pin(calls.call_unary(METHODS[0], &head, "hello".into()));
    assert_eq!(poll_once(call.as_mut()).expect("it is ready").expect("an echo").message, "hello");
}

#[tokio::test]
async fn handler_gets_connection_info() {
    let notify_interceptor = |call: Call, next: Next| {
        let extensions = call.extensions();
        let info = extensions.get::<Arc<thalweg::ConnectionInfo>>().and_then(|info| info.remote_addr());
        assert_eq!(info, Some("127.0.0.1:5".parse().expect("an address")));
        next.run(call)
    };
    let calls = local(Server::builder().interceptor(notify_interceptor).add_service(Orders::default()));
    let info = thalweg::ConnectionInfo::new(Some("127.0.0.1:5".parse().expect("an address")), None);
    let head = RequestHead::new(http::HeaderMap::new(), None, Some(Arc::new(info)));
    calls.call_unary(METHODS[0], &head, "hello".into()).await.expect("an echo");
}

#[test]
fn method_names_are_listed() {
    let (_, router) = Server::builder().add_service(Orders::default()).into_parts().expect("a configuration");
    let names = router.method_names();
    let expected = ["test.Orders/Chat", "test.Orders/Fold", "test.Orders/Many", "test.Orders/One"];
    assert!(names.iter().map(|name| &**name).eq(expected), "{names:?}");
    let method = router.find(b"/test.Orders/One").expect("present");
    assert_eq!((&**method.name(), method.content_subtype()), ("test.Orders/One", ""));
    assert_eq!(method.options().max_decoding_message_size, 4 << 20);
}

#[cfg(feature = "opentelemetry")]
#[tokio::test]
async fn local_calls_are_measured() {
    let recorded = Recorded::new();
    let calls = local(Server::builder().add_service(Orders::default()).metrics(recorded.metrics()));
    let head = || request_head(&Vec::new());
    calls.call_unary(METHODS[0], &head(), "12345".into()).await.expect("an echo");
    calls.call_unary(METHODS[0], &head(), "fail".into()).await.expect_err("asked to");
    calls.call_unary(METHODS[0], &head(), "panic".into()).await.expect_err("asked to");
    drop(calls.call_unary(METHODS[0], &head(), "sleep".into()));
    calls.call_unary("/test.Orders/None", &head(), "a".into()).await.expect_err("there is none");
    Outcome::of_stream(calls.call_stream(METHODS[0], head(), messages(&[raw("123")]))).await;
    Outcome::of_stream(calls.call_stream(METHODS[3], head(), messages(&[raw("a"), raw("bc")]))).await;
    Outcome::of_stream(calls.call_stream(METHODS[1], head(), messages(&[raw("a"), raw("bc")]))).await;
    drop(calls.call_stream(METHODS[2], head(), messages(&[raw("a")])));
    let check = |method: &str, status: &str, count: u64, received: f64, sent: f64| {
        let labels = [("grpc.method", method), ("grpc.status", status)];
        let point = |name: &str| recorded.point(name, &labels).unwrap_or_default();
        assert_eq!(point("grpc.server.call.duration").count, count, "{method} {status}");
        let names = [
            ("grpc.server.call.rcvd_total_compressed_message_size", received),
            ("grpc.server.call.sent_total_compressed_message_size", sent),
        ];
        for (name, sum) in names {
            assert!((point(name).sum - sum).abs() < 0.5, "{method} {status} {name} {:?}", point(name));
        }
    };
    check("test.Orders/One", "OK", 2, 8.0, 8.0);
    check("test.Orders/One", "ABORTED", 1, 4.0, 0.0);
    check("test.Orders/One", "INTERNAL", 1, 5.0, 0.0);
    check("test.Orders/One", "CANCELLED", 1, 5.0, 0.0);
    check("other", "UNIMPLEMENTED", 1, 0.0, 0.0);
    check("test.Orders/Chat", "OK", 1, 3.0, 3.0);
    check("test.Orders/Fold", "OK", 1, 3.0, 3.0);
    check("test.Orders/Many", "CANCELLED", 1, 0.0, 0.0);
    assert_eq!(recorded.sum("grpc.server.call.started", &[("grpc.method", "test.Orders/One")]), 5);
}

#[cfg(feature = "opentelemetry")]
#[tokio::test]
async fn local_calls_are_traced() {
    let spans = Spans::new();
    let calls = local(Server::builder().add_service(Orders::default()).traces(spans.traces()));
    let head = || request_head(&Vec::new());
    calls.call_unary(METHODS[0], &head(), "12345".into()).await.expect("an echo");
    check_spans(
        &spans,
        &["Recv.test.Orders.One Server OK", "  - Inbound message 0: 5", "  - Outbound message 0: 5"],
    )
    .await;
    let spans = Spans::new();
    let calls = local(Server::builder().add_service(Orders::default()).traces(spans.traces()));
    Outcome::of_stream(calls.call_stream(METHODS[3], head(), messages(&[raw("a"), raw("bc")]))).await;
    check_spans(
        &spans,
        &[
            "Recv.test.Orders.Chat Server OK",
            "  - Inbound message 0: 1",
            "  - Outbound message 0: 1",
            "  - Inbound message 1: 2",
            "  - Outbound message 1: 2",
        ],
    )
    .await;
}
