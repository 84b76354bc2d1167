//! Peers that flood, garble, stall, or do not read: what they cost is bounded, and they alone pay.

use std::time::Duration;

use crate::support::peer::{self, HEAD, Peer, REQUEST, client_of, connected};
use crate::support::{CHAT, ECHO, Echo, chat, echo, items, raw, soon, spawn_echo};
use thalweg::{CallOptions, Code, Raw, Request};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// Floods the server with what `round` adds, as long as it takes it, and reads only afterwards. All that was kept for
/// this client comes out then.
async fn flood(mut round: impl FnMut(&mut Peer, u32)) -> Vec<peer::Frame> {
    let mut client = client_of(Echo::default()).await;
    for call in 0..50_000 {
        round(&mut client, 2 * call + 1);
        if client.out.len() > 60_000 {
            let out = std::mem::take(&mut client.out);
            if soon(client.io.write_all(&out)).await.is_err() {
                break;
            }
        }
    }
    soon(client.rest()).await
}

fn size(frames: &[peer::Frame]) -> usize {
    frames.iter().map(|frame| frame.payload.len() + 9).sum()
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_read() {
    let unknown: Vec<_> = REQUEST
        .iter()
        .map(|&(name, value)| (name, if name == ":path" { "/test.Echo/Nothing" } else { value }))
        .collect();
    let check = async |what: &str, round: &dyn Fn(&mut Peer, u32)| {
        let frames = flood(round).await;
        let last = frames.last().map(|frame| frame.kind);
        assert_eq!(last, Some(Kind::GoAway), "{what}");
        assert_eq!(frames.last().expect("a frame").code(), ErrorCode::EnhanceYourCalm, "{what}");
        // Twice the output's target, an answer for each stream, and the replies: of the fields' text, some 100 bytes.
        let bound = 2 * thalweg_engine::http2::Config::default().output_target + (1 << 19);
        assert!(size(&frames) < bound, "{what}: {}", size(&frames));
    };
    check("refused calls that stay open", &|client, stream| {
        client.headers(stream, false, &unknown);
    })
    .await;
    check("calls that stay open", &|client, stream| {
        client.headers(stream, false, REQUEST).message(stream, false, b"x");
    })
    .await;
    check("whole calls", &|client, stream| {
        client.headers(stream, false, REQUEST).message(stream, true, &[1; 100]);
    })
    .await;
    check("pings", &|client, _| {
        client.frame(Kind::Ping, Flags::NONE, 0, &[0; 8]);
    })
    .await;
    check("calls that are reset at once", &|client, stream| {
        client.headers(stream, false, REQUEST).reset(stream, ErrorCode::Cancel);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn garbage_for_a_server() {
    let check = async |garbage: &[u8]| {
        let (mut near, far) = duplex(peer::PIPE);
        let serving = tokio::spawn(thalweg::Server::builder().serve_connection(far));
        near.write_all(garbage).await.expect("it reads");
        let mut said = Vec::new();
        soon(near.read_to_end(&mut said)).await.expect("an end");
        drop(near);
        soon(serving).await.expect("no panic");
    };
    check(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    check(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
    check(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").await;
    check(b"PRI * HTTP/2.0\r\n").await;
    check(b"\0").await;
}

#[tokio::test]
async fn a_server_that_breaks_the_protocol_in_mid_call() {
    let (channel, mut peer, mut accepted) = connected(&[]).await;
    let calls = ["a", "b"].map(|message| spawn_echo(&channel, message));
    soon(peer.next_of(Kind::Data)).await;
    soon(peer.next_of(Kind::Data)).await;
    peer.frame(Kind::Data, Flags::NONE, 0, b"on stream 0").send().await;
    for call in calls {
        let status = soon(call).await.expect("no panic").expect_err("lost");
        assert_eq!(status.code(), Code::Unavailable);
        assert!(
            status.message().contains("memory:1 lost: ") && status.message().contains("DATA on stream 0")
        );
    }
    let goaway = soon(peer.next_of(Kind::GoAway)).await;
    assert_eq!(goaway.code(), ErrorCode::ProtocolError);
    drop(peer);
    let next = spawn_echo(&channel, "next");
    let second = Peer::server(soon(accepted.recv()).await.expect("it reconnects"), &[]).await;
    drop(second);
    soon(next).await.expect("no panic").expect_err("lost again");
}

#[tokio::test]
async fn a_server_that_never_grants_window() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    // 65,535 bytes may be sent; what is beyond waits, and so do the others' messages, but not their heads and resets.
    let large = tokio::spawn({
        let channel = channel.clone();
        async move { echo(&channel, raw(vec![1; 200_000])).await }
    });
    let mut sent = 0;
    while sent < 65_535 {
        sent += soon(peer.next_of(Kind::Data)).await.payload.len();
    }
    let mut request = Request::new(raw("behind it"));
    request.set_timeout(Duration::from_millis(50));
    let outcome =
        soon(channel.unary::<Raw, Raw>(&crate::support::ECHO, request, &CallOptions::default())).await;
    assert_eq!(outcome.expect_err("it could not be sent").code(), Code::DeadlineExceeded);
    assert_eq!(soon(peer.next()).await.expect("open").kind, Kind::Headers);
    assert_eq!(soon(peer.next()).await.expect("open").kind, Kind::RstStream);
    large.abort();
    assert_eq!(soon(peer.next()).await.expect("open").kind, Kind::RstStream);
}

#[tokio::test]
async fn a_server_that_answers_and_hangs_up() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    // The client still has much to write, which nobody reads.
    let requests = items(vec![raw(vec![1; 30_000]); 2]);
    let call = tokio::spawn(async move {
        let mut responses = chat(&channel, requests).await?;
        responses.message().await
    });
    let head = soon(peer.next_of(Kind::Headers)).await;
    peer.headers(head.stream, false, HEAD).headers(head.stream, true, &[("grpc-status", "8")]).send().await;
    drop(peer);
    let status = soon(call).await.expect("no panic").expect_err("it was told");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
}

#[tokio::test]
async fn a_server_that_sends_more_than_was_asked_for() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let options = CallOptions::default();
    let requests = items(vec![raw("x")]);
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { channel.client_streaming::<_, Raw>(&CHAT, Request::new(requests), &options).await }
    });
    let head = soon(peer.next_of(Kind::Headers)).await;
    peer.headers(head.stream, false, HEAD).message(head.stream, false, b"one").message(
        head.stream,
        false,
        b"two",
    );
    peer.send().await;
    let status = soon(call).await.expect("no panic").expect_err("two answers");
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.stream, head.stream);
}

/// What the other end accepts of header lists (SETTINGS_MAX_HEADER_LIST_SIZE) is kept by both.
#[tokio::test(start_paused = true)]
async fn small_header_lists() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxHeaderListSize(500)]).await;
    let call = async |value: usize| {
        let mut request = Request::new(raw("x"));
        request.metadata_mut().insert("x-long", "v".repeat(value).parse().expect("text"));
        soon(channel.unary::<_, Raw>(&ECHO, request, &CallOptions::default())).await
    };
    let status = call(400).await.expect_err("too large");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("accepts 500"), "{}", status.message());
    let answered = async {
        let stream = peer.next_of(Kind::Headers).await.stream;
        peer.headers(stream, false, HEAD)
            .message(stream, false, b"y")
            .headers(stream, true, peer::OK)
            .send()
            .await;
    };
    tokio::join!(answered, async { call(1).await.expect("an answer") });
    // A server leaves out of its answer what the client does not take.
    let mut peer = client_of(Echo::default()).await;
    peer.settings(&[Setting::MaxHeaderListSize(500)]);
    let long = "v".repeat(400);
    for (stream, value) in [(1, long.as_str()), (3, "short")] {
        let fields = [REQUEST, &[("x-echo", value)]].concat();
        peer.headers(stream, false, &fields).message(stream, true, b"x").send().await;
        let head = peer.next_of(Kind::Headers).await;
        assert_eq!(head.end_stream, stream == 1, "{}", head.text());
        assert!(
            head.text().contains(if stream == 1 { "grpc-status: 8" } else { "x-echo: short" }),
            "{}",
            head.text()
        );
    }
}
