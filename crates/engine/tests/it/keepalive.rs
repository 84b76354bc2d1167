//! Connection lifetime: keepalive (gRFC A8), maximum age (gRFC A9) and idle time.

use std::time::Duration;

use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind};
use thalweg_engine::{Code, Keepalive};
use tokio::time::{Instant, sleep, timeout};

use crate::support::peer::{OK, OK_HEADERS, Peer, REQUEST};
use crate::support::{
    Echo, channel_config, client_with, connected_by, server_config, soon, spawn_echo, until,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// PINGs detect a silent server; a call to a server that acknowledges them keeps waiting.
#[tokio::test(start_paused = true)]
async fn silent_server_is_detected() {
    let keepalive = Keepalive::every(seconds(30)).timeout(seconds(5));
    let config = channel_config(|config| config.keepalive = Some(keepalive));
    let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
    let call = spawn_echo(&channel, "x");
    peer.next_of(Kind::Headers).await;
    let started_at = Instant::now();
    for _ in 0..3 {
        let ping = peer.next_of(Kind::Ping).await;
        peer.frame(Kind::Ping, Flags::ACK, 0, &ping.payload).send().await;
    }
    let pings_took = started_at.elapsed().as_secs();
    assert!((88..93).contains(&pings_took), "three PINGs took {pings_took} s");
    assert!(!call.is_finished());
    peer.next_of(Kind::Ping).await;
    let status = soon(call).await.expect("no panic").expect_err("it is lost");
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(
        status.message(),
        "connection to memory:1 lost: no response to a keepalive PING in 5s [/test.Echo/Echo to memory:1, waiting for \
         the response]"
    );
    let found = started_at.elapsed().as_secs() - pings_took;
    assert!((34..37).contains(&found), "found after {found} s");
}

/// Any received data counts as a sign of life, so no PING is sent.
#[tokio::test(start_paused = true)]
async fn server_that_sends_gets_no_ping() {
    let config = channel_config(|config| config.keepalive = Some(Keepalive::every(seconds(10))));
    let (channel, mut peer, _accepted) = connected_by(config, &[]).await;
    let call = spawn_echo(&channel, "x");
    let stream = peer.next_of(Kind::Headers).await.stream;
    peer.headers(stream, false, OK_HEADERS).send().await;
    for _ in 0..10 {
        let ping = timeout(seconds(8), peer.next_of(Kind::Ping)).await;
        assert!(ping.is_err(), "asked while it sends");
        peer.data(stream, false, b"").frame(Kind::WindowUpdate, Flags::NONE, 0, &[0, 0, 0, 1]).send().await;
    }
    peer.message(stream, false, b"y").headers(stream, true, OK).send().await;
    assert_eq!(soon(call).await.expect("no panic").expect("a response").0, "y");
}

/// A client sends no PINGs without calls unless configured to.
#[tokio::test(start_paused = true)]
async fn idle_server_is_pinged_only_if_configured() {
    let check = async |without_calls: bool| {
        let keepalive = Keepalive::every(seconds(10)).without_calls(without_calls);
        let config = channel_config(|config| config.keepalive = Some(keepalive));
        let (_channel, mut peer, _accepted) = connected_by(config, &[]).await;
        let ping = timeout(seconds(15), peer.next_of(Kind::Ping)).await;
        assert_eq!(ping.is_ok(), without_calls);
    };
    check(false).await;
    check(true).await;
}

/// gRFC A8: a server that permits fewer PINGs is pinged half as often.
#[tokio::test(start_paused = true)]
async fn too_many_pings_double_the_interval() {
    let keepalive = Keepalive::every(seconds(10)).without_calls(true);
    let config = channel_config(|config| config.keepalive = Some(keepalive));
    let (channel, mut peer, mut accepted) = connected_by(config, &[]).await;
    let mut started_at = Instant::now();
    for interval in [10, 20, 40] {
        peer.next_of(Kind::Ping).await;
        let took = started_at.elapsed().as_secs();
        assert!((interval..interval + 2).contains(&took), "a PING after {took} s in place of {interval}");
        let calm = [&[0, 0, 0, 0, 0, 0, 0, 11][..], b"too_many_pings"].concat();
        peer.frame(Kind::GoAway, Flags::NONE, 0, &calm).send().await;
        drop(peer);
        // The next call reconnects.
        let call = spawn_echo(&channel, "x");
        peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
        let stream = peer.next_of(Kind::Headers).await.stream;
        peer.headers(stream, false, OK_HEADERS)
            .message(stream, false, b"y")
            .headers(stream, true, OK)
            .send()
            .await;
        soon(call).await.expect("no panic").expect("a response");
        started_at = Instant::now();
    }
}

/// A server closes connections with silent clients, with or without calls, and keeps those that respond.
#[tokio::test(start_paused = true)]
async fn silent_client_is_detected() {
    let check = async |calls: usize| {
        let echo = Echo::default();
        let keepalive = Keepalive::every(seconds(10)).timeout(seconds(3));
        let config = server_config(|config| config.keepalive = Some(keepalive));
        let mut peer = client_with(config, echo.router()).await;
        if calls > 0 {
            peer.headers(1, false, REQUEST).message(1, true, b"sleep").send().await;
        }
        let ping = soon(peer.next_of(Kind::Ping)).await;
        let started_at = Instant::now();
        peer.frame(Kind::Ping, Flags::ACK, 0, &ping.payload).send().await;
        peer.next_of(Kind::Ping).await;
        assert!(soon(peer.rest()).await.iter().any(|frame| frame.kind == Kind::GoAway));
        let took = started_at.elapsed().as_secs();
        assert!((12..18).contains(&took), "found after {took} s");
        until(|| echo.cancelled() == calls).await;
    };
    check(1).await;
    check(0).await;
}

/// A connection at its maximum age gets GOAWAY, and is closed after its grace period.
#[tokio::test(start_paused = true)]
async fn old_connection_gets_goaway_and_is_closed() {
    let config = server_config(|config| {
        config.max_connection_age = Some(seconds(100));
        config.max_connection_age_grace = Some(seconds(20));
    });
    let mut peer = client_with(config, Echo::default().router()).await;
    peer.headers(1, false, REQUEST).message(1, true, b"sleep").send().await;
    let started_at = Instant::now();
    let goaway = peer.next_of(Kind::GoAway).await;
    assert_eq!(goaway.code(), ErrorCode::NoError);
    let goaway_after = started_at.elapsed().as_secs();
    assert!((89..113).contains(&goaway_after), "asked to go after {goaway_after} s");
    timeout(seconds(100), peer.rest()).await.expect("an end");
    let took = started_at.elapsed().as_secs() - goaway_after;
    assert!((18..25).contains(&took), "cut off {took} s later");
}

/// A connection without calls gets GOAWAY after `max_connection_idle`; one with a call does not.
#[tokio::test(start_paused = true)]
async fn idle_connection_gets_goaway() {
    let config = server_config(|config| config.max_connection_idle = Some(seconds(60)));
    let mut peer = client_with(config, Echo::default().router()).await;
    peer.headers(1, false, REQUEST).message(1, true, b"sleep").send().await;
    assert!(timeout(seconds(200), peer.next_of(Kind::GoAway)).await.is_err(), "it has a call");
    peer.reset(1, ErrorCode::Cancel).send().await;
    let started = Instant::now();
    let goaway = timeout(seconds(100), peer.next_of(Kind::GoAway)).await.expect("it is idle");
    assert_eq!(goaway.code(), ErrorCode::NoError);
    assert!((58..64).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    timeout(seconds(10), peer.rest()).await.expect("an end");
}

/// A channel closes an idle connection, and the next call reconnects.
#[tokio::test(start_paused = true)]
async fn idle_channel_disconnects() {
    let config = channel_config(|config| config.idle_timeout = Some(seconds(60)));
    let (channel, mut peer, mut accepted) = connected_by(config, &[]).await;
    let started_at = Instant::now();
    timeout(seconds(100), peer.rest()).await.expect("an end");
    let took = started_at.elapsed().as_secs();
    assert!((60..80).contains(&took), "closed after {took} s");
    assert_eq!(channel.lanes()[0].state, "IDLE");
    let call = spawn_echo(&channel, "x");
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    // A connection with a call is not idle.
    let stream = peer.next_of(Kind::Headers).await.stream;
    sleep(seconds(200)).await;
    peer.headers(stream, false, OK_HEADERS)
        .message(stream, false, b"y")
        .headers(stream, true, OK)
        .send()
        .await;
    soon(call).await.expect("no panic").expect("a response");
}
