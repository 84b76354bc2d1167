//! What a client can have a server hold, and for how long: bytes by a budget, what was begun by its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::peer::{Frame, Peer, REQUEST, compressed_envelope, envelope};
use crate::support::{ECHO, Echo, Items, connect, items, raw, soon, start};
use bytes::Bytes;
use thalweg::server::{Methods, ServerBuilder, Service};
use thalweg::{CallOptions, Code, Raw, Request, Response, Server, ServiceOptions, Status};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use tokio::io::{AsyncWriteExt, duplex};
use tokio::time::Instant;

const MEBIBYTE: usize = 1 << 20;

pub(crate) async fn client_of(server: ServerBuilder) -> Peer {
    let (near, far) = duplex(64 * 1024);
    tokio::spawn(server.serve_connection(far));
    Peer::client(near).await
}

pub(crate) fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2)
}

/// Sends what is in `peer.out` piece by piece, for as long as the server takes it and the windows are open. Returns how
/// many bytes of DATA went.
struct Sender {
    connection_window: i64,
    initial: i64,
    windows: std::collections::BTreeMap<u32, i64>,
    sent: usize,
}

impl Sender {
    fn new() -> Self {
        Self {
            connection_window: 65_535,
            initial: 65_535,
            windows: std::collections::BTreeMap::new(),
            sent: 0,
        }
    }

    /// A stream is open, on which so much was sent.
    fn open(&mut self, stream: u32, sent: usize) {
        self.windows.insert(stream, self.initial - sent.cast_signed() as i64);
        self.connection_window -= sent.cast_signed() as i64;
    }

    /// Takes note of all that has come.
    async fn take_in(&mut self, peer: &mut Peer) {
        while let Ok(Some(frame)) = tokio::time::timeout(Duration::from_millis(5), peer.next()).await {
            match frame.kind {
                Kind::WindowUpdate => {
                    let increment = u32::from_be_bytes(frame.payload[..4].try_into().expect("four bytes"));
                    match self.windows.get_mut(&frame.stream) {
                        _ if frame.stream == 0 => self.connection_window += i64::from(increment),
                        Some(window) => *window += i64::from(increment),
                        None => {}
                    }
                }
                Kind::Settings if !frame.payload.is_empty() => {
                    for entry in frame.payload.as_chunks().0 {
                        if let Setting::InitialWindowSize(size) = Setting::parse(*entry) {
                            let difference = i64::from(size) - self.initial;
                            self.windows.values_mut().for_each(|window| *window += difference);
                            self.initial = i64::from(size);
                        }
                    }
                    peer.frame(Kind::Settings, Flags::ACK, 0, b"").send().await;
                }
                _ => {}
            }
        }
    }

    /// Sends as much of `left` bytes of a stream as the windows let.
    async fn send(&mut self, peer: &mut Peer, stream: u32, left: &mut usize) -> bool {
        let window = self.windows.get_mut(&stream).expect("it is open");
        let len = (*window).min(self.connection_window).clamp(0, 16_384) as usize;
        let len = len.min(*left);
        if len == 0 {
            return false;
        }
        *window -= len.cast_signed() as i64;
        self.connection_window -= len.cast_signed() as i64;
        self.sent += len;
        *left -= len;
        peer.data(stream, false, &vec![0; len]).send().await;
        true
    }
}

/// 128 requests that each lack a byte: what the server takes of them stays near its budget, and they end when their
/// time is over.
#[tokio::test(start_paused = true)]
async fn requests_that_never_end() {
    let server = Server::builder()
        .add_service(Echo::default())
        .max_connection_memory(4 * MEBIBYTE)
        .request_timeout(Some(Duration::from_secs(5)));
    let mut peer = client_of(server).await;
    let mut sender = Sender::new();
    sender.take_in(&mut peer).await;
    let message = 4 * MEBIBYTE - 5;
    let mut left: Vec<(u32, usize)> = streams().take(128).map(|stream| (stream, message)).collect();
    for (stream, left) in &mut left {
        peer.headers(*stream, false, REQUEST);
        let prefix = [&[0][..], &(message as u32 + 1).to_be_bytes()].concat();
        sender.open(*stream, prefix.len());
        peer.data(*stream, false, &prefix).send().await;
        while sender.send(&mut peer, *stream, left).await {}
        sender.take_in(&mut peer).await;
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        for (stream, left) in &mut left {
            while sender.send(&mut peer, *stream, left).await {}
        }
        sender.take_in(&mut peer).await;
    }
    // Twice the budget and the connection's window, and the oldest message.
    let bound = 2 * (4 + 4) * MEBIBYTE + 4 * MEBIBYTE;
    assert!(sender.sent <= bound, "{} B were taken", sender.sent);
    assert!(sender.sent >= 4 * MEBIBYTE, "{} B were taken", sender.sent);
    // The oldest has 4 MiB, a second for each KiB of which it may take.
    let deadline = Duration::from_secs(5 + 4 * 1024 + 10);
    let ended = tokio::time::timeout(deadline, peer.next_of(Kind::Headers)).await.expect("a call ends");
    assert!(ended.end_stream && ended.text().contains("grpc-status: 1"), "{}", ended.text());
}

/// A request of which nothing comes ends when its time is over, or its deadline.
#[tokio::test(start_paused = true)]
async fn requests_that_do_not_come() {
    let check = async |fields: &[(&str, &str)], body: &[u8], status: &str, seconds: std::ops::Range<u64>| {
        let mut peer = client_of(Server::builder().add_service(Echo::default())).await;
        peer.headers(1, false, &[REQUEST, fields].concat()).data(1, false, body).send().await;
        let began = Instant::now();
        let ended = peer.next_of(Kind::Headers).await;
        assert!(ended.end_stream && ended.text().contains(status), "{}", ended.text());
        let took = began.elapsed().as_secs();
        assert!(seconds.contains(&took), "{status} after {took} s");
    };
    check(&[], b"", "grpc-status: 1", 30..34).await;
    check(&[], &envelope(b"abc")[..6], "grpc-status: 1", 30..34).await;
    check(&[("grpc-timeout", "3S")], &envelope(b"abc")[..6], "grpc-status: 4", 3..6).await;
}

/// The deadline of a call counts from its head, not from its message.
#[tokio::test(start_paused = true)]
async fn a_deadline_counts_from_the_head() {
    let check = async |message: &[u8], pause: u64, expected: Duration| {
        let mut peer = client_of(Server::builder().add_service(Echo::default())).await;
        let began = Instant::now();
        peer.headers(1, false, &[REQUEST, &[("grpc-timeout", "900m")]].concat()).send().await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        // In two parts, so that it is gathered.
        let envelope = envelope(message);
        peer.data(1, false, &envelope[..3]).data(1, true, &envelope[3..]).send().await;
        let ended = peer.next_of(Kind::Headers).await;
        assert!(ended.text().contains("grpc-status: 4"), "{}", ended.text());
        let took = began.elapsed();
        let near = expected..expected + Duration::from_millis(100);
        assert!(near.contains(&took), "{took:?} in place of {expected:?}");
    };
    check(b"sleep", 500, Duration::from_millis(900)).await;
    check(b"at once", 950, Duration::from_millis(950)).await;
}

/// Half a header block, or half of any frame but DATA, has ten seconds.
#[tokio::test(start_paused = true)]
async fn header_blocks_that_do_not_end() {
    let check = async |what: &str, begin: &dyn Fn(&mut Peer), more: &[u8]| {
        let mut peer = client_of(Server::builder().add_service(Echo::default())).await;
        begin(&mut peer);
        peer.send().await;
        let began = Instant::now();
        let goaway = loop {
            // It goes on, a little each second.
            if peer.io.write_all(more).await.is_err() {
                break peer.next_of(Kind::GoAway).await;
            }
            let next = tokio::time::timeout(Duration::from_secs(1), peer.next_of(Kind::GoAway)).await;
            if let Ok(goaway) = next {
                break goaway;
            }
        };
        assert_eq!(goaway.code(), ErrorCode::EnhanceYourCalm, "{what}");
        let took = began.elapsed().as_secs();
        assert!((10..13).contains(&took), "{what}: {took} s");
    };
    check(
        "half a HEADERS frame",
        &|peer| peer.out.extend_from_slice(&[0, 1, 0, 1, 4, 0, 0, 0, 1, 0x82]),
        &[0x82],
    )
    .await;
    check(
        "CONTINUATIONs",
        &|peer| {
            peer.frame(Kind::Headers, Flags::NONE, 1, &[0x82]);
        },
        &[],
    )
    .await;
}

/// What it answers with, and how often it was called.
struct Large {
    message: Raw,
    begun: Arc<AtomicUsize>,
    waits: bool,
}

impl Large {
    async fn get(self: Arc<Self>, _: Request<Raw>) -> Result<Response<Raw>, Status> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        if self.waits {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(Response::new(self.message.clone()))
    }
}

impl Service for Large {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        let service = Arc::new(self);
        methods.unary("Echo", &service, &ServiceOptions::default(), Large::get);
    }
}

/// A server with answers of 1 MiB and a budget of 4 MiB, and 100 calls to it.
async fn unread_answers(server: ServerBuilder, waits: bool) -> (Peer, Arc<AtomicUsize>) {
    let begun = Arc::new(AtomicUsize::new(0));
    let message = Raw(Bytes::from(vec![0; MEBIBYTE]));
    let service = Large { message, begun: Arc::clone(&begun), waits };
    let mut peer = client_of(server.add_service(service).max_connection_memory(4 * MEBIBYTE)).await;
    for stream in streams().take(100) {
        peer.headers(stream, false, REQUEST).message(stream, true, b"");
    }
    peer.send().await;
    (peer, begun)
}

/// Answers that nobody takes keep further calls from beginning; they begin as answers leave.
#[tokio::test(start_paused = true)]
async fn calls_wait_for_answers_to_leave() {
    let (mut peer, begun) = unread_answers(Server::builder(), false).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let at_once = begun.load(Ordering::SeqCst);
    assert!((4..8).contains(&at_once), "{at_once} calls began");
    // The client takes all there is, and they are all answered.
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes());
    peer.settings(&[Setting::InitialWindowSize(2 << 20)]).send().await;
    let mut answered = 0;
    while answered < 100 {
        let Frame { kind, end_stream, .. } = soon(peer.next()).await.expect("a frame");
        answered += usize::from(kind == Kind::Headers && end_stream);
    }
    assert_eq!(begun.load(Ordering::SeqCst), 100);
}

/// A client that takes nothing of its answers loses them when their time is over.
#[tokio::test(start_paused = true)]
async fn answers_that_nobody_takes() {
    let (mut peer, _) =
        unread_answers(Server::builder().reply_timeout(Some(Duration::from_secs(5))), false).await;
    // It is not the connection's window that holds them up.
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes()).send().await;
    let began = Instant::now();
    let reset = peer.next_of(Kind::RstStream).await;
    assert_eq!(reset.code(), ErrorCode::Cancel);
    let took = began.elapsed().as_secs();
    assert!((5..8).contains(&took), "after {took} s");
}

/// Handlers that had begun before answers piled up wait; the connection is ended when nothing of those leaves.
#[tokio::test(start_paused = true)]
async fn more_answers_than_the_budget() {
    let (mut peer, begun) = unread_answers(Server::builder(), true).await;
    let began = Instant::now();
    let goaway = peer.next_of(Kind::GoAway).await;
    assert_eq!(goaway.code(), ErrorCode::EnhanceYourCalm);
    let took = began.elapsed().as_secs();
    assert!((20..24).contains(&took), "after {took} s");
    assert!(begun.load(Ordering::SeqCst) > 50);
}

/// Where all connections together hold as much as they may, one that takes nothing of it goes, and the others go on.
#[tokio::test]
async fn all_connections_together() {
    let begun = Arc::new(AtomicUsize::new(0));
    let service = Large { message: Raw(Bytes::from(vec![0; MEBIBYTE])), begun, waits: false };
    let target = start(Server::builder().add_service(service).max_memory(8 * MEBIBYTE)).await;
    let honest = connect(&target).await;
    let mut hoards = Vec::new();
    for _ in 0..3 {
        let (mut near, far) = duplex(64 * 1024);
        let mut socket = tokio::net::TcpStream::connect(&target).await.expect("a listener");
        tokio::spawn(async move {
            let _ = tokio::io::copy_bidirectional(&mut near, &mut socket).await;
        });
        let mut peer = Peer::client(far).await;
        for stream in streams().take(20) {
            peer.headers(stream, false, REQUEST).message(stream, true, b"");
        }
        peer.send().await;
        hoards.push(peer);
    }
    let mut ended = 0;
    for peer in &mut hoards {
        let goaway = tokio::time::timeout(Duration::from_secs(4), peer.next_of(Kind::GoAway)).await;
        ended += usize::from(goaway.is_ok_and(|goaway| goaway.code() == ErrorCode::EnhanceYourCalm));
    }
    assert!(ended >= 1, "none was ended");
    let options = CallOptions::default();
    let reply = soon(honest.unary::<_, Raw>(&ECHO, Request::new(raw("")), &options)).await;
    assert_eq!(
        reply.map(|reply| reply.into_inner().0.len()).map_err(|status| status.code()),
        Ok::<_, Code>(MEBIBYTE)
    );
}

/// Metadata counts for it: 470 fields, which an index of one byte can name, take a hundred times as much. Calls with
/// such that do not end hold it, and the connection that has the most of them goes.
#[tokio::test(start_paused = true)]
async fn metadata_counts_for_all_connections_together() {
    let large = [REQUEST, &[("a", ""); 440]].concat();
    let check = async |head: &[(&str, &str)], calls: usize, is_ended: bool| {
        let server = Server::builder().add_service(Echo::default()).max_memory(2 * MEBIBYTE);
        let mut peer = client_of(server).await;
        for stream in streams().take(calls) {
            peer.headers(stream, false, head).send().await;
        }
        let goaway = tokio::time::timeout(Duration::from_secs(4), peer.next_of(Kind::GoAway)).await;
        assert_eq!(goaway.is_ok(), is_ended, "{calls} calls of {} fields", head.len());
        assert!(goaway.is_err() || goaway.is_ok_and(|goaway| goaway.code() == ErrorCode::EnhanceYourCalm));
    };
    check(&large, 100, true).await;
    check(&large, 30, false).await;
    check(REQUEST, 100, false).await;
}

/// Has its requests as long as its calls go on, which do not end.
pub(crate) struct Keeping;

impl Keeping {
    async fn keep(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        std::future::pending::<()>().await;
        Ok(Response::new(request.into_inner()))
    }

    async fn keep_to_stream(
        self: Arc<Self>,
        request: Request<Raw>,
    ) -> Result<Response<Items<Result<Raw, Status>>>, Status> {
        std::future::pending::<()>().await;
        Ok(Response::new(items(vec![Ok(request.into_inner())])))
    }
}

impl Service for Keeping {
    const NAME: &'static str = "test.Keeping";

    fn register(self, methods: &mut Methods<'_>) {
        let service = Arc::new(self);
        methods.unary("One", &service, &ServiceOptions::default(), Keeping::keep);
        methods.server_streaming("Stream", &service, &ServiceOptions::default(), Keeping::keep_to_stream);
    }
}

/// So do the requests that handlers have, by what they are without compression.
#[tokio::test(start_paused = true)]
async fn requests_count_for_all_connections_together() {
    let check = async |path: &str, envelope: &[u8], calls: usize, is_ended: bool| {
        let mut head: Vec<_> = REQUEST.iter().copied().filter(|(name, _)| *name != ":path").collect();
        head.insert(0, (":path", path));
        head.push(("grpc-encoding", "gzip"));
        let server = Server::builder().add_service(Keeping).max_memory(2 * MEBIBYTE);
        let mut peer = client_of(server).await;
        for stream in streams().take(calls) {
            peer.headers(stream, false, &head);
            for part in envelope.chunks(100_000) {
                peer.data(stream, false, part).send().await;
            }
            peer.data(stream, true, b"").send().await;
        }
        let goaway = tokio::time::timeout(Duration::from_secs(4), peer.next_of(Kind::GoAway)).await;
        assert_eq!(goaway.is_ok(), is_ended, "{path}: {calls} calls of {} bytes", envelope.len());
    };
    for path in ["/test.Keeping/One", "/test.Keeping/Stream"] {
        for envelope in [envelope(&vec![0; 60_000]), compressed_envelope(&vec![0; 60_000])] {
            check(path, &envelope, 40, true).await;
            check(path, &envelope, 10, false).await;
        }
        check(path, &envelope(&vec![0; 300_000]), 8, true).await;
        check(path, &envelope(b"small"), 100, false).await;
    }
}

/// Heads that name much by indices are decoded some at a time, and others have their turn in between.
#[tokio::test(start_paused = true)]
async fn others_have_their_turn_between_large_heads() {
    let begun = Arc::new(AtomicUsize::new(0));
    let service = Large { message: raw("x"), begun: Arc::clone(&begun), waits: false };
    let (near, far) = duplex(MEBIBYTE);
    tokio::spawn(Server::builder().add_service(service).serve_connection(far));
    let mut peer = Peer::client(near).await;
    let head = [REQUEST, &[("a", ""); 440]].concat();
    for stream in streams().take(250) {
        peer.indexed_headers(stream, &head).message(stream, true, b"");
    }
    assert!(peer.out.len() < 128 * 1024, "they come in one read: {}", peer.out.len());
    peer.send().await;
    let mut rows = Vec::new();
    while begun.load(Ordering::SeqCst) < 250 {
        let before = begun.load(Ordering::SeqCst);
        tokio::task::yield_now().await;
        rows.push(begun.load(Ordering::SeqCst) - before);
    }
    // Five have 64 KiB; time stands still, and a poll of the driver ends after 16 times as many.
    assert!(rows.iter().all(|row| *row <= 80), "{rows:?}");
}

/// A call that is reset in the read that brought it does not run.
#[tokio::test(start_paused = true)]
async fn calls_that_are_reset_in_the_same_read() {
    let begun = Arc::new(AtomicUsize::new(0));
    let service = Large { message: raw("x"), begun: Arc::clone(&begun), waits: false };
    let mut peer = client_of(Server::builder().add_service(service)).await;
    for stream in streams().take(50) {
        peer.headers(stream, false, REQUEST).message(stream, true, b"").reset(stream, ErrorCode::Cancel);
    }
    peer.headers(1001, false, REQUEST).message(1001, true, b"").send().await;
    let answered = peer.next_of(Kind::Headers).await;
    assert_eq!(answered.stream, 1001);
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}
