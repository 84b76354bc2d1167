//! Request headers at the server: valid calls, and the responses to all others.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg_engine::http2::frame::{Flags, Kind, PREFACE};
use thalweg_engine::http2::{Config, ErrorCode, Indexing};
use thalweg_engine::server;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, duplex};
use tokio::time::Instant;

use crate::support::peer::{Frame, Peer, REQUEST, envelope};
use crate::support::{Echo, client_of, client_with, request_at, server_config, settled, soon};

/// Sends a request and returns the frames of its response.
async fn exchange(peer: &mut Peer, stream: u32, headers: &[(&str, &str)]) -> Vec<Frame> {
    peer.headers(stream, false, headers).message(stream, true, b"x");
    settled(peer).await
}

/// Returns `REQUEST` with other fields. An empty value removes a field.
fn request_with<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let change_of = |name| changes.iter().find(|(changed, _)| *changed == name);
    let kept = REQUEST.iter().filter_map(|&(name, value)| match change_of(name) {
        Some((_, "")) => None,
        Some(change) => Some(*change),
        None => Some((name, value)),
    });
    let added = changes.iter().filter(|(name, _)| !REQUEST.iter().any(|(known, _)| known == name));
    kept.chain(added.copied()).collect()
}

/// PROTOCOL-HTTP2, RFC 9110 §15.5: non-gRPC requests get an HTTP status and a line of text.
#[tokio::test(start_paused = true)]
async fn request_that_is_not_grpc_gets_an_http_status() {
    let mut peer = client_of(&Echo::default()).await;
    let mut stream = 1;
    let mut check = async |changes: &[(&str, &str)], status: &str, text: &str| {
        let frames = exchange(&mut peer, stream, &request_with(changes)).await;
        stream += 2;
        assert!(frames[0].text().starts_with(&format!(":status: {status}\n")), "{}", frames[0].text());
        assert!(frames[0].text().contains("content-type: text/plain; charset=utf-8\n"));
        if text.is_empty() {
            assert!(frames[0].end_stream && frames.len() == 1, "{frames:?}");
        } else {
            assert!(frames[1].end_stream && frames.len() == 2, "{frames:?}");
            assert!(frames[1].text().contains(text), "{}", frames[1].text());
            assert!(frames[0].text().contains(&format!("content-length: {}\n", frames[1].payload.len())));
        }
        frames[0].text().contains("allow: POST\n")
    };
    assert!(!check(&[("content-type", "text/html")], "415", "content type application/grpc").await);
    assert!(!check(&[("content-type", "")], "415", "content type application/grpc").await);
    assert!(!check(&[("content-type", "application/grpc-web")], "415", "content type").await);
    assert!(check(&[(":method", "GET")], "405", "POST requests").await);
    assert!(check(&[(":method", "HEAD")], "405", "").await);
    assert!(!check(&[(":method", "GET"), (":path", "/")], "200", "This is a gRPC server").await);
    assert!(!check(&[(":method", "HEAD"), (":path", "/")], "200", "").await);
    // Calls still succeed.
    let frames = exchange(&mut peer, 101, REQUEST).await;
    assert_eq!(frames.len(), 3, "{frames:?}");
}

/// Non-gRPC requests free their streams, so there may be more of them than concurrent calls.
#[tokio::test(start_paused = true)]
async fn finished_requests_occupy_no_slots() {
    let mut peer = client_of(&Echo::default()).await;
    for (number, stream) in (0..2400).zip((1..).step_by(2)) {
        let headers = match number % 3 {
            0 => request_with(&[(":method", "GET")]),
            1 => request_at("/test.Echo/Nothing"),
            _ => request_at("/test.Echo/Early"),
        };
        peer.headers(stream, number % 2 == 0, &[&headers[..], &[("x-order", "fail")]].concat());
        let frames = settled(&mut peer).await;
        assert!(frames[0].kind == Kind::Headers && frames[0].stream == stream, "{number}: {frames:?}");
        if number % 2 == 1 {
            peer.data(stream, true, b"");
        }
    }
    assert_eq!(exchange(&mut peer, 9001, REQUEST).await.len(), 3);
}

/// Malformed gRPC requests and unknown methods end with a status in a gRPC response.
#[tokio::test(start_paused = true)]
async fn malformed_or_unknown_call_gets_a_grpc_status() {
    let echo = Echo::default();
    let mut peer = client_of(&echo).await;
    let mut stream = 1;
    let mut check = async |changes: &[(&str, &str)], status: &str, text: &str| {
        let frames = exchange(&mut peer, stream, &request_with(changes)).await;
        stream += 2;
        assert!(frames.len() == 1 && frames[0].end_stream, "{frames:?}");
        let headers = frames[0].text();
        assert!(headers.starts_with(":status: 200\n"), "{headers}");
        assert!(headers.contains("content-type: application/grpc\n"), "{headers}");
        assert!(headers.contains(&format!("grpc-status: {status}\n")), "{headers}");
        assert!(headers.contains(text), "{text} is not in\n{headers}");
    };
    check(&[(":path", "/test.Echo/Nothing")], "12", "grpc-message: no such method").await;
    check(&[(":path", "/nothing")], "12", "").await;
    check(&[("grpc-timeout", "soon")], "13", "malformed grpc-timeout").await;
    check(&[("grpc-timeout", "123456789S")], "13", "malformed grpc-timeout").await;
    check(&[("grpc-encoding", "snappy")], "12", "grpc-accept-encoding: identity,gzip,deflate").await;
    check(&[("x-bin", "!")], "13", "x-bin").await;
    // Such headers are cached as well.
    check(&[(":path", "/test.Echo/Nothing")], "12", "grpc-message: no such method").await;
    assert_eq!(echo.started(), 0);
}

/// Content types with a suffix or parameters are gRPC, too.
#[tokio::test(start_paused = true)]
async fn content_types_of_grpc_are_calls() {
    let mut peer = client_of(&Echo::default()).await;
    for (stream, content_type) in (1..).step_by(2).zip([
        "application/grpc",
        "application/grpc+proto",
        "application/grpc+json",
        "application/grpc;charset=utf-8",
        "Application/GRPC",
    ]) {
        let frames = exchange(&mut peer, stream, &request_with(&[("content-type", content_type)])).await;
        assert_eq!(frames.len(), 3, "{content_type}: {frames:?}");
    }
}

/// RFC 9113 §8.1: a message may arrive in any number of DATA frames. END_STREAM may be on an empty one or on trailers.
#[tokio::test(start_paused = true)]
async fn request_in_pieces_is_one_message() {
    let mut peer = client_of(&Echo::default()).await;
    let envelope = envelope(b"pieces");
    let mut streams = (1..).step_by(2);
    for cut in 0..=envelope.len() {
        for is_at_once in [true, false] {
            let stream = streams.next().expect("there are many");
            peer.headers(stream, false, REQUEST).data(stream, false, &envelope[..cut]);
            if !is_at_once {
                assert!(settled(&mut peer).await.is_empty());
            }
            peer.data(stream, false, &envelope[cut..]);
            match cut % 2 {
                0 => peer.data(stream, true, b""),
                _ => peer.headers(stream, true, &[("x-trailer", "ignored")]),
            };
            let frames = settled(&mut peer).await;
            let data: Vec<_> = frames.iter().filter(|frame| frame.kind == Kind::Data).collect();
            assert!(data.len() == 1 && data[0].payload == envelope, "cut at {cut}: {frames:?}");
        }
    }
}

/// A unary request has exactly one message.
#[tokio::test(start_paused = true)]
async fn unary_request_without_its_one_message_fails() {
    let echo = Echo::default();
    let mut peer = client_of(&echo).await;
    let one = envelope(b"x");
    let mut streams = (1..).step_by(2);
    for body in [vec![], one[..3].to_vec(), one[..5].to_vec(), [&one[..], &one].concat()] {
        for is_in_pieces in [false, true] {
            let stream = streams.next().expect("there are many");
            peer.headers(stream, false, REQUEST);
            if is_in_pieces {
                peer.data(stream, false, &body).data(stream, true, b"");
            } else {
                peer.data(stream, true, &body);
            }
            let frames = settled(&mut peer).await;
            let text = frames.first().expect("a response").text();
            assert!(frames[0].end_stream && text.contains("grpc-status: 1"), "{body:?}: {frames:?}");
        }
    }
    // Headers only, with END_STREAM.
    peer.headers(101, true, REQUEST);
    let frames = settled(&mut peer).await;
    assert!(frames[0].text().contains("grpc-status: 1"), "{frames:?}");
    assert_eq!(echo.started(), 0);
}

/// Headers that differ only in the timeout are parsed once; each call has its own deadline.
#[tokio::test(start_paused = true)]
async fn calls_with_similar_headers_have_their_own_deadlines() {
    let mut peer = client_of(&Echo::default()).await;
    let mut stream = 1;
    for _ in 0..10 {
        peer.headers_by(Indexing::Insert, stream, false, REQUEST).message(stream, true, b"x").send().await;
        while !soon(peer.next_of(Kind::Headers)).await.end_stream {}
        stream += 2;
    }
    for timeout in ["1S", "2S", "1S", "3S", "3S"] {
        peer.headers_by(Indexing::Insert, stream, false, &[REQUEST, &[("grpc-timeout", timeout)]].concat());
        let started = Instant::now();
        peer.message(stream, true, b"sleep").send().await;
        let ended = soon(peer.next_of(Kind::Headers)).await;
        assert!(ended.text().contains("grpc-status: 4\n"), "{}", ended.text());
        assert_eq!(
            started.elapsed().as_millis() / 100,
            u128::from(timeout.as_bytes()[0] - b'0') * 10,
            "{timeout}"
        );
        stream += 2;
    }
    // Without a timeout there is no deadline.
    peer.headers_by(Indexing::Insert, stream, false, REQUEST).message(stream, true, b"sleep").send().await;
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(settled(&mut peer).await.iter().all(|frame| frame.kind != Kind::Headers));
}

/// More header blocks than the cache holds each find their method.
#[tokio::test(start_paused = true)]
async fn calls_with_many_header_blocks_find_their_methods() {
    let mut peer = client_of(&Echo::default()).await;
    let mut stream = 1;
    for round in 0..3 {
        for path in ["/test.Echo/Echo", "/test.Echo/Count", "/test.Echo/Nothing", "/test.Echo/Chat"] {
            for value in ["a", "b", "c"] {
                let headers = [&request_at(path)[..], &[("x-echo", value)]].concat();
                peer.headers_by(Indexing::Insert, stream, false, &headers).message(stream, true, b"abc");
                let frames = settled(&mut peer).await;
                let of_kind = |kind| frames.iter().filter(move |frame| frame.kind == kind);
                let headers = of_kind(Kind::Headers).next().expect("headers").text();
                let data: Vec<_> = of_kind(Kind::Data).map(|frame| &frame.payload[5..]).collect();
                let expected: &[&[u8]] = match path {
                    "/test.Echo/Count" => &[b"1 3"],
                    "/test.Echo/Nothing" => &[],
                    _ => &[b"abc"],
                };
                assert_eq!(data, expected, "{path} in round {round}");
                let comes_back = !expected.is_empty();
                assert_eq!(
                    headers.contains(&format!("x-echo: {value}\n")),
                    comes_back,
                    "{path} {value}: {headers}"
                );
                stream += 2;
            }
        }
    }
}

/// A transport that returns one chunk per read; all are available at once.
#[derive(Debug)]
struct Script {
    reads: VecDeque<Vec<u8>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.reads.pop_front() {
            Some(read) => {
                buf.put_slice(&read);
                Poll::Ready(Ok(()))
            }
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.lock().expect("no panic").extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Reset calls whose handlers have not been dropped yet count: there are at most twice as many handlers as concurrent
/// streams (CVE-2023-44487). Further calls are refused (RFC 9113 §8.7).
#[tokio::test(start_paused = true)]
async fn calls_beyond_twice_the_stream_limit_are_refused() {
    let mut peer = Peer::new(duplex(1).0);
    peer.out.extend_from_slice(PREFACE);
    peer.settings(&[]).frame(Kind::Settings, Flags::ACK, 0, b"");
    let chat = request_at("/test.Echo/Chat");
    let mut reads = VecDeque::new();
    // All in one poll of the driver, so no handler runs in between.
    for stream in [1, 3, 5] {
        peer.headers(stream, false, &chat);
        reads.push_back(std::mem::take(&mut peer.out));
        peer.reset(stream, ErrorCode::Cancel);
    }
    let written = Arc::default();
    let script = Script { reads, written: Arc::clone(&written) };
    let echo = Echo::default();
    let http2 = Config::default().max_concurrent_streams(1);
    let config = server_config(|config| config.http2 = http2);
    let serving = tokio::spawn(server::serve_connection(config, echo.router(), script));
    tokio::time::sleep(Duration::from_millis(1)).await;
    serving.abort();
    let refused =
        [&[0, 0, 4, 3, 0, 0, 0, 0, 5][..], &u32::from(ErrorCode::RefusedStream).to_be_bytes()].concat();
    let written = written.lock().expect("no panic");
    assert!(written.windows(refused.len()).any(|part| part == refused), "{written:?}");
    assert_eq!(echo.started(), 2);
}

/// RFC 9113 §5.1.2: streams beyond the limit are refused.
#[tokio::test(start_paused = true)]
async fn streams_beyond_the_limit_are_refused() {
    let echo = Echo::default();
    let http2 = Config::default().max_concurrent_streams(2);
    let config = server_config(|config| config.http2 = http2);
    let mut peer = client_with(config, echo.router()).await;
    for stream in [1, 3, 5] {
        peer.headers(stream, false, REQUEST).message(stream, true, b"sleep");
    }
    let frames = settled(&mut peer).await;
    let resets: Vec<_> = frames.iter().filter(|frame| frame.kind == Kind::RstStream).collect();
    assert!(resets.len() == 1 && resets[0].stream == 5, "{frames:?}");
    assert_eq!((resets[0].code(), echo.started()), (ErrorCode::RefusedStream, 2));
}
