//! Limits on the bytes that a client can make a server buffer, and on the time.

use std::time::Duration;

use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use thalweg_engine::http2::{ErrorCode, Indexing};
use thalweg_engine::server::{self, ServerConfig};
use tokio::io::{AsyncWriteExt, duplex};
use tokio::time::Instant;

use crate::support::peer::{Frame, Peer, REQUEST, compressed_envelope, envelope};
use crate::support::{Echo, client_of, client_with, request_at, server_config, soon};

const MEBIBYTE: usize = 1 << 20;

fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2)
}

/// Sends `peer.out` piece by piece while the server reads and the windows are open. Returns the number of DATA bytes
/// sent.
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

    /// Registers an open stream on which `sent` bytes were sent.
    fn open(&mut self, stream: u32, sent: usize) {
        self.windows.insert(stream, self.initial - sent.cast_signed() as i64);
        self.connection_window -= sent.cast_signed() as i64;
    }

    /// Processes all received frames.
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

    /// Sends as much of the `left` bytes of a stream as the windows permit.
    async fn send(&mut self, peer: &mut Peer, stream: u32, left: &mut usize) -> bool {
        let window = self.windows.get_mut(&stream).expect("the stream is open");
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

/// 128 requests each lack a byte: the server buffers about its budget of them, and they end on timeout.
#[tokio::test(start_paused = true)]
async fn requests_that_never_end_stay_near_the_budget() {
    let config = server_config(|config| {
        config.http2.buffer_budget = 4 * MEBIBYTE;
        config.request_timeout = Some(Duration::from_secs(5));
    });
    let mut peer = client_with(config, Echo::default().router()).await;
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
    let started_at = Instant::now();
    while started_at.elapsed() < Duration::from_secs(2) {
        for (stream, left) in &mut left {
            while sender.send(&mut peer, *stream, left).await {}
        }
        sender.take_in(&mut peer).await;
    }
    // Twice the budget and the connection's window, and the oldest message.
    let bound = 2 * (4 + 4) * MEBIBYTE + 4 * MEBIBYTE;
    assert!(sender.sent <= bound, "{} B were taken", sender.sent);
    assert!(sender.sent >= 4 * MEBIBYTE, "{} B were taken", sender.sent);
    // The oldest has 4 MiB, with a second for each KiB.
    let deadline = Duration::from_secs(5 + 4 * 1024 + 10);
    let ended = tokio::time::timeout(deadline, peer.next_of(Kind::Headers)).await.expect("a call ends");
    assert!(ended.end_stream && ended.text().contains("grpc-status: 1"), "{}", ended.text());
}

/// A request that does not arrive ends on timeout, and so does a message of a stream.
#[tokio::test(start_paused = true)]
async fn stalled_request_is_ended() {
    let check = async |path: &str, body: &[u8]| {
        let mut peer = client_of(&Echo::default()).await;
        peer.headers(1, false, &request_at(path)).data(1, false, body).send().await;
        let started = Instant::now();
        let ended = tokio::time::timeout(Duration::from_secs(60), peer.next_of(Kind::Headers)).await;
        let ended = ended.expect("it ends");
        assert!(ended.end_stream && ended.text().contains("grpc-status: 1\n"), "{}", ended.text());
        assert!(ended.text().contains("took too long"), "{}", ended.text());
        assert!((30..34).contains(&started.elapsed().as_secs()), "{path}: {:?}", started.elapsed());
    };
    check("/test.Echo/Echo", b"").await;
    check("/test.Echo/Echo", &envelope(b"abc")[..6]).await;
    check("/test.Echo/Count", &envelope(b"abc")[..6]).await;
    // Between two messages a stream has no time limit.
    let mut peer = client_of(&Echo::default()).await;
    peer.headers(1, false, &request_at("/test.Echo/Count")).message(1, false, b"abc").send().await;
    tokio::time::sleep(Duration::from_secs(1000)).await;
    peer.message(1, true, b"def").send().await;
    assert!(soon(peer.next_of(Kind::Data)).await.payload.ends_with(b"2 6"));
}

/// A message gets an extra second for each KiB received.
#[tokio::test(start_paused = true)]
async fn steady_request_gets_more_time() {
    let check = async |piece: usize, succeeds: bool| {
        let config = server_config(|config| config.request_timeout = Some(Duration::from_secs(5)));
        let mut peer = client_with(config, Echo::default().router()).await;
        let message = envelope(&vec![7; 40 << 10]);
        peer.headers(1, false, REQUEST);
        for piece in message.chunks(piece) {
            peer.data(1, false, piece).send().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        peer.data(1, true, b"").send().await;
        let headers = soon(peer.next_of(Kind::Headers)).await;
        assert_eq!(headers.end_stream, !succeeds, "{piece} B a second: {}", headers.text());
    };
    check(2 << 10, true).await;
    check(512, false).await;
}

/// While a request may not be sent because others of its connection go first, its clock stops.
#[tokio::test(start_paused = true)]
async fn request_blocked_by_others_is_not_late() {
    let echo = Echo::default();
    let config = server_config(|config| {
        config.http2.buffer_budget = 64 << 10;
        config.http2.stream_window = 65_535;
        config.http2.connection_window = 65_535;
        config.request_timeout = Some(Duration::from_secs(5));
    });
    let mut peer = client_with(config, echo.router()).await;
    // The client reads its responses.
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes());
    peer.settings(&[Setting::InitialWindowSize(1 << 30)]).send().await;
    let mut sender = Sender::new();
    sender.take_in(&mut peer).await;
    let prefix = [&[0][..], &u32::try_from(MEBIBYTE).expect("small").to_be_bytes()].concat();
    let mut left = [(1, MEBIBYTE), (3, MEBIBYTE)];
    for (stream, _) in left {
        peer.headers(stream, false, REQUEST).data(stream, false, &prefix).send().await;
        sender.open(stream, prefix.len());
    }
    // About 16 KiB per second: the first request completes before the second continues, long after its time limit.
    for _ in 0..400 {
        for (stream, left) in &mut left {
            if *left > 0 && sender.send(&mut peer, *stream, left).await && *left == 0 {
                peer.data(*stream, true, b"").send().await;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        sender.take_in(&mut peer).await;
    }
    assert_eq!((left, echo.started()), ([(1, 0), (3, 0)], 2));
}

/// An incomplete header block, or any incomplete frame except DATA, times out after ten seconds.
#[tokio::test(start_paused = true)]
async fn header_block_times_out_after_ten_seconds() {
    let check = async |name: &str, begin: &dyn Fn(&mut Peer), more: &[u8]| {
        let mut peer = client_of(&Echo::default()).await;
        begin(&mut peer);
        peer.send().await;
        let started_at = Instant::now();
        let goaway = loop {
            // It continues, a little each second.
            if peer.io.write_all(more).await.is_err() {
                break peer.next_of(Kind::GoAway).await;
            }
            let next = tokio::time::timeout(Duration::from_secs(1), peer.next_of(Kind::GoAway)).await;
            if let Ok(goaway) = next {
                break goaway;
            }
        };
        assert_eq!(goaway.code(), ErrorCode::EnhanceYourCalm, "{name}");
        let took = started_at.elapsed().as_secs();
        assert!((10..13).contains(&took), "{name}: {took} s");
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

/// Starts a server with a budget of 4 MiB, and 100 calls to it with responses of 1 MiB.
async fn unread_responses(set: impl FnOnce(&mut ServerConfig), is_late: bool) -> (Peer, Echo) {
    let echo = Echo::default();
    let config = server_config(|config| {
        config.http2.buffer_budget = 4 * MEBIBYTE;
        set(config);
    });
    let (near, far) = duplex(MEBIBYTE);
    tokio::spawn(server::serve_connection(config, echo.router(), far));
    let mut peer = Peer::client(near).await;
    let order = if is_late { "later 1048576" } else { "size 1048576" };
    for stream in streams().take(100) {
        peer.headers(stream, false, REQUEST).message(stream, true, order.as_bytes());
    }
    peer.send().await;
    (peer, echo)
}

/// Unread responses keep further calls from starting; they start as responses are sent.
#[tokio::test(start_paused = true)]
async fn calls_wait_until_responses_are_sent() {
    let (mut peer, echo) = unread_responses(|_| {}, false).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let at_once = echo.started();
    assert!((4..8).contains(&at_once), "{at_once} calls began");
    // The client reads everything, and all calls get a response.
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes());
    peer.settings(&[Setting::InitialWindowSize(2 << 20)]).send().await;
    let mut responses = 0;
    while responses < 100 {
        let Frame { kind, end_stream, .. } = soon(peer.next()).await.expect("a frame");
        responses += usize::from(kind == Kind::Headers && end_stream);
    }
    assert_eq!(echo.started(), 100);
}

/// A client that does not read its responses loses them on timeout.
#[tokio::test(start_paused = true)]
async fn unread_response_is_reset() {
    let (mut peer, _) =
        unread_responses(|config| config.reply_timeout = Some(Duration::from_secs(5)), false).await;
    // The connection's window does not block them.
    peer.frame(Kind::WindowUpdate, Flags::NONE, 0, &(1_u32 << 30).to_be_bytes()).send().await;
    let started_at = Instant::now();
    let reset = peer.next_of(Kind::RstStream).await;
    assert_eq!(reset.code(), ErrorCode::Cancel);
    let took = started_at.elapsed().as_secs();
    assert!((5..8).contains(&took), "after {took} s");
}

/// Handlers that started before responses piled up wait. The connection is closed when no response is sent.
#[tokio::test(start_paused = true)]
async fn responses_beyond_budget_end_the_connection() {
    let (mut peer, echo) = unread_responses(|_| {}, true).await;
    let started_at = Instant::now();
    let goaway = peer.next_of(Kind::GoAway).await;
    assert_eq!(goaway.code(), ErrorCode::EnhanceYourCalm);
    let took = started_at.elapsed().as_secs();
    assert!((20..24).contains(&took), "after {took} s");
    assert!(echo.started() > 50);
}

/// Metadata counts: 440 fields, each named by an index of one byte, take a hundred times as much memory. Unfinished
/// calls hold it, and the connection with the most is closed.
#[tokio::test(start_paused = true)]
async fn metadata_counts_towards_the_server_budget() {
    let large = [REQUEST, &[("a", ""); 440]].concat();
    let check = async |headers: &[(&str, &str)], calls: usize, is_ended: bool| {
        let config = server_config(|config| config.max_memory = Some(2 * MEBIBYTE));
        let mut peer = client_with(config, Echo::default().router()).await;
        for stream in streams().take(calls) {
            peer.headers(stream, false, headers).send().await;
        }
        let goaway = tokio::time::timeout(Duration::from_secs(4), peer.next_of(Kind::GoAway)).await;
        assert_eq!(goaway.is_ok(), is_ended, "{calls} calls of {} fields", headers.len());
        assert!(goaway.is_err() || goaway.is_ok_and(|goaway| goaway.code() == ErrorCode::EnhanceYourCalm));
    };
    check(&large, 100, true).await;
    check(&large, 30, false).await;
    check(REQUEST, 100, false).await;
}

/// Requests held by handlers count too, with their decompressed size.
#[tokio::test(start_paused = true)]
async fn requests_count_towards_the_server_budget() {
    let check = async |path: &str, envelope: &[u8], calls: usize, is_ended: bool| {
        let headers = [&request_at(path)[..], &[("grpc-encoding", "gzip"), ("x-keep", "1")]].concat();
        let config = server_config(|config| config.max_memory = Some(2 * MEBIBYTE));
        let mut peer = client_with(config, Echo::default().router()).await;
        for stream in streams().take(calls) {
            peer.headers(stream, false, &headers);
            for part in envelope.chunks(100_000) {
                peer.data(stream, false, part).send().await;
            }
            peer.data(stream, true, b"").send().await;
        }
        let goaway = tokio::time::timeout(Duration::from_secs(4), peer.next_of(Kind::GoAway)).await;
        assert_eq!(goaway.is_ok(), is_ended, "{path}: {calls} calls of {} bytes", envelope.len());
    };
    let path = "/test.Echo/Echo";
    for envelope in [envelope(&vec![0; 60_000]), compressed_envelope(&vec![0; 60_000])] {
        check(path, &envelope, 40, true).await;
        check(path, &envelope, 10, false).await;
    }
    check(path, &envelope(&vec![0; 300_000]), 8, true).await;
    check(path, &envelope(b"small"), 100, false).await;
}

/// Header blocks with many indices are decoded a few at a time, and other connections run in between.
#[tokio::test(start_paused = true)]
async fn others_run_between_large_header_blocks() {
    let echo = Echo::default();
    let (near, far) = duplex(MEBIBYTE);
    tokio::spawn(server::serve_connection(server_config(|_| {}), echo.router(), far));
    let mut peer = Peer::client(near).await;
    let headers = [REQUEST, &[("a", ""); 440]].concat();
    for stream in streams().take(250) {
        peer.headers_by(Indexing::Insert, stream, false, &headers).message(stream, true, b"");
    }
    assert!(peer.out.len() < 128 * 1024, "they come in one read: {}", peer.out.len());
    peer.send().await;
    let mut rows = Vec::new();
    while echo.started() < 250 {
        let before = echo.started();
        tokio::task::yield_now().await;
        rows.push(echo.started() - before);
    }
    // Five have 64 KiB. With time paused, a poll of the driver ends after 16 times as many.
    assert!(rows.iter().all(|row| *row <= 80), "{rows:?}");
}
