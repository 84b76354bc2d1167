//! The life of connections over real sockets: keepalive and maximum age.

use std::time::Duration;

use crate::support::{Echo, connect, echo, raw, soon, spawn_echo, start, until};
use thalweg::{Channel, Code, Keepalive, Server};
use thalweg_link::{Cut, Link, LinkOptions};
use tokio::time::{Instant, timeout};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Calls continue: each finds a connection that accepts it.
#[tokio::test]
async fn calls_outlive_max_connection_age() {
    let server = Server::builder().add_service(Echo::default()).max_connection_age(seconds(1));
    let target = start(server).await;
    let options = LinkOptions::new("127.0.0.1:0".parse().expect("an address"), target.parse().expect("one"));
    let link = Link::start(options).expect("a link");
    let channel = connect(&link.address().to_string()).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(3500) {
        soon(echo(&channel, raw("x"))).await.expect("a response");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let accepted = link.stats().connections.accepted;
    assert!(accepted >= 2, "{accepted} connections");
}

/// A silently cut link on real sockets: both ends notice within their keepalive time.
#[tokio::test]
async fn silent_cut_is_found_by_keepalive() {
    let echo = Echo::default();
    let cancelled = std::sync::Arc::clone(&echo.cancelled);
    let keepalive = Keepalive::every(seconds(1)).timeout(seconds(1));
    let target = start(Server::builder().add_service(echo).keepalive(keepalive)).await;
    let options = LinkOptions::new("127.0.0.1:0".parse().expect("an address"), target.parse().expect("one"));
    let link = Link::start(options).expect("a link");
    let keepalive = Keepalive::every(seconds(10)).timeout(seconds(1));
    let channel = Channel::builder(link.address().to_string()).keepalive(keepalive);
    let channel = channel.connect().await.expect("connected");
    soon(self::echo(&channel, raw("x"))).await.expect("a response");
    let call = spawn_echo(&channel, "sleep");
    until(|| channel.lanes()[0].in_flight == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    link.cut(Cut::Silent);
    // The server notices first and cancels its handler.
    timeout(seconds(8), until(|| cancelled.load(std::sync::atomic::Ordering::SeqCst) == 1))
        .await
        .expect("the server finds out");
    let status = timeout(seconds(20), call).await.expect("the client finds out").expect("no panic");
    let status = status.expect_err("it is lost");
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(began.elapsed() >= seconds(9), "{:?}: not by its keepalive", began.elapsed());
}
