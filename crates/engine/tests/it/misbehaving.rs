//! Peers that flood, send garbage, stall or do not read: their cost is bounded, and others are not affected.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind, Setting};
use thalweg_engine::{CallOptions, Code, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use crate::support::peer::{self, OK_HEADERS, Peer, REQUEST};
use crate::support::{
    Echo, chat, client_of, connected, count, echo, items, raw, request_at, server_config, soon, spawn_echo,
    spawn_echo_with, unary, within,
};

/// Floods the server with the output of `round` as long as it accepts it, and only then reads. Returns everything that
/// was buffered for this client.
async fn flood(mut round: impl FnMut(&mut Peer, u32)) -> Vec<peer::Frame> {
    let mut client = client_of(&Echo::default()).await;
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
async fn client_that_floods_and_does_not_read_is_cut_off() {
    let unknown = request_at("/test.Echo/Nothing");
    let check = async |name: &str, round: &dyn Fn(&mut Peer, u32)| {
        let frames = flood(round).await;
        let last = frames.last().map(|frame| frame.kind);
        assert_eq!(last, Some(Kind::GoAway), "{name}");
        assert_eq!(frames.last().expect("a frame").code(), ErrorCode::EnhanceYourCalm, "{name}");
        // Twice the output target, and 1 MiB for the responses, whose fields have some 150 bytes of text each.
        let bound = 2 * thalweg_engine::http2::Config::default().output_target + (1 << 20);
        assert!(size(&frames) < bound, "{name}: {}", size(&frames));
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
async fn garbage_ends_the_connection() {
    let check = async |garbage: &[u8]| {
        let (mut near, far) = duplex(peer::PIPE);
        let serving = server::serve_connection(server_config(|_| {}), Echo::default().router(), far);
        let serving = tokio::spawn(serving);
        near.write_all(garbage).await.expect("it reads");
        let mut received = Vec::new();
        soon(near.read_to_end(&mut received)).await.expect("an end");
        drop(near);
        soon(serving).await.expect("no panic");
    };
    check(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    check(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
    check(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").await;
    check(b"PRI * HTTP/2.0\r\n").await;
    check(b"\0").await;
}

#[tokio::test(start_paused = true)]
async fn server_that_breaks_the_protocol_loses_its_calls() {
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

#[tokio::test(start_paused = true)]
async fn server_without_window_blocks_messages_only() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    // 65,535 bytes may be sent. Further data and other messages wait, but headers and resets do not.
    let large = tokio::spawn({
        let channel = channel.clone();
        async move { echo(&channel, raw(vec![1; 200_000])).await }
    });
    let mut sent = 0;
    while sent < 65_535 {
        sent += soon(peer.next_of(Kind::Data)).await.payload.len();
    }
    let behind = spawn_echo_with(&channel, raw("behind it"), within(Duration::from_millis(50)));
    let status = soon(behind).await.expect("no panic").expect_err("it could not be sent");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(soon(peer.next()).await.expect("open").kind, Kind::Headers);
    assert_eq!(soon(peer.next()).await.expect("open").kind, Kind::RstStream);
    large.abort();
    assert_eq!(soon(peer.next()).await.expect("open").kind, Kind::RstStream);
}

#[tokio::test(start_paused = true)]
async fn response_before_disconnect_arrives() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    // The client still has much unread data to write.
    let requests = items(vec![raw(vec![1; 30_000]); 2]);
    let call = tokio::spawn(async move {
        let mut responses = chat(&channel, requests).await?;
        responses.message().await
    });
    let headers = soon(peer.next_of(Kind::Headers)).await;
    peer.headers(headers.stream, false, OK_HEADERS)
        .headers(headers.stream, true, &[("grpc-status", "8")])
        .send()
        .await;
    drop(peer);
    let status = soon(call).await.expect("no panic").expect_err("it was told");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn second_response_is_unimplemented() {
    let (channel, mut peer, _accepted) = connected(&[]).await;
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { count(&channel, items(vec![raw("x")]), &CallOptions::default()).await }
    });
    let headers = soon(peer.next_of(Kind::Headers)).await;
    peer.headers(headers.stream, false, OK_HEADERS).message(headers.stream, false, b"one").message(
        headers.stream,
        false,
        b"two",
    );
    peer.send().await;
    let status = soon(call).await.expect("no panic").expect_err("two answers");
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    assert_eq!(soon(peer.next_of(Kind::RstStream)).await.stream, headers.stream);
}

/// Both sides honor the peer's limit on header lists (SETTINGS_MAX_HEADER_LIST_SIZE).
#[tokio::test(start_paused = true)]
async fn header_list_limit_is_respected_by_both_sides() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxHeaderListSize(500)]).await;
    let call = async |value: usize| {
        let mut metadata = HeaderMap::new();
        metadata.insert("x-long", HeaderValue::from_str(&"v".repeat(value)).expect("text"));
        soon(unary(&channel, &metadata, raw("x"), &CallOptions::default())).await
    };
    let status = call(400).await.expect_err("too large");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("accepts 500"), "{}", status.message());
    let responding = async {
        let stream = peer.next_of(Kind::Headers).await.stream;
        peer.headers(stream, false, OK_HEADERS)
            .message(stream, false, b"y")
            .headers(stream, true, peer::OK)
            .send()
            .await;
    };
    tokio::join!(responding, async { call(1).await.expect("a response") });
    // A server that cannot send its response metadata reports it.
    let mut peer = client_of(&Echo::default()).await;
    peer.settings(&[Setting::MaxHeaderListSize(500)]);
    let long = "v".repeat(400);
    let mut streams = (1..).step_by(2);
    for path in ["/test.Echo/Echo", "/test.Echo/Chat", "/test.Echo/Count"] {
        for (value, is_too_long) in [(long.as_str(), true), ("short", false)] {
            let stream = streams.next().expect("there are many");
            let fields = [&request_at(path)[..], &[("x-echo", value)]].concat();
            peer.headers(stream, false, &fields).message(stream, true, b"x").send().await;
            let headers = peer.next_of(Kind::Headers).await;
            assert_eq!(headers.end_stream, is_too_long, "{path}: {}", headers.text());
            let expected = if is_too_long { "grpc-status: 8" } else { "x-echo: short" };
            assert!(headers.text().contains(expected), "{path}: {}", headers.text());
            if !is_too_long {
                assert!(peer.next_of(Kind::Headers).await.end_stream);
            }
        }
    }
}
