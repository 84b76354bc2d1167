//! Channels that balance over several servers: no call fails or waits while another server is ready.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_engine::policy::PolicyConfig;
use thalweg_engine::{
    Address, CallOptions, CallPeer, Channel, ChannelConfig, Code, ConnectivityState, Endpoint, EndpointList,
    Lanes, Resolution, Resolver, Resolving, RetryPolicy,
};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::support::peer::Peer;
use crate::support::{
    CHAT, Echo, Receiver, Served, call_options, channel_config, chat, echo, items, raw, soon,
    spawn_echo_with, stream,
};

/// Servers by address.
#[derive(Clone, Default)]
pub(crate) struct Network {
    servers: Arc<Mutex<HashMap<SocketAddr, Server>>>,
    pub(crate) attempts: Arc<AtomicUsize>,
}

/// The server at an address. Without one, connections are refused.
pub(crate) enum Server {
    Up(Served),
    /// Accepts connections after this time.
    Slow(Duration, Served),
    /// Drops packets.
    Silent,
    /// Accepts connections, and never speaks.
    Mute(Vec<DuplexStream>),
    /// Closes each connection after the handshake.
    Closing,
}

pub(crate) fn address(number: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], number))
}

pub(crate) fn endpoints(numbers: &[u16]) -> Vec<Endpoint> {
    numbers.iter().map(|&number| address(number).into()).collect()
}

impl Network {
    /// Starts a server, and returns its service.
    pub(crate) fn start(&self, number: u16) -> Echo {
        let service = Echo::default();
        self.set(number, Server::Up(Served::echo(&service)));
        service
    }

    pub(crate) fn set(&self, number: u16, server: Server) {
        self.servers.lock().unwrap().insert(address(number), server);
    }

    /// Starts a server that accepts connections after `delay`, and returns its service.
    pub(crate) fn start_slow(&self, number: u16, delay: Duration) -> Echo {
        let service = Echo::default();
        self.set(number, Server::Slow(delay, Served::echo(&service)));
        service
    }

    /// Stops a server gracefully.
    pub(crate) fn stop(&self, number: u16) -> JoinHandle<Duration> {
        match self.servers.lock().unwrap().remove(&address(number)) {
            Some(Server::Up(served)) => served.stop(),
            _ => panic!("there is no server {number}"),
        }
    }

    async fn connect(self, to: Address) -> io::Result<DuplexStream> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let Address::Tcp(to) = to else { panic!("not a TCP address: {to}") };
        let mut delay = Duration::ZERO;
        let connected: io::Result<DuplexStream> = match self.servers.lock().unwrap().get_mut(&to) {
            None => Err(io::ErrorKind::ConnectionRefused.into()),
            Some(Server::Up(served)) => Ok(served.pipe()),
            Some(Server::Slow(after, served)) => {
                delay = *after;
                Ok(served.pipe())
            }
            Some(Server::Mute(pipes)) => {
                let (near, far) = tokio::io::duplex(1 << 16);
                pipes.push(far);
                Ok(near)
            }
            Some(Server::Closing) => {
                let (near, far) = tokio::io::duplex(1 << 16);
                tokio::spawn(Peer::server(far, &[]));
                Ok(near)
            }
            Some(Server::Silent) => Err(io::ErrorKind::WouldBlock.into()),
        };
        if !delay.is_zero() {
            sleep(delay).await;
        }
        match connected {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::future::pending().await,
            connected => connected,
        }
    }

    pub(crate) fn channel(&self, resolver: impl Resolver, set: impl FnOnce(&mut ChannelConfig)) -> Channel {
        let network = self.clone();
        let mut config = channel_config(|config| {
            config.load_balancing = PolicyConfig::RoundRobin;
            set(config);
        });
        config.set_address_connector(move |to| network.clone().connect(to));
        config.set_resolver(resolver);
        Channel::new("fleet:1", config).expect("a target")
    }

    fn round_robin(&self, numbers: &[u16]) -> Channel {
        self.channel(EndpointList::new(endpoints(numbers)), |_| {})
    }
}

pub(crate) async fn calls(channel: &Channel, count: usize) {
    for _ in 0..count {
        soon(echo(channel, raw("x"))).await.expect("a response");
    }
}

/// Waits until everything is idle.
pub(crate) async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_all_servers_in_turn() {
    let network = Network::default();
    let services = [1, 2, 3].map(|number| network.start(number));
    let channel = network.round_robin(&[1, 2, 3]);
    calls(&channel, 1).await;
    settle().await;
    calls(&channel, 299).await;
    let started = services.each_ref().map(Echo::started);
    assert_eq!(started.iter().sum::<usize>(), 300);
    // The first call does not wait until all are connected.
    assert!(started.iter().all(|&calls| (99..=101).contains(&calls)), "{started:?}");
    assert_eq!(channel.state(), ConnectivityState::Ready);
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_peer_also_after_it_has_stopped() {
    let network = Network::default();
    let services = [1, 2].map(|number| network.start(number));
    let channel = network.round_robin(&[1, 2]);
    calls(&channel, 100).await;
    network.stop(1).await.expect("the server stops");
    calls(&channel, 100).await;
    settle().await;
    let snapshot = channel.snapshot();
    let peers = snapshot.lanes().flat_map(|lane| &lane.peers);
    let mut succeeded: Vec<_> = peers.map(|at| (at.peer.clone(), at.calls.succeeded)).collect();
    succeeded.sort();
    let expected =
        [1, 2].map(|number| (address(number).to_string(), services[number as usize - 1].started() as u64));
    assert_eq!(succeeded, expected);
    assert_eq!(succeeded.iter().map(|(_, calls)| calls).sum::<u64>(), 200);
}

#[tokio::test(start_paused = true)]
async fn caller_learns_the_server_of_its_call() {
    let network = Network::default();
    let services = [1, 2].map(|number| network.start(number));
    let channel = network.round_robin(&[1, 2]);
    calls(&channel, 4).await;
    let peer = CallPeer::new();
    let options = CallOptions::default().peer(&peer);
    let mut expected = services.each_ref().map(Echo::started);
    for is_unary in [true, false] {
        for _ in 0..6 {
            assert_eq!(peer.address(), None);
            if is_unary {
                let call = spawn_echo_with(&channel, raw("x"), options.clone());
                soon(call).await.expect("no panic").expect("a response");
            } else {
                let messages = items(vec![raw("x")]);
                let mut responses = stream(&channel, &CHAT, messages, &options).await.expect("a stream");
                while soon(responses.message()).await.expect("no failure").is_some() {}
            }
            let reached = peer.take().expect("a server");
            let at = [1, 2].iter().position(|&number| address(number).to_string() == *reached);
            expected[at.expect("one of the two")] += 1;
            assert_eq!(services.each_ref().map(Echo::started), expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_fails_or_waits_for_a_dead_server() {
    for dead in [None, Some(Server::Silent), Some(Server::Mute(Vec::new()))] {
        let network = Network::default();
        let services = [1, 3].map(|number| network.start(number));
        let is_refused = dead.is_none();
        if let Some(dead) = dead {
            network.set(2, dead);
        }
        let channel = network.round_robin(&[1, 2, 3]);
        let started = Instant::now();
        calls(&channel, 300).await;
        assert!(started.elapsed() < Duration::from_millis(10), "{:?}", started.elapsed());
        let [first, second] = services.each_ref().map(Echo::started);
        assert!(first.abs_diff(second) < 5, "{first} {second}");
        settle().await;
        let endpoints = channel.snapshot().endpoints;
        let has_failed = endpoints.iter().map(|endpoint| endpoint.last_connect_error.is_some());
        assert_eq!(has_failed.collect::<Vec<_>>(), [false, is_refused, false]);
        assert!(endpoints.iter().all(|endpoint| endpoint.addresses == 1), "{endpoints:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_comes_back_takes_calls_again() {
    let network = Network::default();
    let first = network.start(1);
    let channel = network.round_robin(&[1, 2]);
    calls(&channel, 10).await;
    let second = network.start(2);
    // The backoff after the first failure is a second at most 1.2 times.
    sleep(Duration::from_millis(1300)).await;
    calls(&channel, 10).await;
    assert_eq!((first.started(), second.started()), (15, 5));
    let endpoints = channel.snapshot().endpoints;
    assert!(endpoints.iter().all(|endpoint| endpoint.last_connect_error.is_none()), "{endpoints:?}");
}

#[tokio::test(start_paused = true)]
async fn no_call_fails_in_rolling_restarts() {
    let network = Network::default();
    for number in [1, 2, 3] {
        network.start(number);
    }
    let channel = network.round_robin(&[1, 2, 3]);
    let is_over = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (channel, is_over) = (channel.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut called = 0;
                while is_over.load(Ordering::Relaxed) == 0 {
                    let outcome = timeout(Duration::from_secs(1), echo(&channel, raw("yield"))).await;
                    outcome.expect("no call waits").expect("no call fails");
                    called += 1;
                    sleep(Duration::from_millis(20)).await;
                }
                called
            })
        })
        .collect();
    for restart in 0..100 {
        let number = restart % 3 + 1;
        sleep(Duration::from_millis(20)).await;
        let stopping = network.stop(number);
        sleep(Duration::from_millis(200)).await;
        network.start(number);
        soon(stopping).await.expect("no panic");
        // A second of backoff, with its jitter, and the time of the last restart.
        sleep(Duration::from_millis(1300)).await;
    }
    is_over.store(1, Ordering::Relaxed);
    let mut called = 0;
    for caller in callers {
        called += caller.await.expect("no failed call");
    }
    assert!(called > 10_000, "{called}");
}

#[tokio::test(start_paused = true)]
async fn list_may_change() {
    let network = Network::default();
    let [first, second, third] = [1, 2, 3].map(|number| network.start(number));
    let list = EndpointList::new(endpoints(&[1]));
    let channel = network.channel(list.clone(), |_| {});
    calls(&channel, 6).await;
    assert_eq!(first.started(), 6);
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut responses = soon(chat(&channel, Receiver(receiver))).await.expect("a stream");

    list.set(endpoints(&[2, 3]));
    settle().await;
    calls(&channel, 6).await;
    assert_eq!((first.started(), second.started(), third.started()), (7, 3, 3));
    // The call in flight ends normally.
    sender.send(raw("a")).expect("it is read");
    assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw("a")));
    drop(sender);
    assert_eq!(soon(responses.message()).await.expect("the end"), None);
    assert_eq!(channel.lanes().iter().filter(|lane| lane.state == "READY").count(), 2);

    list.set(Vec::<Endpoint>::new());
    settle().await;
    let error = soon(echo(&channel, raw("x"))).await.expect_err("no server");
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("no address"), "{error}");
    list.set(endpoints(&[3]));
    settle().await;
    calls(&channel, 1).await;
}

/// A list with a note.
#[derive(Debug)]
struct Noted(EndpointList);

impl Resolver for Noted {
    fn resolve(&self) -> Resolving<'_> {
        Box::pin(async {
            let mut resolution = self.0.resolve().await?;
            resolution.note = Some("its pods are not ready".into());
            Ok(resolution)
        })
    }

    fn changed(&self, version: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.changed(version)
    }
}

#[tokio::test(start_paused = true)]
async fn a_note_explains_an_empty_list() {
    for policy in [PolicyConfig::RoundRobin, PolicyConfig::default()] {
        let network = Network::default();
        network.start(1);
        let list = EndpointList::new(endpoints(&[]));
        let channel = network.channel(Noted(list.clone()), |config| config.load_balancing = policy);
        let error = soon(echo(&channel, raw("x"))).await.expect_err("no server");
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.message().contains("its pods are not ready"), "{error}");
        list.set(endpoints(&[1]));
        channel.reset_connect_backoff();
        settle().await;
        calls(&channel, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_fail_with_the_reasons_when_all_servers_are_down_and_wait_if_asked_to() {
    let network = Network::default();
    let channel = network.round_robin(&[1, 2, 3]);
    let error = soon(echo(&channel, raw("x"))).await.expect_err("no server");
    assert_eq!((error.code(), channel.state()), (Code::Unavailable, ConnectivityState::TransientFailure));
    let text = error.message();
    let reasons =
        [1, 2, 3].map(|server| format!("failed to connect to {}: connection refused", address(server)));
    assert!(text.starts_with(&format!("round_robin: none of 3 servers is ready: {}", reasons[0])), "{text}");
    assert!(reasons.iter().all(|reason| text.contains(reason)), "{text}");
    assert!(text.ends_with(" [/test.Echo/Echo to fleet:1, connecting]"), "{text}");
    let retry = RetryPolicy::new(2, [Code::Unavailable]);
    let options = CallOptions::default().retry(retry);
    let error = soon(spawn_echo_with(&channel, raw("x"), options)).await.expect("no panic");
    let error = error.expect_err("no server");
    let expected =
        "; all 2 attempts of the retry policy failed [/test.Echo/Echo to fleet:1, attempt 2, connecting]";
    assert!(error.message().ends_with(expected), "{error}");
    let asked = call_options(|options| {
        options.wait_for_ready = Some(true);
        options.timeout = Some(Duration::from_millis(10));
    });
    let error = soon(spawn_echo_with(&channel, raw("x"), asked)).await.expect("no panic");
    let error = error.expect_err("no server");
    let expected = "deadline exceeded: no connection was ready: round_robin: none of 3 servers is ready: ";
    assert!(error.message().starts_with(expected), "{error}");
    let waiting =
        spawn_echo_with(&channel, raw("x"), call_options(|options| options.wait_for_ready = Some(true)));
    settle().await;
    let service = network.start(2);
    soon(waiting).await.expect("no panic").expect("a response");
    assert_eq!(service.started(), 1);
}

/// A name whose servers change without notice.
#[derive(Debug)]
struct Name(Arc<Mutex<Vec<u16>>>);

impl Resolver for Name {
    fn resolve(&self) -> Resolving<'_> {
        let numbers = self.0.lock().unwrap().clone();
        Box::pin(async move { Ok(Resolution::new(endpoints(&numbers))) })
    }
}

#[tokio::test(start_paused = true)]
async fn name_is_resolved_again_after_the_refresh_period_and_after_failures() {
    let network = Network::default();
    let [first, second, third] = [1, 2, 3].map(|number| network.start(number));
    let numbers = Arc::new(Mutex::new(vec![1]));
    let channel = network.channel(Name(Arc::clone(&numbers)), |_| {});
    calls(&channel, 2).await;
    *numbers.lock().unwrap() = vec![1, 2];
    // The period of 30 s has ±20 % of jitter, but is at least the minimum interval.
    sleep(Duration::from_secs(29)).await;
    calls(&channel, 2).await;
    assert_eq!((first.started(), second.started()), (4, 0));
    sleep(Duration::from_secs(8)).await;
    calls(&channel, 2).await;
    assert_eq!((first.started(), second.started()), (5, 1));
    // A failure does not wait for the period, but the last resolution was a second ago: at most one in 5 s here.
    let channel = network.channel(Name(Arc::clone(&numbers)), |config| {
        config.resolution_refresh = None;
        config.resolution_interval_min = Duration::from_secs(5);
    });
    calls(&channel, 2).await;
    *numbers.lock().unwrap() = vec![3];
    sleep(Duration::from_secs(1000)).await;
    calls(&channel, 2).await;
    assert_eq!(third.started(), 0);
    drop(network.stop(1));
    settle().await;
    calls(&channel, 2).await;
    assert_eq!(third.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn silent_address_delays_the_first_connection_by_250_ms_and_later_ones_not_at_all() {
    for silent in [Server::Silent, Server::Mute(Vec::new())] {
        let network = Network::default();
        network.start(2);
        network.set(1, silent);
        let addresses = [1, 2].map(|number| Address::Tcp(address(number))).to_vec();
        let list = EndpointList::new([Endpoint::with_addresses(addresses)]);
        let channel = network.channel(list, |config| config.load_balancing = PolicyConfig::default());
        let started = Instant::now();
        calls(&channel, 1).await;
        assert_eq!(started.elapsed(), Duration::from_millis(250));
        assert_eq!(network.attempts.load(Ordering::Relaxed), 2);
        soon(network.stop(2)).await.expect("no panic");
        network.start(2);
        let started = Instant::now();
        let options = CallOptions::default();
        soon(spawn_echo_with(&channel, raw("x"), options)).await.expect("no panic").expect("a response");
        assert_eq!(started.elapsed(), Duration::ZERO);
        // The address that worked is tried first.
        assert_eq!(network.attempts.load(Ordering::Relaxed), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn state_changes_are_reported_while_a_channel_connects_with_retries() {
    for policy in [PolicyConfig::default(), PolicyConfig::RoundRobin] {
        let network = Network::default();
        let list = EndpointList::new(endpoints(&[1]));
        let channel = network.channel(list, |config| config.load_balancing = policy);
        let idle = ConnectivityState::Idle;
        assert!(
            timeout(Duration::from_secs(3600), channel.state_changed(idle)).await.is_err(),
            "it stays idle"
        );
        assert_eq!(network.attempts.load(Ordering::Relaxed), 0, "it does not connect");
        // A state other than the last is returned at once.
        assert_eq!(soon(channel.state_changed(ConnectivityState::Ready)).await, idle);
        let connecting = tokio::spawn({
            let channel = channel.clone();
            async move { channel.connect_with_retries().await }
        });
        let mut state = idle;
        while state != ConnectivityState::TransientFailure {
            state = soon(channel.state_changed(state)).await;
            assert_ne!(state, idle);
        }
        let changed = tokio::spawn({
            let channel = channel.clone();
            async move { channel.state_changed(ConnectivityState::TransientFailure).await }
        });
        sleep(Duration::from_secs(30)).await;
        assert!(network.attempts.load(Ordering::Relaxed) > 2, "failed attempts are repeated");
        assert!(!connecting.is_finished() && !changed.is_finished(), "a failure lasts until it is connected");
        network.start(1);
        connecting.await.expect("no panic").expect("a connection");
        assert_eq!(changed.await.expect("no panic"), ConnectivityState::Ready);
        soon(network.stop(1)).await.expect("no panic");
        assert_ne!(soon(channel.state_changed(ConnectivityState::Ready)).await, ConnectivityState::Ready);
    }
}

#[tokio::test(start_paused = true)]
async fn idle_channel_closes_its_connections_until_the_next_call() {
    let network = Network::default();
    let services = [1, 2].map(|number| network.start(number));
    let list = EndpointList::new(endpoints(&[1, 2]));
    let channel = network.channel(list, |config| config.idle_timeout = Some(Duration::from_secs(10)));
    calls(&channel, 2).await;
    let call = spawn_echo_with(&channel, raw("sleep"), CallOptions::default());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(channel.state(), ConnectivityState::Ready, "a call is in flight");
    call.abort();
    sleep(Duration::from_secs(25)).await;
    assert_eq!(channel.state(), ConnectivityState::Idle);
    assert!(channel.lanes().iter().all(|lane| lane.state == "IDLE"), "{:?}", channel.lanes());
    let attempts = network.attempts.load(Ordering::Relaxed);
    sleep(Duration::from_secs(1000)).await;
    assert_eq!(network.attempts.load(Ordering::Relaxed), attempts, "it stays idle");
    calls(&channel, 1).await;
    settle().await;
    calls(&channel, 10).await;
    let [first, second] = services.each_ref().map(Echo::started);
    assert!(first >= 5 && second >= 5 && first + second == 14, "{first} {second}");
}

#[tokio::test(start_paused = true)]
async fn calls_with_equal_keys_or_headers_go_to_one_server() {
    use thalweg_engine::policy::RingHashConfig;

    let network = Network::default();
    let services = [1, 2, 3, 4].map(|number| network.start(number));
    let list = EndpointList::new(endpoints(&[1, 2, 3, 4]));
    let by_key = network.channel(list.clone(), |config| {
        config.load_balancing = PolicyConfig::RingHash(RingHashConfig::default());
    });
    let mut used = Vec::new();
    for key in 0..8 {
        let before = services.each_ref().map(Echo::started);
        for _ in 0..10 {
            let options = CallOptions::default().affinity_key(key);
            soon(spawn_echo_with(&by_key, raw("x"), options)).await.expect("no panic").expect("a response");
        }
        let after = services.each_ref().map(Echo::started);
        let grown: Vec<usize> = (0..4).filter(|&at| after[at] > before[at]).collect();
        assert_eq!(grown.len(), 1, "key {key}");
        used.extend(grown);
    }
    used.sort_unstable();
    used.dedup();
    assert!(used.len() > 1, "{used:?}");

    let by_header = network.channel(list, |config| {
        config.load_balancing =
            PolicyConfig::RingHash(RingHashConfig::default().request_hash_header("x-user"));
    });
    let before = services.each_ref().map(Echo::started);
    for _ in 0..10 {
        let metadata = crate::support::fields(&[("x-user", "ada")]);
        let call = crate::support::unary(&by_header, &metadata, raw("x"), by_header.call_options());
        soon(call).await.expect("a response");
    }
    let after = services.each_ref().map(Echo::started);
    assert_eq!((0..4).filter(|&at| after[at] > before[at]).count(), 1);
}

/// A name server that never answers.
#[derive(Debug)]
struct NeverResolved;

impl Resolver for NeverResolved {
    fn resolve(&self) -> Resolving<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn call_does_not_wait_for_a_name_server_longer_than_for_a_connection() {
    let network = Network::default();
    let channel = network.channel(NeverResolved, |config| config.connect_timeout = Duration::from_secs(3));
    let started = Instant::now();
    let error = echo(&channel, raw("x")).await.expect_err("no address");
    assert_eq!((error.code(), started.elapsed()), (Code::Unavailable, Duration::from_secs(3)));
    assert!(error.message().contains("failed to resolve fleet:1: no answer within 3s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn server_that_closes_its_connections_is_connected_once_a_second() {
    let network = Network::default();
    let service = network.start(1);
    network.set(2, Server::Closing);
    let channel = network.round_robin(&[1, 2]);
    calls(&channel, 1).await;
    sleep(Duration::from_secs(10)).await;
    let attempts = network.attempts.load(Ordering::Relaxed);
    assert!((5..=13).contains(&attempts), "{attempts}");
    calls(&channel, 10).await;
    assert_eq!(service.started(), 11);
}

/// The control's task may run on another thread while the channel is dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_channel_leaves_no_connection() {
    let network = Network::default();
    network.start(1);
    let runtime = tokio::runtime::Handle::current();
    // The server's maintenance starts with its first connection, and stays.
    let kept = network.round_robin(&[1]);
    calls(&kept, 1).await;
    let tasks = runtime.metrics().num_alive_tasks();
    for _ in 0..200 {
        let channel = network.round_robin(&[1]);
        calls(&channel, 1).await;
        drop(channel);
    }
    let ended = async {
        while runtime.metrics().num_alive_tasks() > tasks {
            sleep(Duration::from_millis(1)).await;
        }
    };
    let outcome = timeout(Duration::from_secs(10), ended).await;
    assert!(outcome.is_ok(), "{} tasks, {tasks} before", runtime.metrics().num_alive_tasks());
}

/// A caller's own setting wins over the service config, as in gRPC.
#[tokio::test(start_paused = true)]
async fn wait_for_ready_of_a_call_overrides_the_service_config() {
    let config =
        |waits: bool| format!(r#"{{ "methodConfig": [{{ "name": [{{}}], "waitForReady": {waits} }}] }}"#);
    for (configured, own, expected) in
        [(true, None, true), (true, Some(false), false), (false, None, false), (false, Some(true), true)]
    {
        let network = Network::default();
        let channel = network.channel(EndpointList::new(endpoints(&[1])), |channel| {
            channel.service_config = Some(config(configured).into());
        });
        let call = spawn_echo_with(&channel, raw("x"), call_options(|options| options.wait_for_ready = own));
        sleep(Duration::from_secs(3)).await;
        assert_eq!(!call.is_finished(), expected, "{configured}, {own:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn servers_share_the_cap_of_lanes_as_their_list_changes() {
    let network = Network::default();
    let _services = [1, 2, 3, 4].map(|number| network.start(number));
    let servers = EndpointList::new(endpoints(&[1]));
    let channel = network.channel(servers.clone(), |config| config.lanes = Lanes::adaptive().cap(4));
    calls(&channel, 1).await;
    let lanes = || {
        let endpoints = channel.snapshot().endpoints;
        endpoints.iter().map(|endpoint| endpoint.lanes.len()).collect::<Vec<_>>()
    };
    channel.open_lanes(3, "for the test");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(lanes(), [4]);
    servers.set(endpoints(&[1, 2, 3, 4]));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(lanes(), [1, 1, 1, 1]);
    servers.set(endpoints(&[3]));
    sleep(Duration::from_secs(5)).await;
    // Idle lanes close, but not because of the former cap.
    channel.open_lanes(3, "for the test");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(lanes(), [1]);
    let events = format!("{:?}", channel.snapshot().endpoints[0].events);
    assert!(events.contains("closed: ") && !events.contains("the cap of 1"), "{events}");
}
