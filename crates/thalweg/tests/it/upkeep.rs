//! The life of connections: whether the other end is still there, and how long they stay.

use std::time::Duration;

use crate::support::peer::{HEAD, OK, Peer, REQUEST, channel_to_test, connected_by};
use crate::support::{Echo, connect, echo, raw, soon, spawn_echo, start, until};
use thalweg::server::ServerBuilder;
use thalweg::{Channel, Code, Keepalive, Server};
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Flags, Kind};
use thalweg_link::{Cut, Link, LinkOptions};
use tokio::io::duplex;
use tokio::time::{Instant, timeout};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A client whose server falls silent learns of it by PINGs; one whose server answers them waits on.
#[tokio::test(start_paused = true)]
async fn a_silent_server_is_found() {
    let (builder, accepted) = channel_to_test();
    let builder = builder.keepalive(Keepalive::every(seconds(30)).timeout(seconds(5)));
    let (channel, mut peer, _accepted) = connected_by(builder, accepted, &[]).await;
    let call = spawn_echo(&channel, "x");
    peer.next_of(Kind::Headers).await;
    let began = Instant::now();
    for _ in 0..3 {
        let ping = peer.next_of(Kind::Ping).await;
        peer.frame(Kind::Ping, Flags::ACK, 0, &ping.payload).send().await;
    }
    let answered = began.elapsed().as_secs();
    assert!((88..93).contains(&answered), "three PINGs took {answered} s");
    assert!(!call.is_finished());
    peer.next_of(Kind::Ping).await;
    let status = soon(call).await.expect("no panic").expect_err("it is lost");
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(
        status.message(),
        "connection to memory:1 lost: no answer to a keepalive PING in 5s [/test.Echo/Echo to memory:1, waiting for \
         the response]"
    );
    let found = began.elapsed().as_secs() - answered;
    assert!((34..37).contains(&found), "found after {found} s");
}

/// Whatever comes is an answer: while something does, nobody is asked.
#[tokio::test(start_paused = true)]
async fn a_server_that_sends_is_not_asked() {
    let (builder, accepted) = channel_to_test();
    let builder = builder.keepalive(Keepalive::every(seconds(10)));
    let (channel, mut peer, _accepted) = connected_by(builder, accepted, &[]).await;
    let call = spawn_echo(&channel, "x");
    let stream = peer.next_of(Kind::Headers).await.stream;
    peer.headers(stream, false, HEAD).send().await;
    for _ in 0..10 {
        let ping = timeout(seconds(8), peer.next_of(Kind::Ping)).await;
        assert!(ping.is_err(), "asked while it sends");
        peer.data(stream, false, b"").frame(Kind::WindowUpdate, Flags::NONE, 0, &[0, 0, 0, 1]).send().await;
    }
    peer.message(stream, false, b"y").headers(stream, true, OK).send().await;
    assert_eq!(soon(call).await.expect("no panic").expect("an answer").0, "y");
}

/// Without calls a client sends no PINGs, unless it is told to.
#[tokio::test(start_paused = true)]
async fn an_idle_server_is_not_asked() {
    let check = async |without_calls: bool| {
        let (builder, accepted) = channel_to_test();
        let builder = builder.keepalive(Keepalive::every(seconds(10)).without_calls(without_calls));
        let (_channel, mut peer, _accepted) = connected_by(builder, accepted, &[]).await;
        let ping = timeout(seconds(15), peer.next_of(Kind::Ping)).await;
        assert_eq!(ping.is_ok(), without_calls);
    };
    check(false).await;
    check(true).await;
}

/// gRFC A8: a server that permits fewer PINGs is pinged half as often.
#[tokio::test(start_paused = true)]
async fn too_many_pings_are_answered_by_doubling() {
    let (builder, accepted) = channel_to_test();
    let builder = builder.keepalive(Keepalive::every(seconds(10)).without_calls(true));
    let (channel, mut peer, mut accepted) = connected_by(builder, accepted, &[]).await;
    let mut began = Instant::now();
    for interval in [10, 20, 40] {
        peer.next_of(Kind::Ping).await;
        let took = began.elapsed().as_secs();
        assert!((interval..interval + 2).contains(&took), "a PING after {took} s in place of {interval}");
        let calm = [&[0, 0, 0, 0, 0, 0, 0, 11][..], b"too_many_pings"].concat();
        peer.frame(Kind::GoAway, Flags::NONE, 0, &calm).send().await;
        drop(peer);
        // The next call makes a connection.
        let call = spawn_echo(&channel, "x");
        peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
        let stream = peer.next_of(Kind::Headers).await.stream;
        peer.headers(stream, false, HEAD).message(stream, false, b"y").headers(stream, true, OK).send().await;
        soon(call).await.expect("no panic").expect("an answer");
        began = Instant::now();
    }
}

async fn client_of(server: ServerBuilder) -> Peer {
    let (near, far) = duplex(16 * 1024);
    tokio::spawn(server.add_service(Echo::default()).serve_connection(far));
    Peer::client(near).await
}

/// A server ends connections whose clients are silent, with or without calls, and keeps those that answer.
#[tokio::test(start_paused = true)]
async fn a_silent_client_is_found() {
    let check = async |calls: usize| {
        let echo = Echo::default();
        let cancelled = std::sync::Arc::clone(&echo.cancelled);
        let (near, far) = duplex(16 * 1024);
        let keepalive = Keepalive::every(seconds(10)).timeout(seconds(3));
        tokio::spawn(Server::builder().add_service(echo).keepalive(keepalive).serve_connection(far));
        let mut peer = Peer::client(near).await;
        if calls > 0 {
            peer.headers(1, false, REQUEST).message(1, true, b"sleep").send().await;
        }
        let ping = soon(peer.next_of(Kind::Ping)).await;
        let began = Instant::now();
        peer.frame(Kind::Ping, Flags::ACK, 0, &ping.payload).send().await;
        peer.next_of(Kind::Ping).await;
        assert!(soon(peer.rest()).await.iter().any(|frame| frame.kind == Kind::GoAway));
        let took = began.elapsed().as_secs();
        assert!((12..18).contains(&took), "found after {took} s");
        until(|| cancelled.load(std::sync::atomic::Ordering::SeqCst) == calls).await;
    };
    check(1).await;
    check(0).await;
}

/// A connection that has come to its age is asked to go, and is cut off when its grace is over.
#[tokio::test(start_paused = true)]
async fn connections_age() {
    let server = Server::builder().max_connection_age(seconds(100)).max_connection_age_grace(seconds(20));
    let mut peer = client_of(server).await;
    peer.headers(1, false, REQUEST).message(1, true, b"sleep").send().await;
    let began = Instant::now();
    let goaway = peer.next_of(Kind::GoAway).await;
    assert_eq!(goaway.code(), ErrorCode::NoError);
    let asked = began.elapsed().as_secs();
    assert!((89..113).contains(&asked), "asked to go after {asked} s");
    timeout(seconds(100), peer.rest()).await.expect("an end");
    let took = began.elapsed().as_secs() - asked;
    assert!((18..25).contains(&took), "cut off {took} s later");
}

/// Calls go on through it: each meets a connection that takes it.
#[tokio::test]
async fn calls_outlive_their_connections() {
    let server = Server::builder().add_service(Echo::default()).max_connection_age(seconds(1));
    let target = start(server).await;
    let options = LinkOptions::new("127.0.0.1:0".parse().expect("an address"), target.parse().expect("one"));
    let link = Link::start(options).expect("a link");
    let channel = connect(&link.address().to_string()).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(3500) {
        soon(echo(&channel, raw("x"))).await.expect("an answer");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let accepted = link.stats().connections.accepted;
    assert!(accepted >= 2, "{accepted} connections");
}

/// A channel's connection without calls is closed, and the next call makes another.
#[tokio::test(start_paused = true)]
async fn idle_channels_disconnect() {
    let (builder, accepted) = channel_to_test();
    let (channel, mut peer, mut accepted) =
        connected_by(builder.idle_timeout(seconds(60)), accepted, &[]).await;
    let began = Instant::now();
    timeout(seconds(100), peer.rest()).await.expect("an end");
    let took = began.elapsed().as_secs();
    assert!((60..80).contains(&took), "closed after {took} s");
    assert_eq!(channel.lanes()[0].state, "IDLE");
    let call = spawn_echo(&channel, "x");
    let mut peer = Peer::server(soon(accepted.recv()).await.expect("it connects"), &[]).await;
    // While a call is there it is not idle.
    let stream = peer.next_of(Kind::Headers).await.stream;
    tokio::time::sleep(seconds(200)).await;
    peer.headers(stream, false, HEAD).message(stream, false, b"y").headers(stream, true, OK).send().await;
    soon(call).await.expect("no panic").expect("an answer");
}

/// A link that is cut in silence, on real sockets: both ends find out in the time of their keepalive.
#[tokio::test]
async fn a_link_that_is_cut_in_silence() {
    let echo = Echo::default();
    let cancelled = std::sync::Arc::clone(&echo.cancelled);
    let keepalive = Keepalive::every(seconds(1)).timeout(seconds(1));
    let target = start(Server::builder().add_service(echo).keepalive(keepalive)).await;
    let options = LinkOptions::new("127.0.0.1:0".parse().expect("an address"), target.parse().expect("one"));
    let link = Link::start(options).expect("a link");
    let keepalive = Keepalive::every(seconds(10)).timeout(seconds(1));
    let channel = Channel::builder(link.address().to_string()).keepalive(keepalive);
    let channel = channel.connect().await.expect("connected");
    soon(self::echo(&channel, raw("x"))).await.expect("an answer");
    let call = spawn_echo(&channel, "sleep");
    until(|| channel.lanes()[0].in_flight == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    link.cut(Cut::Silent);
    // The server first: its handler is told.
    timeout(seconds(8), until(|| cancelled.load(std::sync::atomic::Ordering::SeqCst) == 1))
        .await
        .expect("the server finds out");
    let status = timeout(seconds(20), call).await.expect("the client finds out").expect("no panic");
    let status = status.expect_err("it is lost");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(began.elapsed() >= seconds(9), "{:?}: not by its keepalive", began.elapsed());
}
