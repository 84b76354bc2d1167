//! A channel that adapts its number of lanes, on real sockets.

use std::time::Duration;

use crate::support::{Echo, echo, raw, serve, soon, spawn_echo, start, until};
use thalweg::channel::{ConnectError, Lanes};
use thalweg::{Channel, Server};
use thalweg_link::{Link, LinkOptions};

/// Starts a server with this limit of concurrent calls per connection.
async fn limited(streams: u32) -> String {
    start(Server::builder().add_service(Echo::default()).max_concurrent_streams(streams)).await
}

fn in_flight(channel: &Channel) -> Vec<usize> {
    channel.lanes().iter().map(|lane| lane.in_flight).collect()
}

#[tokio::test(start_paused = true)]
async fn slow_calls_beyond_stream_limit_run_concurrently() {
    let lanes = Lanes::adaptive().cap(4);
    let channel = Channel::builder(limited(2).await).lanes(lanes).connect().await.expect("a server");
    assert_eq!(channel.lanes().len(), 1);
    let calls: Vec<_> = (0..8).map(|_| spawn_echo(&channel, "sleep")).collect();
    until(|| in_flight(&channel) == [2, 2, 2, 2]).await;
    assert_eq!(channel.waiting(), 0);
    assert!(channel.lanes()[3].reason.contains("stream"), "{:?}", channel.lanes());
    // At the cap, so the next call waits.
    let ninth = spawn_echo(&channel, "x");
    until(|| channel.waiting() == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(channel.lanes().len(), 4, "{:?}", channel.lanes());
    calls[0].abort();
    assert_eq!(soon(ninth).await.expect("no panic").expect("a response"), raw("x"));
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    // When idle, it returns to the minimum.
    until(|| channel.lanes().len() == 1).await;
    assert_eq!(echo(&channel, raw("y")).await.expect("a response"), raw("y"));
}

#[tokio::test(start_paused = true)]
async fn service_config_caps_lanes() {
    let config = r#"{"connectionScaling": {"maxConnectionsPerSubchannel": 2}}"#;
    let builder = Channel::builder(limited(1).await).lanes(Lanes::adaptive().cap(8)).service_config(config);
    let channel = builder.connect().await.expect("a server");
    let calls: Vec<_> = (0..4).map(|_| spawn_echo(&channel, "sleep")).collect();
    until(|| in_flight(&channel) == [1, 1] && channel.waiting() == 2).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(channel.lanes().len(), 2);
    calls.iter().for_each(tokio::task::JoinHandle::abort);

    let broken = Channel::builder("localhost:1").service_config("{").connect_lazy();
    assert!(matches!(broken, Err(ConnectError::ServiceConfig(_))), "{broken:?}");
}

#[tokio::test]
async fn adaptive_channel_keeps_minimum_lanes() {
    let lanes = Lanes::adaptive().floor(3).cap(5);
    let channel =
        Channel::builder(serve(Echo::default()).await).lanes(lanes).connect().await.expect("a server");
    assert_eq!(channel.lanes().len(), 3);
    assert!(channel.lanes().iter().all(|lane| lane.state == "READY" && lane.reason == "initial"));
    let before: Vec<u64> = channel.lanes().iter().map(|lane| lane.id).collect();
    // A lost lane returns with the next call.
    for _ in 0..9 {
        echo(&channel, raw("x")).await.expect("a response");
    }
    let ids: Vec<u64> = channel.lanes().iter().map(|lane| lane.id).collect();
    assert_eq!(ids, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_lanes_adapt() {
    let lanes = Lanes::adaptive().cap(6);
    let channel = Channel::builder(limited(3).await).lanes(lanes).connect().await.expect("a server");
    for round in 0..6 {
        let callers = if round % 2 == 0 { 32 } else { 1 };
        let calls: Vec<_> = (0..callers)
            .map(|_| {
                let channel = channel.clone();
                tokio::spawn(async move {
                    for _ in 0..400 {
                        assert_eq!(echo(&channel, raw("yield")).await.expect("a response"), raw("yield"));
                    }
                })
            })
            .collect();
        for call in calls {
            soon(call).await.expect("every call is answered");
        }
    }
    assert_eq!(channel.waiting(), 0);
    assert!(in_flight(&channel).iter().all(|&count| count == 0), "{:?}", channel.lanes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_open_while_throughput_rises() {
    let server = serve(Echo::default()).await.parse().expect("an address");
    let options = LinkOptions::new("127.0.0.1:0".parse().expect("an address"), server);
    // Each connection has room for two of the calls at a time.
    let link = Link::start(options.delay(Duration::from_millis(2)).buffer(2_048)).expect("a link");
    let builder = Channel::builder(link.address().to_string()).lanes(Lanes::adaptive().cap(4));
    let channel = builder.connect().await.expect("a server");
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move {
                loop {
                    echo(&channel, raw(vec![7; 1_000])).await.expect("a response");
                }
            })
        })
        .collect();
    until(|| channel.lanes().len() == 4).await;
    assert!(channel.lanes()[3].reason.contains("so far 2 with"), "{:?}", channel.lanes());
    callers.iter().for_each(tokio::task::JoinHandle::abort);
    until(|| channel.lanes().len() == 1).await;
}
