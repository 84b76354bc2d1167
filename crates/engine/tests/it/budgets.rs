//! Memory budgets: the bytes that unread responses make a server buffer, and for how long.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use thalweg_engine::server::{
    Handler, MessageResponse, Router, ServerConfig, ServerMethod, StreamingCall, StreamingHandler,
    UnaryHandler,
};
use thalweg_engine::{Encode, Envelope, RequestHead, ServiceOptions, Source, Status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

use crate::support::peer::Peer;
use crate::support::{
    BoxFuture, EchoResponse, Message, Messages, NO_METADATA, Served, client_with, request_at, response_of,
    routes, server_config, soon,
};

const MEBIBYTE: usize = 1 << 20;

fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2)
}

/// Bytes of live responses, and their peak.
#[derive(Debug, Default)]
struct Live {
    bytes: AtomicUsize,
    peak: AtomicUsize,
}

/// The memory of one message.
struct Tracked {
    bytes: Vec<u8>,
    live: Arc<Live>,
}

impl Tracked {
    fn message(len: usize, live: &Arc<Live>) -> Message {
        let now = live.bytes.fetch_add(len, Ordering::SeqCst) + len;
        live.peak.fetch_max(now, Ordering::SeqCst);
        Message(Bytes::from_owner(Self { bytes: vec![7; len], live: Arc::clone(live) }))
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

/// Responds with the number of bytes given in the request as decimal digits: at once, later, or repeatedly.
#[derive(Clone, Default)]
struct Sized {
    live: Arc<Live>,
    is_late: bool,
}

fn len_of(digits: &[u8]) -> usize {
    std::str::from_utf8(digits).expect("digits").parse().expect("a number")
}

impl Sized {
    fn router(live: &Arc<Live>) -> Arc<dyn Router> {
        let sized = |is_late| Self { live: Arc::clone(live), is_late };
        let methods = [
            ("AtOnce", Handler::unary(sized(false))),
            ("Later", Handler::unary(sized(true))),
            ("Again", Handler::streaming(sized(false))),
        ];
        routes(methods.map(|(name, handler)| {
            ServerMethod::new(&format!("test.Sized/{name}"), ServiceOptions::default(), handler)
        }))
    }
}

impl UnaryHandler for Sized {
    type Future = BoxFuture<Self::Output>;
    type Output = Result<EchoResponse, Status>;

    fn start(&self, _: &RequestHead, mut request: Envelope<'_>) -> Result<Self::Future, Status> {
        let len = len_of(request.open()?.as_bytes());
        let Self { live, is_late } = self.clone();
        Ok(Box::pin(async move {
            if is_late {
                sleep(Duration::from_millis(1)).await;
            }
            let message = Tracked::message(len, &live);
            Ok(EchoResponse { metadata: HeaderMap::new(), message, trailers: None })
        }))
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        response_of(output)
    }
}

impl StreamingHandler for Sized {
    fn start(&self, _: &RequestHead, call: StreamingCall) -> BoxFuture<()> {
        let live = Arc::clone(&self.live);
        Box::pin(async move {
            let order = Messages(call.requests()).message().await.expect("an order").expect("an order");
            let len = len_of(&order.0);
            call.respond_stream(&NO_METADATA, Again { live, len }, None).await;
        })
    }
}

struct Again {
    live: Arc<Live>,
    len: usize,
}

impl Stream for Again {
    type Item = Result<Message, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(Tracked::message(self.len, &self.live))))
    }
}

impl Source for Again {
    type Message = Message;
}

/// A server whose connections are pipes.
struct SizedServer {
    served: Served,
    live: Arc<Live>,
}

impl SizedServer {
    fn new(set: impl FnOnce(&mut ServerConfig)) -> Self {
        let live = Arc::<Live>::default();
        let served = Served::start(server_config(set), Sized::router(&live));
        Self { served, live }
    }

    /// Opens a connection with active calls of `method` that request responses of `len` bytes.
    async fn calls(&self, method: &str, len: usize, calls: usize) -> Peer {
        let mut peer = self.served.peer().await;
        for stream in streams().take(calls) {
            call(&mut peer, stream, method, len);
        }
        peer.send().await;
        peer
    }

    fn peak(&self) -> usize {
        self.live.peak.load(Ordering::SeqCst)
    }
}

fn call(peer: &mut Peer, stream: u32, method: &str, len: usize) {
    let path = format!("/test.Sized/{method}");
    peer.headers(stream, false, &request_at(&path)).message(stream, true, len.to_string().as_bytes());
}

async fn sized_client() -> Peer {
    client_with(server_config(|_| {}), Sized::router(&Arc::default())).await
}

/// Opens the windows as wide as possible.
fn open(peer: &mut Peer) {
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes());
    peer.settings(&[Setting::InitialWindowSize(1 << 30)]);
}

/// A connection buffers responses up to its budget and one more, and one more each after 1 s and 3 s without progress.
/// This holds for handlers that complete at once or later. Responses are sent in order.
#[tokio::test(start_paused = true)]
async fn connection_buffers_up_to_its_budget() {
    for method in ["AtOnce", "Later"] {
        let served = SizedServer::new(|config| config.http2.buffer_budget = 4 * MEBIBYTE);
        let mut peer = served.calls(method, MEBIBYTE, 100).await;
        sleep(Duration::from_secs(5)).await;
        let peak = served.peak();
        assert!(peak <= 8 * MEBIBYTE, "{method}: {peak} B");
        open(&mut peer);
        peer.send().await;
        let mut ended = 0;
        while ended < 100 {
            ended += usize::from(soon(peer.next()).await.expect("a frame").end_stream);
        }
        // The output may hold the last frames of some more.
        let peak = served.peak();
        assert!(peak <= 12 * MEBIBYTE, "{method}: {peak} B while they leave");
    }
}

/// Each stream has a queue, and all share the connection's budget.
#[tokio::test(start_paused = true)]
async fn streams_of_a_connection_share_its_budget() {
    let served = SizedServer::new(|config| config.http2.buffer_budget = 2 * MEBIBYTE);
    let mut peer = served.calls("Again", MEBIBYTE / 2, 50).await;
    sleep(Duration::from_secs(5)).await;
    // Streams with an empty queue run up to twice the budget, and one more after 1 s and 3 s without progress. A
    // running stream builds two messages.
    let peak = served.peak();
    assert!(peak <= 8 * MEBIBYTE, "{peak} B");
    open(&mut peer);
    peer.send().await;
    let mut received = BTreeMap::<u32, usize>::new();
    while received.len() < 50 || received.values().any(|len| *len < 2 * MEBIBYTE) {
        let frame = soon(peer.next()).await.expect("a frame");
        if frame.kind == Kind::Data {
            *received.entry(frame.stream).or_default() += frame.payload.len();
        }
    }
}

/// A client may open the window of its last call only.
#[tokio::test(start_paused = true)]
async fn response_with_open_window_arrives_beyond_the_budget() {
    for method in ["AtOnce", "Later"] {
        let served = SizedServer::new(|config| config.http2.buffer_budget = 2 * MEBIBYTE);
        let mut peer = served.served.peer().await;
        peer.settings(&[Setting::InitialWindowSize(0)]);
        peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes());
        for stream in [1, 3, 5, 7, 9] {
            call(&mut peer, stream, method, MEBIBYTE);
        }
        peer.frame(Kind::WindowUpdate, Flags::NONE, 9, &(1_u32 << 30).to_be_bytes());
        peer.send().await;
        loop {
            let frame = timeout(Duration::from_secs(20), peer.next())
                .await
                .expect("completes in time")
                .expect("a frame");
            if frame.end_stream {
                assert_eq!(frame.stream, 9, "{method}");
                break;
            }
        }
    }
}

/// All connections together buffer at most the server's budget and its reserve.
#[tokio::test(start_paused = true)]
async fn all_connections_buffer_up_to_server_budget() {
    for method in ["AtOnce", "Later"] {
        let served = SizedServer::new(|config| config.max_memory = Some(8 * MEBIBYTE));
        let mut peers = Vec::new();
        for _ in 0..40 {
            peers.push(served.calls(method, MEBIBYTE, 4).await);
        }
        sleep(Duration::from_secs(10)).await;
        let peak = served.peak();
        assert!((6 * MEBIBYTE..=10 * MEBIBYTE).contains(&peak), "{method}: {peak} B");
    }
}

/// A client that reads gets its responses within a second, although other clients do not read. Their responses make
/// room for one another.
#[tokio::test(start_paused = true)]
async fn small_calls_continue_next_to_stalled_peers() {
    let served = SizedServer::new(|config| config.max_memory = Some(8 * MEBIBYTE));
    let mut honest = served.calls("Later", 10, 1).await;
    while !soon(honest.next()).await.expect("a frame").end_stream {}
    let mut hoarders = Vec::new();
    for _ in 0..40 {
        hoarders.push(served.calls("Later", MEBIBYTE, 1).await);
    }
    for stream in streams().skip(1).take(200) {
        let started_at = Instant::now();
        call(&mut honest, stream, "Later", 10);
        honest.send().await;
        while !soon(honest.next()).await.expect("a frame").end_stream {}
        assert!(started_at.elapsed() < Duration::from_secs(1), "{:?}", started_at.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    let mut closed = 0;
    for mut peer in hoarders {
        closed += usize::from(timeout(Duration::from_secs(1), peer.rest()).await.is_ok());
    }
    assert!(closed > 0);
}

/// A response larger than all budgets is sent if it is the only one.
#[tokio::test(start_paused = true)]
async fn response_may_be_larger_than_the_budget() {
    let served = SizedServer::new(|config| {
        config.max_memory = Some(2 * MEBIBYTE);
        config.http2.buffer_budget = MEBIBYTE;
    });
    let mut peer = served.served.peer().await;
    open(&mut peer);
    call(&mut peer, 1, "Later", 8 * MEBIBYTE);
    peer.send().await;
    let mut received = 0;
    loop {
        let frame = soon(peer.next()).await.expect("a frame");
        if frame.kind == Kind::Data {
            received += frame.payload.len();
            // Longer than the server's maintenance interval.
            sleep(Duration::from_millis(20)).await;
        }
        if frame.end_stream {
            break;
        }
    }
    assert_eq!(received, 8 * MEBIBYTE + 5);
}

/// A busy-polling driver admits waiting calls once there is memory.
#[tokio::test]
async fn busy_polling_connection_admits_calls_that_waited() {
    let forever = Duration::from_secs(3600);
    let served = SizedServer::new(|config| {
        config.max_memory = Some(4 * MEBIBYTE);
        config.busy_poll = Some(forever);
    });
    let hoarder = served.calls("Later", MEBIBYTE, 8).await;
    soon(async {
        while served.peak() < 4 * MEBIBYTE {
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let mut waiting = served.served.peer().await;
    open(&mut waiting);
    call(&mut waiting, 1, "Later", MEBIBYTE);
    waiting.send().await;
    sleep(Duration::from_millis(50)).await;
    drop(hoarder);
    while !soon(waiting.next()).await.expect("a frame").end_stream {}
}

/// Returns when the first stream of a connection is reset, within twenty minutes. The client opens its window by `len`
/// bytes every `period` seconds.
async fn reset_after(method: &str, len: u32, period: u64) -> Option<u64> {
    let mut peer = sized_client().await;
    peer.settings(&[Setting::InitialWindowSize(0)]);
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes());
    for stream in streams().take(3) {
        call(&mut peer, stream, method, MEBIBYTE);
    }
    peer.send().await;
    let started_at = Instant::now();
    while started_at.elapsed() < Duration::from_secs(1200) {
        let reset = timeout(Duration::from_secs(period), peer.next_of(Kind::RstStream)).await;
        if let Ok(reset) = reset {
            assert_eq!(reset.code(), ErrorCode::Cancel);
            return Some(started_at.elapsed().as_secs());
        }
        for stream in streams().take(3) {
            peer.frame(Kind::WindowUpdate, Flags::NONE, stream, &len.to_be_bytes());
        }
        peer.send().await;
    }
    None
}

/// An occasional byte does not restart the time limit; a KiB per second suffices.
#[tokio::test(start_paused = true)]
async fn streams_below_minimum_rate_are_ended() {
    for method in ["AtOnce", "Again"] {
        let trickled = reset_after(method, 1, 10).await.expect("it is reset");
        assert!((60..75).contains(&trickled), "{method}: after {trickled} s");
        let halved = reset_after(method, 512, 1).await.expect("it is reset");
        assert!((118..130).contains(&halved), "{method}: after {halved} s");
        assert_eq!(reset_after("Again", 1100, 1).await, None, "{method}");
    }
}

/// Returns a client with three calls whose responses wait only for the connection's window.
async fn three_calls_share_a_window() -> Peer {
    let mut peer = sized_client().await;
    peer.settings(&[Setting::InitialWindowSize(1 << 30)]);
    for stream in streams().take(3) {
        call(&mut peer, stream, "AtOnce", MEBIBYTE);
    }
    peer.send().await;
    peer
}

/// A connection whose own window opens slowly is closed too, although its streams' windows are open.
#[tokio::test(start_paused = true)]
async fn connections_below_minimum_rate_are_closed() {
    let mut peer = three_calls_share_a_window().await;
    let started_at = Instant::now();
    let goaway = loop {
        match timeout(Duration::from_secs(10), peer.next_of(Kind::GoAway)).await {
            Ok(goaway) => break goaway,
            Err(_) => peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &1_u32.to_be_bytes()).send().await,
        }
    };
    assert_eq!(goaway.code(), ErrorCode::EnhanceYourCalm);
    let took = started_at.elapsed().as_secs();
    assert!((60..75).contains(&took), "after {took} s");
}

/// A client that does not read its socket loses its connection, even with open windows.
#[tokio::test(start_paused = true)]
async fn unread_socket_is_closed_below_minimum_rate() {
    let mut peer = sized_client().await;
    open(&mut peer);
    call(&mut peer, 1, "AtOnce", MEBIBYTE);
    peer.send().await;
    let started_at = Instant::now();
    let mut byte = [0];
    loop {
        sleep(Duration::from_secs(10)).await;
        // A server that closed the connection leaves its output to be read.
        let is_over = peer.io.write_all(b"").await.is_err() || started_at.elapsed() > Duration::from_secs(90);
        if is_over {
            break;
        }
        peer.io.read_exact(&mut byte).await.expect("there is something");
    }
    let left = soon(peer.rest()).await;
    let received: usize = left.iter().map(|frame| frame.payload.len()).sum();
    assert!(received < MEBIBYTE / 2, "it was cut off: {received} B");
}

/// A stream with an open window is not late while others use the connection's window.
#[tokio::test(start_paused = true)]
async fn streams_that_share_the_connections_window_are_not_late() {
    let mut peer = three_calls_share_a_window().await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(300) {
        while let Ok(frame) = timeout(Duration::from_secs(1), peer.next()).await {
            let kind = frame.expect("the connection stays").kind;
            assert!(
                kind != Kind::RstStream && kind != Kind::GoAway,
                "{kind:?} after {:?}",
                started.elapsed()
            );
        }
        peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &1500_u32.to_be_bytes()).send().await;
    }
}

/// The minimum rate also applies to a response that only waits for the socket.
#[tokio::test(start_paused = true)]
async fn response_in_output_has_a_minimum_rate() {
    let mut peer = sized_client().await;
    open(&mut peer);
    call(&mut peer, 1, "AtOnce", 250_000);
    peer.send().await;
    sleep(Duration::from_secs(55)).await;
    let mut byte = [0];
    peer.io.read_exact(&mut byte).await.expect("the stream is open");
    // It is closed some time after the limit, because the rest cannot be flushed either.
    sleep(Duration::from_secs(120)).await;
    let mut rest = Vec::new();
    soon(peer.io.read_to_end(&mut rest)).await.expect("an end");
    assert!(rest.len() < 100_000, "{} B came", rest.len());
}
