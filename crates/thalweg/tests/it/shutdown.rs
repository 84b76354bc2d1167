//! Shutdown of a server: which calls it waits for, and how long.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::support::peer::{REQUEST, envelope};
use crate::support::{Echo, REPEAT, Receiver, chat, connect, echo, raw, soon, spawn_echo, until};
use thalweg::server::{Methods, ServeError, ServerHandle, Service};
use thalweg::{CallOptions, Code, Raw, Request, Response, Server, ServiceOptions, Status, Stream, Streaming};
use thalweg_engine::http2::frame::{self, FRAME_HEADER_LEN, Flags, FrameHeader, Kind, PREFACE};
use thalweg_engine::http2::hpack::Encoder;
use thalweg_engine::http2::{Block, FieldList, Indexing, StreamId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A server that can be stopped.
struct Running {
    path: PathBuf,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    async fn start(echo: Echo, grace: Duration) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("thalweg-stop-{}-{number}.sock", std::process::id()));
        let address = format!("unix:{}", path.display()).parse().expect("an address");
        let server = Server::builder().add_service(echo).shutdown_grace(grace);
        let server = server.bind(&[address]).await.expect("a free path");
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
        Self { path, stop, serving }
    }

    fn target(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// Stops the server and returns how long that took.
    async fn stop(self) -> Duration {
        let began = Instant::now();
        self.stop.send(()).expect("it serves");
        self.serving.await.expect("no panic").expect("a clean end");
        began.elapsed()
    }
}

/// Connects a client that has sent its preface and one unary call.
async fn raw_client(server: &Running, message: &[u8]) -> UnixStream {
    let mut io = UnixStream::connect(&server.path).await.expect("it listens");
    let mut out = PREFACE.to_vec();
    frame::settings(&[], &mut out);
    frame::settings_ack(&mut out);
    let mut fields = FieldList::new();
    for (name, value) in REQUEST {
        fields.push(name.as_bytes(), value.as_bytes(), Indexing::Literal);
    }
    let mut block = Vec::new();
    Encoder::new().encode(Block { fixed: None, extra: &fields }, &mut block);
    let stream = StreamId::new(1);
    frame::emit(Kind::Headers, Flags::END_HEADERS, stream, &block, &mut out);
    frame::window_update(stream, 8 << 20, &mut out);
    frame::window_update(StreamId::CONNECTION, 8 << 20, &mut out);
    for part in envelope(message).chunks(16_384) {
        frame::emit(Kind::Data, Flags::NONE, stream, part, &mut out);
    }
    frame::emit(Kind::Data, Flags::END_STREAM, stream, b"", &mut out);
    io.write_all(&out).await.expect("it reads");
    io
}

/// Reads frames until the server closes.
async fn frames(io: &mut UnixStream) -> Vec<FrameHeader> {
    let mut bytes = Vec::new();
    io.read_to_end(&mut bytes).await.expect("an end");
    let (mut remaining, mut frames) = (&bytes[..], Vec::new());
    while let Some((header, rest)) = remaining.split_first_chunk::<FRAME_HEADER_LEN>() {
        let header = FrameHeader::parse(header);
        remaining = &rest[header.len as usize..];
        frames.push(header);
    }
    frames
}

#[tokio::test(start_paused = true)]
async fn idle_clients_are_closed_at_once() {
    let server = Running::start(Echo::default(), Duration::from_secs(60)).await;
    let channels = [connect(&server.target()).await, connect(&server.target()).await];
    echo(&channels[0], raw("x")).await.expect("a response");
    let target = server.target();
    assert!(server.stop().await < Duration::from_secs(1));
    let status = echo(&channels[0], raw("y")).await.expect_err("the server has stopped");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains(&target), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn idle_client_ignoring_goaway_does_not_delay_shutdown() {
    let server = Running::start(Echo::default(), Duration::from_secs(60)).await;
    let mut client = raw_client(&server, b"x").await;
    let reading = tokio::spawn(async move { frames(&mut client).await });
    until(|| !reading.is_finished()).await;
    let took = server.stop().await;
    // The client acknowledges neither PING nor GOAWAY: the second GOAWAY goes out after 5 s.
    assert!(took < Duration::from_secs(8), "{took:?}");
    let goaways = reading.await.expect("no panic").iter().filter(|frame| frame.kind == Kind::GoAway).count();
    assert_eq!(goaways, 2);
}

#[tokio::test(start_paused = true)]
async fn started_calls_get_the_grace_period() {
    let handlers = Echo::default();
    let server = Running::start(handlers.clone(), Duration::from_secs(7)).await;
    let channel = connect(&server.target()).await;
    let call = spawn_echo(&channel, "sleep");
    let (requests, source) = tokio::sync::mpsc::unbounded_channel();
    let mut responses = chat(&channel, Receiver(source)).await.expect("a stream");
    requests.send(raw("x")).expect("open");
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("x")));
    let took = server.stop().await;
    assert!(took >= Duration::from_secs(7) && took < Duration::from_secs(10), "{took:?}");
    assert_eq!(handlers.cancelled.load(Ordering::SeqCst), 1);
    assert_eq!(call.await.expect("no panic").expect_err("cut off").code(), Code::Unavailable);
    assert_eq!(responses.message().await.expect_err("cut off").code(), Code::Unavailable);
    assert_eq!(channel.lanes().iter().map(|lane| lane.in_flight).sum::<usize>(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_gets_response_within_grace() {
    let server = Running::start(Echo::default(), Duration::from_secs(600)).await;
    // All of it is framed when the socket is full: the rest waits for the reader in the drained connection.
    let size = 248 << 10;
    let mut client = raw_client(&server, &vec![1; size]).await;
    let stopping = tokio::spawn(server.stop());
    let mut received = Vec::new();
    let mut part = vec![0; 32 << 10];
    loop {
        // Much longer than a closed connection lingers.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let len = client.read(&mut part).await.expect("an end, no reset");
        if len == 0 {
            break;
        }
        received.extend_from_slice(&part[..len]);
    }
    let ones = received.split(|byte| *byte != 1).map(<[u8]>::len).sum::<usize>();
    assert!(ones >= size, "{ones} bytes of {size}");
    stopping.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn stalled_reader_is_closed_after_grace() {
    let server = Running::start(Echo::default(), Duration::from_secs(5)).await;
    let client = raw_client(&server, &vec![1; 3 << 20]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let took = server.stop().await;
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(9), "{took:?}");
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn handlers_end_after_grace() {
    let handlers = Echo::default();
    let server = Running::start(handlers.clone(), Duration::from_secs(5)).await;
    let client = raw_client(&server, b"sleep").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    let stopping = tokio::spawn(server.stop());
    until(|| handlers.cancelled.load(Ordering::SeqCst) == 1).await;
    // The connection itself lingers for a second.
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_millis(5900), "{took:?}");
    stopping.await.expect("no panic");
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn silent_client_is_closed() {
    let server = Running::start(Echo::default(), Duration::from_secs(60)).await;
    let mut silent = UnixStream::connect(&server.path).await.expect("it listens");
    let began = Instant::now();
    let mut received = Vec::new();
    silent.read_to_end(&mut received).await.expect("an end");
    // The client did not acknowledge SETTINGS within 10 s.
    assert!(began.elapsed() >= Duration::from_secs(10) && began.elapsed() < Duration::from_secs(13));
    drop(silent);
    assert!(server.stop().await < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn handle_reports_services_and_draining() {
    let server = Server::builder().add_service(Echo::default());
    let handle = server.handle();
    assert_eq!(handle.services(), ["test.Echo"]);
    assert!(handle.has_service("test.Echo") && !handle.has_service("test.Ech"));
    let server = server.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("a free port");
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.draining().await }
    });
    tokio::task::yield_now().await;
    assert!(!handle.is_draining() && !waiting.is_finished());
    stop.send(()).expect("it serves");
    waiting.await.expect("no panic");
    assert!(handle.is_draining());
    handle.draining().await;
    serving.await.expect("no panic").expect("a clean end");
}

/// A service whose handlers have the server's handle in a field, like those of a generated trait.
struct Endless {
    server: ServerHandle,
    ends_itself: bool,
}

impl Endless {
    #[expect(clippy::unused_async, reason = "handlers are async, those that do not wait, too")]
    async fn repeat(self: Arc<Self>, _: Request<Raw>) -> Result<Response<Ticks>, Status> {
        let (server, ends_itself) = (self.server.clone(), self.ends_itself);
        let end = Box::pin(async move {
            if ends_itself { server.draining().await } else { std::future::pending().await }
        });
        Ok(Response::new(Ticks { first: Some(raw("first")), end }))
    }
}

impl Service for Endless {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        methods.server_streaming("Repeat", &Arc::new(self), &ServiceOptions::default(), Self::repeat);
    }
}

/// One message, then pending until `end`.
struct Ticks {
    first: Option<Raw>,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Stream for Ticks {
    type Item = Result<Raw, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.end.as_mut().poll(cx).map(|()| None),
        }
    }
}

/// An endless stream that watches for draining ends with OK and delays nothing; another is cut off after the grace
/// period.
#[tokio::test(start_paused = true)]
async fn stream_can_end_when_server_drains() {
    const GRACE: Duration = Duration::from_secs(20);
    let check = async |ends_itself: bool| {
        let server = Server::builder().shutdown_grace(GRACE);
        let service = Endless { server: server.handle(), ends_itself };
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = server.add_service(service).bind(&[address]).await.expect("a free port");
        let target = server.local_addresses()[0].to_string();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
        let channel = connect(&target).await;
        let options = CallOptions::default();
        let order = Request::new(raw("x"));
        let responses: Response<Streaming<Raw>> =
            soon(channel.server_streaming(&REPEAT, order, &options)).await.expect("it begins");
        let mut responses = responses.into_inner();
        assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("first")));
        let began = Instant::now();
        stop.send(()).expect("it serves");
        let end = responses.message().await;
        assert_eq!(end.is_ok(), ends_itself, "{end:?}");
        serving.await.expect("no panic").expect("a clean end");
        assert_eq!(began.elapsed() < GRACE / 2, ends_itself, "{:?}", began.elapsed());
    };
    check(true).await;
    check(false).await;
}
