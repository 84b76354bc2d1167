//! Client-side health checks (gRFC A17): servers that are connected but do not serve get no calls.

use std::time::Duration;

use thalweg_engine::policy::PolicyConfig;
use thalweg_engine::{
    Channel, ChannelConfig, Code, ConnectivityState, EndpointList, ServiceConfigSource, Status,
};
use tokio::time::{Instant, sleep, timeout};

use crate::balance::{Network, Server, calls, endpoints, settle};
use crate::support::feed::Feed;
use crate::support::{Echo, Served, call_options, echo, raw, server_config, spawn_echo, spawn_echo_with};

const SERVING: &[u8] = b"\x08\x01";
const NOT_SERVING: &[u8] = b"\x08\x02";
const WATCH: &str = "grpc.health.v1.Health/Watch";

/// Starts a server that reports its health by `feed`.
fn start(network: &Network, number: u16, feed: &Feed) -> Echo {
    let service = Echo::default();
    let router = feed.router(WATCH, service.router());
    network.set(number, Server::Up(Served::start(server_config(|_| {}), router)));
    service
}

fn channel_with(network: &Network, numbers: &[u16], set: impl FnOnce(&mut ChannelConfig)) -> Channel {
    network.channel(EndpointList::new(endpoints(numbers)), |config| {
        let json = r#"{"healthCheckConfig": {"serviceName": "test.Echo"}}"#;
        config.service_config = Some(ServiceConfigSource::from(json));
        set(config);
    })
}

fn channel(network: &Network, numbers: &[u16]) -> Channel {
    channel_with(network, numbers, |_| {})
}

#[tokio::test(start_paused = true)]
async fn calls_leave_a_server_that_does_not_serve_and_come_back() {
    let network = Network::default();
    let feeds = [(); 2].map(|()| Feed::new(SERVING));
    let services = [1, 2].map(|number| start(&network, number, &feeds[usize::from(number) - 1]));
    let channel = channel(&network, &[1, 2]);
    calls(&channel, 1).await;
    settle().await;
    calls(&channel, 99).await;
    let started = || services.each_ref().map(Echo::started);
    let [first, second] = started();
    assert!((49..=51).contains(&first) && first + second == 100, "{:?}", started());
    assert_eq!(feeds[0].requests(), [raw("\x0a\x09test.Echo")]);

    feeds[0].send(NOT_SERVING);
    settle().await;
    calls(&channel, 100).await;
    assert_eq!(started(), [first, second + 100]);
    assert_eq!(channel.state(), ConnectivityState::Ready);

    feeds[0].send(SERVING);
    settle().await;
    calls(&channel, 100).await;
    assert_eq!(started(), [first + 50, second + 150]);
    assert_eq!([feeds[0].opened(), feeds[1].opened()], [1, 1]);
}

/// gRFC A17: an endpoint is CONNECTING before the first response.
#[tokio::test(start_paused = true)]
async fn call_waits_for_the_first_response() {
    let network = Network::default();
    let feed = Feed::silent();
    let service = start(&network, 1, &feed);
    let channel = channel(&network, &[1]);
    let call = spawn_echo(&channel, "x");
    sleep(Duration::from_secs(100)).await;
    assert_eq!((channel.state(), service.started(), feed.open()), (ConnectivityState::Connecting, 0, 1));
    feed.send(SERVING);
    timeout(Duration::from_millis(1), call).await.expect("at once").expect("no panic").expect("a response");
    assert_eq!(channel.state(), ConnectivityState::Ready);
}

#[tokio::test(start_paused = true)]
async fn calls_fail_with_the_health_of_all_servers() {
    let network = Network::default();
    let feeds = [Feed::new(NOT_SERVING), Feed::failing(Status::new(Code::Internal, "broken"))];
    let services = [1, 2].map(|number| start(&network, number, &feeds[usize::from(number) - 1]));
    let channel = channel(&network, &[1, 2]);
    let error = echo(&channel, raw("x")).await.expect_err("no server serves");
    assert_eq!(error.code(), Code::Unavailable);
    for expected in [
        "10.0.0.1:1: health check of service test.Echo: NOT_SERVING",
        "10.0.0.1:2: health check of service test.Echo failed: INTERNAL: broken",
    ] {
        assert!(error.message().contains(expected), "{error}");
    }
    assert_eq!(channel.state(), ConnectivityState::TransientFailure);
    // A call that waits for ready waits for health.
    let options = call_options(|options| options.wait_for_ready = Some(true));
    let call = spawn_echo_with(&channel, raw("x"), options);
    sleep(Duration::from_secs(10)).await;
    feeds[0].send(SERVING);
    timeout(Duration::from_millis(1), call).await.expect("at once").expect("no panic").expect("a response");
    assert_eq!(services.each_ref().map(Echo::started), [1, 0]);
}

/// gRFC A17: a server without the service counts as healthy, and is not asked again.
#[tokio::test(start_paused = true)]
async fn server_without_health_service_takes_calls() {
    let network = Network::default();
    let feed = Feed::failing(Status::new(Code::Unimplemented, "no such method"));
    let services = [start(&network, 1, &feed), network.start(2)];
    let channel = channel(&network, &[1, 2]);
    calls(&channel, 2).await;
    sleep(Duration::from_secs(1000)).await;
    calls(&channel, 98).await;
    let [first, second] = services.each_ref().map(Echo::started);
    assert!((49..=51).contains(&first) && first + second == 100, "{first} {second}");
    assert_eq!(feed.opened(), 1);
}

/// gRFC A17: exponential backoff, reset by a response.
#[tokio::test(start_paused = true)]
async fn failed_streams_are_opened_again_with_backoff() {
    let network = Network::default();
    let feed = Feed::failing(Status::new(Code::Internal, "broken"));
    let service = start(&network, 1, &feed);
    let channel = channel_with(&network, &[1], |config| config.backoff.jitter = 0.0);
    echo(&channel, raw("x")).await.expect_err("its health is unknown");
    // Streams at 0, 1, 2.6, 5.16 and 9.256 s.
    let opened_by = async |seconds: f64, start: Instant| {
        tokio::time::sleep_until(start + Duration::from_secs_f64(seconds)).await;
        feed.opened()
    };
    let start = Instant::now();
    for (seconds, opened) in [(0.9, 1), (1.1, 2), (2.5, 2), (2.7, 3), (5.1, 3), (5.2, 4), (9.2, 4)] {
        assert_eq!(opened_by(seconds, start).await, opened, "at {seconds} s");
    }
    feed.send(SERVING);
    sleep(Duration::from_secs(1)).await;
    calls(&channel, 1).await;
    assert_eq!((feed.opened(), service.started()), (5, 1));
    sleep(Duration::from_secs(60)).await;
    // At once after a response, and then with backoff from the start.
    feed.fail(Status::new(Code::Internal, "broken again"));
    settle().await;
    assert_eq!(feed.opened(), 6);
    let start = Instant::now();
    for (seconds, opened) in [(0.9, 6), (1.1, 7), (2.5, 7), (2.7, 8)] {
        assert_eq!(opened_by(seconds, start).await, opened, "at {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn restarted_server_takes_no_calls_before_it_serves() {
    let network = Network::default();
    let feeds = [(); 2].map(|()| Feed::new(SERVING));
    let second = start(&network, 2, &feeds[1]);
    start(&network, 1, &feeds[0]);
    let channel = channel(&network, &[1, 2]);
    calls(&channel, 10).await;
    // A server is connected at most once a second.
    sleep(Duration::from_secs(2)).await;
    let starting = Feed::silent();
    // The old server's health stream has no end of its own: it must not delay the shutdown.
    let stopped = network.stop(1);
    let first = start(&network, 1, &starting);
    let took = stopped.await.expect("it stops");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(feeds[0].open(), 0);
    settle().await;
    calls(&channel, 100).await;
    assert_eq!((first.started(), starting.open()), (0, 1));
    let before = second.started();
    starting.send(SERVING);
    settle().await;
    calls(&channel, 100).await;
    assert_eq!((first.started(), second.started()), (50, before + 50));
}

/// Streams of a connection are limited: calls that wait for a stream go to any server that is healthy.
#[tokio::test(start_paused = true)]
async fn waiting_calls_go_to_no_unhealthy_server() {
    let network = Network::default();
    let feeds = [Feed::new(SERVING), Feed::new(NOT_SERVING)];
    let services = [1, 2].map(|number| {
        let service = Echo::default();
        let router = feeds[usize::from(number) - 1].router(WATCH, service.router());
        let config = server_config(|config| config.http2.max_concurrent_streams = 3);
        network.set(number, Server::Up(Served::start(config, router)));
        service
    });
    let channel = channel(&network, &[1, 2]);
    calls(&channel, 1).await;
    settle().await;
    let running: Vec<_> = (0..20).map(|_| spawn_echo(&channel, "later 1")).collect();
    for call in running {
        call.await.expect("no panic").expect("a response");
    }
    assert_eq!(services.each_ref().map(Echo::started), [21, 0]);
}

#[tokio::test(start_paused = true)]
async fn health_streams_are_no_calls() {
    let network = Network::default();
    let feed = Feed::new(SERVING);
    start(&network, 1, &feed);
    let channel = channel_with(&network, &[1], |config| config.idle_timeout = Some(Duration::from_secs(10)));
    calls(&channel, 3).await;
    feed.send(NOT_SERVING);
    settle().await;
    feed.send(SERVING);
    settle().await;
    let counts = channel.snapshot().calls;
    assert_eq!((counts.started, counts.succeeded, counts.failed), (3, 3, 0));
    assert_eq!(channel.lanes().iter().map(|lane| lane.in_flight).sum::<usize>(), 0);
    // They do not keep a channel from becoming idle, nor its connections open.
    sleep(Duration::from_secs(25)).await;
    assert_eq!((channel.state(), feed.open()), (ConnectivityState::Idle, 0));
    calls(&channel, 1).await;
    assert_eq!((channel.state(), feed.open()), (ConnectivityState::Ready, 1));
    feed.fail(Status::new(Code::Internal, "broken"));
    settle().await;
    let counts = channel.snapshot().calls;
    assert_eq!((counts.started, counts.succeeded, counts.failed), (4, 4, 0));
    drop(channel);
    settle().await;
    assert_eq!(feed.open(), 0);
}

/// Another lane goes to the same server: its health is known before the new stream's first response.
#[tokio::test(start_paused = true)]
async fn check_moves_to_another_lane_without_a_gap() {
    let network = Network::default();
    let feed = Feed::new(SERVING);
    let service = start(&network, 1, &feed);
    let channel = channel_with(&network, &[1], |config| config.lanes = thalweg_engine::Lanes::fixed(2));
    calls(&channel, 1).await;
    settle().await;
    calls(&channel, 10).await;
    settle().await;
    assert_eq!(channel.lanes().iter().filter(|lane| lane.state == "READY").count(), 2);
    feed.hold();
    let first = channel.lanes()[0].id;
    channel.close_lanes(&[first], "test");
    settle().await;
    assert_eq!((channel.lanes().len(), feed.open(), feed.opened()), (1, 1, 2));
    timeout(Duration::from_millis(1), calls(&channel, 10)).await.expect("at once");
    assert_eq!((channel.state(), service.started()), (ConnectivityState::Ready, 21));
    feed.send(NOT_SERVING);
    settle().await;
    assert_eq!(channel.state(), ConnectivityState::TransientFailure);
}

/// gRFC A17, and the channel's own setting.
#[tokio::test(start_paused = true)]
async fn health_is_not_checked_with_pick_first_or_if_turned_off() {
    let set: [fn(&mut ChannelConfig); 3] = [
        |config| config.load_balancing = PolicyConfig::default(),
        |config| config.health_checks = false,
        |config| config.service_config = None,
    ];
    for set in set {
        let network = Network::default();
        let feed = Feed::new(NOT_SERVING);
        start(&network, 1, &feed);
        let channel = channel_with(&network, &[1], set);
        calls(&channel, 10).await;
        assert_eq!(feed.opened(), 0);
    }
}
