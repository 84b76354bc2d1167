//! Limits on clients' PINGs (gRFC A8), like grpc-go's `keepalive.EnforcementPolicy`.

use std::time::Duration;

use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind};
use thalweg_engine::server::ServerConfig;
use thalweg_engine::{Code, Keepalive, KeepalivePolicy};
use tokio::time::{sleep, timeout};

use crate::support::peer::{Peer, REQUEST};
use crate::support::{Echo, Served, client_with, request_at, server_config, soon, spawn_echo};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn client_of(policy: KeepalivePolicy) -> Peer {
    let config: ServerConfig = server_config(|config| config.keepalive_policy = policy);
    client_with(config, Echo::default().router()).await
}

/// Returns which of ten PINGs, each after a pause, makes the server close the connection.
async fn too_many(policy: Option<KeepalivePolicy>, has_call: bool, pause: Duration) -> Option<usize> {
    let mut peer = client_of(policy.unwrap_or_default()).await;
    if has_call {
        peer.headers(1, false, REQUEST).message(1, true, b"sleep").send().await;
    }
    for ping in 1..=10_u8 {
        sleep(pause).await;
        peer.frame(Kind::Ping, Flags::NONE, 0, &[ping; 8]).send().await;
        loop {
            let frame = soon(peer.next()).await.expect("a PING's answer, or GOAWAY");
            match frame.kind {
                Kind::Ping if frame.payload == [ping; 8] => break,
                Kind::GoAway => {
                    assert_eq!(frame.code(), ErrorCode::EnhanceYourCalm);
                    assert_eq!(&frame.payload[8..], b"too_many_pings");
                    return Some(usize::from(ping));
                }
                _ => {}
            }
        }
    }
    None
}

#[tokio::test(start_paused = true)]
async fn server_enforces_ping_policy() {
    let check = async |policy: Option<KeepalivePolicy>, has_call: bool, pause: u64, expected| {
        let found = too_many(policy, has_call, seconds(pause)).await;
        assert_eq!(found, expected, "{policy:?}, calls: {has_call}, {pause} s");
    };
    // The first PING is free, and two strikes are forgiven.
    check(None, true, 299, Some(4)).await;
    check(None, true, 301, None).await;
    check(None, false, 301, Some(4)).await;
    check(None, false, 2 * 60 * 60 - 2, Some(4)).await;
    check(None, false, 2 * 60 * 60 + 1, None).await;
    let policy = Some(KeepalivePolicy::every(seconds(30)));
    check(policy, true, 29, Some(4)).await;
    check(policy, true, 31, None).await;
    check(policy, false, 31, Some(4)).await;
    let policy = Some(KeepalivePolicy::every(seconds(30)).without_calls(true));
    check(policy, false, 29, Some(4)).await;
    check(policy, false, 31, None).await;
    check(Some(KeepalivePolicy::every(Duration::ZERO).without_calls(true)), false, 0, None).await;
}

/// Clients that measure bandwidth by PINGs (gRPC C++, grpc-go, hyper) send one after each response.
#[tokio::test(start_paused = true)]
async fn responses_reset_ping_strikes() {
    let mut peer = client_of(KeepalivePolicy::default()).await;
    for call in 0..100 {
        let stream = 2 * call + 1;
        peer.headers(stream, false, REQUEST).message(stream, true, b"x").send().await;
        while !soon(peer.next_of(Kind::Headers)).await.end_stream {}
        for _ in 0..3 {
            peer.frame(Kind::Ping, Flags::NONE, 0, &[0; 8]).send().await;
            soon(peer.next_of(Kind::Ping)).await;
        }
    }
    for _ in 0..2 {
        peer.frame(Kind::Ping, Flags::NONE, 0, &[0; 8]).send().await;
    }
    soon(peer.next_of(Kind::GoAway)).await;
}

/// Data that waited for a window resets the strikes, too, when it is sent.
#[tokio::test(start_paused = true)]
async fn queued_responses_reset_ping_strikes() {
    let mut peer = client_of(KeepalivePolicy::default()).await;
    peer.headers(1, false, &request_at("/test.Echo/Repeat")).message(1, true, b"1 200000").send().await;
    let mut left = 65_535;
    for _ in 0..5 {
        while left > 0 {
            left -= soon(peer.next_of(Kind::Data)).await.payload.len();
        }
        for _ in 0..3 {
            peer.frame(Kind::Ping, Flags::NONE, 0, &[0; 8]).send().await;
            soon(peer.next_of(Kind::Ping)).await;
        }
        left = 10_000;
        for stream in [0, 1] {
            peer.frame(Kind::WindowUpdate, Flags::NONE, stream, &10_000_u32.to_be_bytes());
        }
        peer.send().await;
    }
}

/// Our own client with a server that permits fewer PINGs is disconnected once, and then stays connected.
#[tokio::test(start_paused = true)]
async fn client_adapts_to_permitted_ping_interval() {
    let service = Echo::default();
    let policy = KeepalivePolicy::every(seconds(15));
    let served = Served::start(server_config(|config| config.keepalive_policy = policy), service.router());
    let keepalive = Keepalive::every(seconds(10));
    let channel = served.channel(|config| config.keepalive = Some(keepalive)).await;
    let first = spawn_echo(&channel, "sleep");
    let status = timeout(seconds(60), first).await.expect("an end").expect("no panic").expect_err("cut off");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("too_many_pings"), "{}", status.message());
    let second = spawn_echo(&channel, "sleep");
    sleep(seconds(3000)).await;
    assert!(!second.is_finished());
    assert_eq!((service.started(), service.cancelled()), (2, 1));
}
