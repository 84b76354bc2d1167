//! A service on the engine's own interface, with in-memory pipes to the engine's client and scripted peers.

pub(crate) mod feed;
pub(crate) mod peer;

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderValue};
use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use thalweg_engine::server::{
    self, Handler, MessageResponse, Router, ServerConfig, ServerMethod, StreamingCall, StreamingHandler,
    UnaryHandler,
};
use thalweg_engine::{
    CallOptions, Chain, Channel, ChannelConfig, Code, Encode, Envelope, Incoming, KeepalivePolicy, Lanes,
    Method, RequestHead, ServiceOptions, Source, Status,
};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use self::peer::{Frame, PIPE, Peer};

pub(crate) static ECHO: Method = Method::new("/test.Echo/Echo");
pub(crate) static COUNT: Method = Method::new("/test.Echo/Count");
pub(crate) static REPEAT: Method = Method::new("/test.Echo/Repeat");
pub(crate) static CHAT: Method = Method::new("/test.Echo/Chat");

pub(crate) static NO_METADATA: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

/// A message of raw bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message(pub(crate) Bytes);

impl Encode for Message {
    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn encode_chained(&self, out: &mut Chain) {
        out.push(self.0.clone());
    }
}

pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Message {
    Message(Bytes::from(bytes.into()))
}

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A unary request's bytes are a command to its handler: `sleep`, `yield`, `fail`, `panic`, `panic in start`, `panic
/// later`, `size 10`, `later 10`, or `timeout` for the client's timeout. Anything else is echoed, or kept with
/// `x-keep`. The other methods count, repeat and echo their requests; `Early` responds before it has read any.
///
/// Metadata `x-echo` is returned as initial metadata, `x-trailer` as trailing metadata.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echo {
    /// Number of handlers started.
    pub(crate) started: Arc<AtomicUsize>,
    /// Number of handlers dropped before their end.
    pub(crate) cancelled: Arc<AtomicUsize>,
    pub(crate) options: ServiceOptions,
    /// Trailing metadata of all unary calls.
    pub(crate) trailers: HeaderMap,
}

/// A running handler. Dropped before its end it counts as cancelled.
struct Running(Option<Arc<AtomicUsize>>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(cancelled) = &self.0 {
            cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Running {
    fn end(mut self) {
        self.0 = None;
    }
}

impl Echo {
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }

    fn start(&self) -> Running {
        self.started.fetch_add(1, Ordering::SeqCst);
        Running(Some(Arc::clone(&self.cancelled)))
    }

    pub(crate) fn router(&self) -> Arc<dyn Router> {
        let handlers = [
            ("Echo", Handler::unary(EchoUnary(self.clone()))),
            ("Count", Handler::streaming(Count(self.clone()))),
            ("Repeat", Handler::streaming(Repeat(self.clone()))),
            ("Chat", Handler::streaming(Chat(self.clone()))),
            ("Early", Handler::streaming(Early(self.clone()))),
        ];
        routes(handlers.map(|(name, handler)| {
            ServerMethod::new(&format!("test.Echo/{name}"), self.options.clone(), handler)
        }))
    }
}

struct Routes(BTreeMap<Vec<u8>, Arc<ServerMethod>>);

pub(crate) fn routes(methods: impl IntoIterator<Item = ServerMethod>) -> Arc<dyn Router> {
    let routes =
        methods.into_iter().map(|method| (format!("/{}", method.name()).into_bytes(), Arc::new(method)));
    Arc::new(Routes(routes.collect()))
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.method_names()).finish()
    }
}

impl Router for Routes {
    fn find(&self, path: &[u8]) -> Result<Arc<ServerMethod>, Status> {
        let method = self.0.get(path).cloned();
        method.ok_or_else(|| Status::new(Code::Unimplemented, "no such method"))
    }

    fn method_names(&self) -> Vec<Arc<str>> {
        self.0.values().map(|method| Arc::clone(method.name())).collect()
    }
}

/// A unary handler's response.
pub(crate) struct EchoResponse {
    pub(crate) metadata: HeaderMap,
    pub(crate) message: Message,
    pub(crate) trailers: Option<HeaderMap>,
}

pub(crate) fn response_of(
    result: &Result<EchoResponse, Status>,
) -> Result<MessageResponse<'_, Message>, Status> {
    match result {
        Err(status) => Err(status.clone()),
        Ok(EchoResponse { metadata, message, trailers }) => {
            Ok(MessageResponse { metadata, message: message.clone(), trailers: trailers.as_ref() })
        }
    }
}

/// Returns only the field `name` of `from`.
fn only(name: &'static str, from: &HeaderMap) -> HeaderMap {
    from.get(name).map(|value| (http::HeaderName::from_static(name), value.clone())).into_iter().collect()
}

struct EchoUnary(Echo);

impl UnaryHandler for EchoUnary {
    type Future = BoxFuture<Self::Output>;
    type Output = Result<EchoResponse, Status>;

    fn start(&self, head: &RequestHead, mut request: Envelope<'_>) -> Result<Self::Future, Status> {
        let mut message = Bytes::copy_from_slice(request.open()?.as_bytes());
        let running = self.0.start();
        assert!(message != "panic in start", "asked to");
        let (metadata, keeps) = (only("x-echo", &head.metadata), head.metadata.contains_key("x-keep"));
        let (mut trailers, timeout) = (only("x-trailer", &head.metadata), head.timeout);
        trailers.extend(self.0.trailers.clone());
        let failure = failure().prepend_metadata(&self.0.trailers);
        Ok(Box::pin(async move {
            match &message[..] {
                b"sleep" => sleep(Duration::from_secs(100_000)).await,
                b"yield" => tokio::task::yield_now().await,
                b"panic" => panic!("asked to"),
                b"panic later" => {
                    sleep(Duration::from_millis(1)).await;
                    panic!("asked to");
                }
                b"fail" => {
                    running.end();
                    return Err(failure);
                }
                _ => {}
            }
            if keeps {
                std::future::pending::<()>().await;
            }
            if message.starts_with(b"timeout") {
                message = Bytes::from(format!("{timeout:?}"));
            }
            if let Some(size) = message.strip_prefix(b"later ") {
                sleep(Duration::from_millis(1)).await;
                message = Bytes::from([b"size ", size].concat());
            }
            if let Some(size) = message.strip_prefix(b"size ") {
                let size = std::str::from_utf8(size).expect("digits").parse().expect("a number");
                message = Bytes::from(vec![7; size]);
            }
            running.end();
            let trailers = Some(trailers).filter(|trailers| !trailers.is_empty());
            Ok(EchoResponse { metadata, message: Message(message), trailers })
        }))
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        response_of(output)
    }
}

/// Returns a status with a message, details and metadata.
pub(crate) fn failure() -> Status {
    let mut status = Status::with_details(Code::NotFound, "nichts: ü %", Bytes::from_static(b"d\0"));
    status.metadata_mut().insert("x-why", "asked".parse().expect("a value"));
    status
}

/// The messages of a stream.
#[derive(Debug)]
pub(crate) struct Messages(pub(crate) Incoming);

impl Messages {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Status>>> {
        if let Some(bytes) = self.0.next_at_hand() {
            return Poll::Ready(Some(Ok(Message(Bytes::copy_from_slice(bytes)))));
        }
        let prefix = match ready!(self.0.poll_prefix(cx)) {
            None => return Poll::Ready(None),
            Some(Err(status)) => return Poll::Ready(Some(Err(status))),
            Some(Ok(prefix)) => prefix,
        };
        let taken = self.0.take(prefix).map(|payload| Bytes::copy_from_slice(payload.as_bytes()));
        Poll::Ready(Some(taken.map(Message).map_err(|status| self.0.fail(status))))
    }

    pub(crate) async fn message(&mut self) -> Result<Option<Message>, Status> {
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    /// Reads all remaining messages and the trailing metadata.
    pub(crate) async fn rest(mut self) -> Result<(Vec<Message>, HeaderMap), Status> {
        let mut messages = Vec::new();
        while let Some(message) = soon(self.message()).await? {
            messages.push(message);
        }
        Ok((messages, self.0.take_trailers().unwrap_or_default()))
    }
}

impl Stream for Messages {
    type Item = Result<Message, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}

impl Source for Messages {
    type Message = Message;
}

struct Count(Echo);

impl StreamingHandler for Count {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> BoxFuture<()> {
        let (running, metadata) = (self.0.start(), only("x-echo", &head.metadata));
        let trailers = only("x-trailer", &head.metadata);
        Box::pin(async move {
            let mut requests = Messages(call.requests());
            let (mut messages, mut bytes) = (0, 0);
            let outcome = loop {
                match requests.message().await {
                    Ok(Some(Message(message))) => {
                        messages += 1;
                        bytes += message.len();
                    }
                    Ok(None) => break Ok(raw(format!("{messages} {bytes}"))),
                    Err(status) => break Err(status),
                }
            };
            running.end();
            call.respond(outcome.map(|message| MessageResponse {
                metadata: &metadata,
                message,
                trailers: Some(&trailers),
            }));
        })
    }
}

struct Repeat(Echo);

impl StreamingHandler for Repeat {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> BoxFuture<()> {
        let (running, metadata) = (self.0.start(), only("x-echo", &head.metadata));
        let trailers = only("x-trailer", &head.metadata);
        Box::pin(async move {
            let order = match Messages(call.requests()).message().await {
                Ok(Some(order)) => order,
                Ok(None) => return call.fail(&Status::new(Code::InvalidArgument, "no order")),
                Err(status) => return call.fail(&status),
            };
            let order = String::from_utf8(order.0.to_vec()).expect("tests send text");
            let (times, size) = order.split_once(' ').expect("two numbers");
            let (times, size): (usize, usize) =
                (times.parse().expect("a number"), size.parse().expect("a number"));
            let messages = items(vec![raw(vec![7; size]); times]);
            call.respond_stream(&metadata, messages, Some(trailers)).await;
            running.end();
        })
    }
}

struct Chat(Echo);

impl StreamingHandler for Chat {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> BoxFuture<()> {
        let (running, metadata) = (self.0.start(), only("x-echo", &head.metadata));
        let trailers = only("x-trailer", &head.metadata);
        assert!(!head.metadata.contains_key("x-panic"), "asked to");
        Box::pin(async move {
            let requests = Messages(call.requests());
            call.respond_stream(&metadata, requests, Some(trailers)).await;
            running.end();
        })
    }
}

/// Follows metadata `x-order` without reading: `fail`, `panic`, `stop` without a response, or a response size.
struct Early(Echo);

impl StreamingHandler for Early {
    fn start(&self, head: &RequestHead, call: StreamingCall) -> BoxFuture<()> {
        let running = self.0.start();
        let order =
            head.metadata.get("x-order").and_then(|order| order.to_str().ok()).unwrap_or_default().to_owned();
        Box::pin(async move {
            running.end();
            match &order[..] {
                "fail" => call.fail(&failure()),
                "panic" => panic!("asked to"),
                "stop" => drop(call),
                size => {
                    let message = raw(vec![7; size.parse().expect("a size")]);
                    call.respond(Ok(MessageResponse { metadata: &NO_METADATA, message, trailers: None }));
                }
            }
        })
    }
}

/// Returns a configuration changed by `set`.
pub(crate) fn server_config(set: impl FnOnce(&mut ServerConfig)) -> ServerConfig {
    let mut config = ServerConfig::default();
    // Tests send PINGs to learn how far the server is.
    config.keepalive_policy = KeepalivePolicy::every(Duration::ZERO).without_calls(true);
    set(&mut config);
    config
}

/// A server whose connections are pipes.
pub(crate) struct Served {
    connect: mpsc::UnboundedSender<DuplexStream>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

struct IncomingPipes(mpsc::UnboundedReceiver<DuplexStream>);

impl Stream for IncomingPipes {
    type Item = DuplexStream;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<DuplexStream>> {
        self.0.poll_recv(cx)
    }
}

impl Served {
    pub(crate) fn start(config: ServerConfig, router: Arc<dyn Router>) -> Self {
        let (connect, incoming) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            if stopped.await.is_err() {
                // The test has dropped its handle but continues to use its connections.
                std::future::pending::<()>().await;
            }
        };
        let serving = tokio::spawn(server::serve_incoming(config, router, IncomingPipes(incoming), stopped));
        Self { connect, stop, serving }
    }

    /// Starts a server with `echo` and the usual configuration.
    pub(crate) fn echo(echo: &Echo) -> Self {
        Self::start(server_config(|_| {}), echo.router())
    }

    pub(crate) fn pipe(&self) -> DuplexStream {
        let (near, far) = duplex(PIPE);
        self.connect.send(far).expect("the server runs");
        near
    }

    /// Connects a client played by the test.
    pub(crate) async fn peer(&self) -> Peer {
        Peer::client(self.pipe()).await
    }

    /// Connects the engine's client.
    pub(crate) async fn channel(&self, set: impl FnOnce(&mut ChannelConfig)) -> Channel {
        let connect = self.connect.clone();
        let mut config = channel_config(set);
        config.set_connector(move || {
            let (near, far) = duplex(PIPE);
            let outcome = connect.send(far).map_err(|_| std::io::ErrorKind::ConnectionRefused.into());
            async move { outcome.map(|()| near) }
        });
        let channel = Channel::new("memory:1", config).expect("a target");
        channel.connect().await.expect("connected");
        channel
    }

    /// Stops the server. Resolves to the time it took.
    pub(crate) fn stop(self) -> JoinHandle<Duration> {
        let started = Instant::now();
        let Self { connect, stop, serving } = self;
        tokio::spawn(async move {
            stop.send(()).expect("it serves");
            serving.await.expect("no panic");
            drop(connect);
            started.elapsed()
        })
    }
}

/// Connects a client played by the test to a server with `echo`.
pub(crate) async fn client_of(echo: &Echo) -> Peer {
    client_with(server_config(|_| {}), echo.router()).await
}

/// Like [`client_of`], with another server.
pub(crate) async fn client_with(config: ServerConfig, router: Arc<dyn Router>) -> Peer {
    let (near, far) = duplex(PIPE);
    tokio::spawn(server::serve_connection(config, router, far));
    Peer::client(near).await
}

/// Returns a configuration of one lane, changed by `set`.
pub(crate) fn channel_config(set: impl FnOnce(&mut ChannelConfig)) -> ChannelConfig {
    let mut config = ChannelConfig::default();
    config.lanes = Lanes::fixed(1);
    set(&mut config);
    config
}

pub(crate) type Accepted = mpsc::UnboundedReceiver<DuplexStream>;

/// Returns a channel whose connections are pipes that the test receives.
pub(crate) fn channel_to_test(mut config: ChannelConfig) -> (Channel, Accepted) {
    let (connections, accepted) = mpsc::unbounded_channel();
    config.set_connector(move || {
        let (near, far) = duplex(PIPE);
        let outcome = connections.send(far).map_err(|_| std::io::ErrorKind::ConnectionRefused.into());
        async move { outcome.map(|()| near) }
    });
    (Channel::new("memory:1", config).expect("a target"), accepted)
}

/// Returns a connected channel, and its server's end, played by the test.
pub(crate) async fn connected(settings: &[Setting]) -> (Channel, Peer, Accepted) {
    connected_by(channel_config(|_| {}), settings).await
}

/// Like [`connected`], with another configuration.
pub(crate) async fn connected_by(config: ChannelConfig, settings: &[Setting]) -> (Channel, Peer, Accepted) {
    let (channel, mut accepted) = channel_to_test(config);
    let (outcome, peer) = tokio::join!(channel.connect(), async {
        let io = accepted.recv().await.expect("it connects");
        Peer::server(io, settings).await
    });
    outcome.expect("connected");
    (channel, peer, accepted)
}

/// Returns the headers of a request to another method.
pub(crate) fn request_at(path: &str) -> Vec<(&str, &str)> {
    peer::REQUEST.iter().map(|&(name, value)| (name, if name == ":path" { path } else { value })).collect()
}

/// Sends the output of `peer`. Returns the frames that arrive until the other end has nothing more to send, except
/// SETTINGS, PING and WINDOW_UPDATE.
pub(crate) async fn settled(peer: &mut Peer) -> Vec<Frame> {
    const PAYLOAD: &[u8; 8] = b"settled?";
    peer.send().await;
    // Paused time advances when all tasks are idle.
    sleep(Duration::from_millis(1)).await;
    peer.frame(Kind::Ping, Flags::NONE, 0, PAYLOAD).send().await;
    let mut frames = Vec::new();
    loop {
        let frame = soon(peer.next()).await.expect("an answer to the PING");
        match frame.kind {
            Kind::Ping if frame.payload == PAYLOAD => return frames,
            Kind::Ping | Kind::Settings | Kind::WindowUpdate => {}
            _ => frames.push(frame),
        }
    }
}

/// Messages that are available at once.
pub(crate) struct Items(std::vec::IntoIter<Message>);

pub(crate) fn items(messages: Vec<Message>) -> Items {
    Items(messages.into_iter())
}

impl Stream for Items {
    type Item = Result<Message, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

impl Source for Items {
    type Message = Message;
}

/// Messages that the test sends one by one.
pub(crate) struct Receiver(pub(crate) mpsc::UnboundedReceiver<Message>);

impl Stream for Receiver {
    type Item = Result<Message, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|message| message.map(Ok))
    }
}

impl Source for Receiver {
    type Message = Message;
}

/// Returns options changed by `set`.
pub(crate) fn call_options(set: impl FnOnce(&mut CallOptions)) -> CallOptions {
    let mut options = CallOptions::default();
    set(&mut options);
    options
}

/// Returns options with this timeout.
pub(crate) fn within(timeout: Duration) -> CallOptions {
    call_options(|options| options.timeout = Some(timeout))
}

pub(crate) fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

/// Calls `Echo`. Returns the metadata of the response, too.
pub(crate) async fn unary(
    channel: &Channel,
    metadata: &HeaderMap,
    message: Message,
    options: &CallOptions,
) -> Result<(Message, HeaderMap), Status> {
    let mut response = channel.unary(&ECHO, metadata, &message, options).await?;
    let opened = response.message().open().map(|payload| Message(Bytes::copy_from_slice(payload.as_bytes())));
    match opened {
        Ok(message) => Ok((message, response.finish())),
        Err(status) => Err(response.fail(status, channel, &ECHO)),
    }
}

pub(crate) async fn echo(channel: &Channel, message: Message) -> Result<Message, Status> {
    unary(channel, &NO_METADATA, message, &CallOptions::default()).await.map(|(message, _)| message)
}

/// Calls `Echo` in a spawned task.
pub(crate) fn spawn_echo(channel: &Channel, message: &str) -> JoinHandle<Result<Message, Status>> {
    spawn_echo_with(channel, raw(message), CallOptions::default())
}

pub(crate) fn spawn_echo_with(
    channel: &Channel,
    message: Message,
    options: CallOptions,
) -> JoinHandle<Result<Message, Status>> {
    let channel = channel.clone();
    tokio::spawn(
        async move { unary(&channel, &NO_METADATA, message, &options).await.map(|(message, _)| message) },
    )
}

/// Calls a method with a stream of requests and a stream of responses.
pub(crate) async fn stream<S: Source + Send + 'static>(
    channel: &Channel,
    method: &Method,
    requests: S,
    options: &CallOptions,
) -> Result<Messages, Status> {
    let (exchange, _) = channel.stream(method, &NO_METADATA, requests, options).await?;
    Ok(Messages(exchange.into_responses()))
}

pub(crate) async fn chat<S: Source + Send + 'static>(
    channel: &Channel,
    requests: S,
) -> Result<Messages, Status> {
    stream(channel, &CHAT, requests, &CallOptions::default()).await
}

/// Calls `Count` and returns its only response.
pub(crate) async fn count<S: Source + Send + 'static>(
    channel: &Channel,
    requests: S,
    options: &CallOptions,
) -> Result<Message, Status> {
    let (exchange, _) = channel.stream(&COUNT, &NO_METADATA, requests, options).await?;
    let read = |payload: thalweg_engine::Payload<'_>| Ok(Message(Bytes::copy_from_slice(payload.as_bytes())));
    exchange.only_response(read).await.map(|(message, _)| message)
}

pub(crate) fn in_flight(channel: &Channel) -> usize {
    channel.lanes().iter().map(|lane| lane.in_flight).sum()
}

/// Awaits `future` and panics on timeout, rather than hang.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it must come to an end")
}

/// Waits until `condition` is true.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}
