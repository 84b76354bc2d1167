//! Service configs that a resolver gives, and changes while calls are made (gRFC A21).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::HeaderMap;
use thalweg_engine::policy::PolicyConfig;
use thalweg_engine::{
    CallOptions, Channel, ChannelConfig, Code, ConnectivityState, Resolution, ResolveError, Resolver,
    Resolving, ServiceConfig, Status,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::balance::{Network, Server, address, calls, endpoints, settle};
use crate::support::feed::Feed;
use crate::support::{
    CHAT, Echo, NO_METADATA, Served, call_options, echo, fields, items, raw, server_config, soon,
    spawn_echo_with, stream, unary, within,
};

/// A resolver whose result the test sets. Before the first one, resolutions do not end.
#[derive(Clone, Debug)]
struct Operator(Arc<watch::Sender<Option<Result<Resolution, ResolveError>>>>);

impl Operator {
    fn silent() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    fn new(servers: &[u16], config: &str) -> Self {
        let operator = Self::silent();
        operator.set(servers, config);
        operator
    }

    /// Publishes servers and a config; none if it is empty.
    fn set(&self, servers: &[u16], config: &str) {
        let resolution = Resolution::new(endpoints(servers));
        self.publish(if config.is_empty() { resolution } else { resolution.service_config(config) });
    }

    fn publish(&self, mut resolution: Resolution) {
        self.0.send_modify(|current| {
            let version = current.as_ref().and_then(|last| last.as_ref().ok()).map_or(0, |last| last.version);
            resolution.version = version + 1;
            *current = Some(Ok(resolution));
        });
    }
}

impl Resolver for Operator {
    fn looks_up(&self) -> bool {
        false
    }

    fn gives_service_config(&self) -> bool {
        true
    }

    fn resolve(&self) -> Resolving<'_> {
        let mut receiver = self.0.subscribe();
        Box::pin(async move {
            let current = receiver.wait_for(Option::is_some).await.expect("it lives").clone();
            current.expect("it is some")
        })
    }

    fn changed(&self, version: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut receiver = self.0.subscribe();
        Box::pin(async move {
            let is_other = |current: &Option<Result<Resolution, ResolveError>>| match current {
                Some(Ok(resolution)) => resolution.version != version,
                _ => false,
            };
            receiver.wait_for(is_other).await.expect("it lives");
        })
    }
}

/// Two servers, and a channel whose own policy is `pick_first`.
fn fleet(operator: &Operator, set: impl FnOnce(&mut ChannelConfig)) -> (Network, [Echo; 2], Channel) {
    let network = Network::default();
    let servers = [network.start(1), network.start(2)];
    let channel = network.channel(operator.clone(), |config| {
        config.load_balancing = PolicyConfig::default();
        set(config);
    });
    (network, servers, channel)
}

/// Makes 10 calls, and returns how many each server got.
async fn shares(channel: &Channel, servers: &[Echo; 2]) -> [usize; 2] {
    let before = servers.each_ref().map(Echo::started);
    calls(channel, 10).await;
    [servers[0].started() - before[0], servers[1].started() - before[1]]
}

async fn sent(channel: &Channel, bytes: usize) -> Result<(), Code> {
    soon(echo(channel, raw(vec![b'x'; bytes]))).await.map(drop).map_err(|status| status.code())
}

const ROUND_ROBIN: &str = r#"{ "loadBalancingConfig": [{ "round_robin": {} }] }"#;
const LEAST_REQUEST: &str = r#"{ "loadBalancingConfig": [{ "least_request": { "choiceCount": 2 } }] }"#;

/// Returns a config with a limit of request messages.
fn limit(bytes: usize) -> String {
    format!(
        r#"{{ "methodConfig": [{{ "name": [{{ "service": "test.Echo" }}], "maxRequestMessageBytes": {bytes} }}] }}"#
    )
}

#[tokio::test(start_paused = true)]
async fn policy_changes_and_keeps_connections() {
    let operator = Operator::new(&[1, 2], "");
    let (network, servers, channel) = fleet(&operator, |_| {});
    assert_eq!(shares(&channel, &servers).await, [10, 0]);
    operator.set(&[1, 2], ROUND_ROBIN);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(shares(&channel, &servers).await, [5, 5]);
    let attempts = network.attempts.load(Ordering::Relaxed);
    operator.set(&[1, 2], LEAST_REQUEST);
    sleep(Duration::from_secs(1)).await;
    let [first, second] = shares(&channel, &servers).await;
    assert!(first > 0 && second > 0, "{first}, {second}");
    assert_eq!(network.attempts.load(Ordering::Relaxed), attempts, "connected again");
    // Without a config, the channel's own policy is back.
    operator.set(&[1, 2], "");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(shares(&channel, &servers).await, [10, 0]);
}

#[tokio::test(start_paused = true)]
async fn no_call_fails_when_policies_alternate() {
    let operator = Operator::new(&[1, 2], ROUND_ROBIN);
    let (_network, _servers, channel) = fleet(&operator, |_| {});
    let changing = async {
        for round in 0..100 {
            operator.set(&[1, 2], ["", ROUND_ROBIN, LEAST_REQUEST][round % 3]);
            sleep(Duration::from_millis(10)).await;
        }
    };
    let calling = async {
        for _ in 0..1000 {
            soon(echo(&channel, raw("x"))).await.expect("a response");
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::join!(changing, calling);
}

/// Makes calls for a second, one each millisecond. None may wait: all time is that between them.
async fn call_without_waiting(channel: &Channel) {
    for _ in 0..1000 {
        let started = Instant::now();
        soon(echo(channel, raw("x"))).await.expect("a response");
        assert!(started.elapsed() < Duration::from_millis(1), "waited {:?}", started.elapsed());
        sleep(Duration::from_millis(1)).await;
    }
}

/// Returns the addresses of the endpoints with their states.
fn listed(channel: &Channel) -> Vec<String> {
    let endpoints = channel.snapshot().endpoints;
    endpoints.iter().map(|endpoint| format!("{} {}", endpoint.name, endpoint.state)).collect()
}

/// The new server takes 300 ms to accept. Calls go to the old ones meanwhile, whose connections close then.
#[tokio::test(start_paused = true)]
async fn calls_do_not_wait_for_the_servers_of_a_new_policy() {
    let outliers = |child: &str| {
        format!(r#"{{ "loadBalancingConfig": [{{ "outlier_detection": {{ "childPolicy": [{child}] }} }}] }}"#)
    };
    let subset = |size: u32| {
        let config = format!(r#"{{ "subsetSize": {size}, "childPolicy": [{{ "round_robin": {{}} }}] }}"#);
        format!(r#"{{ "loadBalancingConfig": [{{ "random_subsetting": {config} }}] }}"#)
    };
    let round_robin = r#"{ "round_robin": {} }"#;
    let (nested_before, nested_after) = (outliers(round_robin), outliers(r#"{ "pick_first": {} }"#));
    for (before, after) in [
        (ROUND_ROBIN, ""),
        (ROUND_ROBIN, LEAST_REQUEST),
        (ROUND_ROBIN, r#"{ "loadBalancingConfig": [{ "ring_hash": {} }] }"#),
        (ROUND_ROBIN, &subset(1)),
        (ROUND_ROBIN, &nested_before),
        ("", ROUND_ROBIN),
        (&nested_before, &nested_after),
        (&nested_after, &nested_before),
    ] {
        let operator = Operator::new(&[1, 2], before);
        let (network, servers, channel) = fleet(&operator, |_| {});
        let third = network.start_slow(3, Duration::from_millis(300));
        calls(&channel, 2).await;
        settle().await;
        let changed = async {
            sleep(Duration::from_millis(100)).await;
            operator.set(&[3], after);
            sleep(Duration::from_millis(299)).await;
            let count = servers.each_ref().map(Echo::started).iter().sum::<usize>();
            (count, third.started())
        };
        let ((), (old, new)) = tokio::join!(call_without_waiting(&channel), changed);
        assert!((398..=402).contains(&old) && new == 0, "{old}, {new}: {before} to {after}");
        assert!(third.started() > 595, "{}: {before} to {after}", third.started());
        assert_eq!(listed(&channel), [format!("{} READY", address(3))], "{before} to {after}");
        assert_eq!(channel.lanes().len(), 1, "{before} to {after}");
    }
}

/// Other policies with the same health check keep its streams: calls would wait until a new one reports health.
#[tokio::test(start_paused = true)]
async fn health_is_known_when_the_policy_changes() {
    let config = |policy: &str| {
        let check = r#""healthCheckConfig": { "serviceName": "" }"#;
        format!(r#"{{ "loadBalancingConfig": [{{ {policy} }}], {check} }}"#)
    };
    let out_of_band = r#""weighted_round_robin": { "enableOobLoadReport": true }"#;
    let operator = Operator::new(&[1, 2], &config(r#""round_robin": {}"#));
    let network = Network::default();
    let feeds = [1, 2].map(|number| {
        let feed = Feed::new(b"\x08\x01");
        let router = feed.router("grpc.health.v1.Health/Watch", Echo::default().router());
        network.set(number, Server::Up(Served::start(server_config(|_| {}), router)));
        feed
    });
    let channel = network.channel(operator.clone(), |_| {});
    calls(&channel, 2).await;
    settle().await;
    let changing = async {
        for policy in [out_of_band, r#""least_request": {}"#, r#""round_robin": {}"#] {
            sleep(Duration::from_millis(250)).await;
            operator.set(&[1, 2], &config(policy));
        }
    };
    tokio::join!(call_without_waiting(&channel), changing);
    for feed in feeds {
        assert_eq!(feed.requests().len(), 1);
    }
}

/// A pending policy whose server fails is used, as in grpc-go. One that a later config replaces is not.
#[tokio::test(start_paused = true)]
async fn third_policy_replaces_one_that_is_pending() {
    let operator = Operator::new(&[1, 2], ROUND_ROBIN);
    let (network, _servers, channel) = fleet(&operator, |_| {});
    network.set(4, Server::Silent);
    network.start(3);
    calls(&channel, 2).await;
    settle().await;
    let changing = async {
        operator.set(&[4], "");
        sleep(Duration::from_millis(500)).await;
        assert_eq!(listed(&channel).len(), 3);
        operator.set(&[3], LEAST_REQUEST);
    };
    tokio::join!(call_without_waiting(&channel), changing);
    assert_eq!(listed(&channel), [format!("{} READY", address(3))]);
    operator.set(&[5], ROUND_ROBIN);
    settle().await;
    let status = soon(echo(&channel, raw("x"))).await.expect_err("refused");
    assert_eq!(status.code(), Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn hashed_header_comes_with_the_policy() {
    let operator = Operator::new(&[1, 2], ROUND_ROBIN);
    let (_network, servers, channel) = fleet(&operator, |_| {});
    assert_eq!(shares(&channel, &servers).await, [5, 5]);
    operator
        .set(&[1, 2], r#"{ "loadBalancingConfig": [{ "ring_hash": { "requestHashHeader": "x-key" } }] }"#);
    sleep(Duration::from_secs(1)).await;
    for key in ["a", "b", "c", "d"] {
        let before = servers.each_ref().map(Echo::started);
        for _ in 0..10 {
            let metadata = fields(&[("x-key", key)]);
            soon(unary(&channel, &metadata, raw("x"), &CallOptions::default())).await.expect("a response");
        }
        let of_one = (0..2).any(|at| servers[at].started() == before[at] + 10);
        assert!(of_one, "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn settings_of_methods_change() {
    let operator = Operator::new(&[1], &limit(10));
    let (_network, _servers, channel) = fleet(&operator, |_| {});
    assert_eq!((sent(&channel, 10).await, sent(&channel, 11).await), (Ok(()), Err(Code::ResourceExhausted)));
    operator.set(&[1], &limit(20));
    sleep(Duration::from_secs(1)).await;
    assert_eq!((sent(&channel, 20).await, sent(&channel, 21).await), (Ok(()), Err(Code::ResourceExhausted)));
    operator.set(&[1], "");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(sent(&channel, 21).await, Ok(()));
}

/// The config may have settings for the first calls, too.
#[tokio::test(start_paused = true)]
async fn first_calls_wait_for_the_config() {
    let operator = Operator::silent();
    let (_network, servers, channel) = fleet(&operator, |_| {});
    let large = spawn_echo_with(&channel, raw(vec![b'x'; 11]), CallOptions::default());
    let small = spawn_echo_with(&channel, raw("x"), CallOptions::default());
    let chat = tokio::spawn({
        let channel = channel.clone();
        async move {
            let options = CallOptions::default();
            stream(&channel, &CHAT, items(vec![raw("y")]), &options).await?.rest().await
        }
    });
    sleep(Duration::from_secs(5)).await;
    assert!(!large.is_finished() && !small.is_finished() && !chat.is_finished());
    operator.set(&[1], &limit(10));
    let error = soon(large).await.expect("no panic").expect_err("too large");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error:?}");
    assert_eq!(soon(small).await.expect("no panic").expect("a response"), raw("x"));
    let (messages, _) = soon(chat).await.expect("no panic").expect("responses");
    assert_eq!((messages, servers[0].started()), (vec![raw("y")], 2));
}

#[tokio::test(start_paused = true)]
async fn deadline_includes_the_wait_for_the_config() {
    let check = async |metadata: HeaderMap, options: CallOptions, resolved_after: u64, expected: &str| {
        let operator = Operator::silent();
        let (_network, _servers, channel) = fleet(&operator, |_| {});
        let started = Instant::now();
        let call = async {
            let status: Status =
                unary(&channel, &metadata, raw("sleep"), &options).await.expect_err("no time");
            (status.code(), started.elapsed().as_millis())
        };
        let ((code, millis), ()) = tokio::join!(call, async {
            sleep(Duration::from_secs(resolved_after)).await;
            operator.set(&[1], "");
        });
        assert_eq!(format!("{code:?} after {millis}"), expected);
    };
    let three = || within(Duration::from_secs(3));
    check(NO_METADATA.clone(), three(), 1, "DeadlineExceeded after 3000").await;
    check(NO_METADATA.clone(), three(), 10, "DeadlineExceeded after 3000").await;
    check(fields(&[("grpc-timeout", "2S")]), three(), 1, "DeadlineExceeded after 2000").await;
}

#[tokio::test(start_paused = true)]
async fn last_config_stays_after_an_invalid_one_and_its_servers_are_used() {
    let operator = Operator::new(&[1], &limit(10));
    let (_network, servers, channel) = fleet(&operator, |_| {});
    assert_eq!(sent(&channel, 11).await, Err(Code::ResourceExhausted));
    operator.set(&[2], r#"{ "loadBalancingConfig": 5 }"#);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((sent(&channel, 10).await, sent(&channel, 11).await), (Ok(()), Err(Code::ResourceExhausted)));
    assert_eq!((servers[0].started(), servers[1].started()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn calls_fail_while_the_first_config_is_invalid() {
    let operator = Operator::new(&[1], r#"{ "methodConfig": 5 }"#);
    let (_network, _servers, channel) = fleet(&operator, |_| {});
    let waiting =
        spawn_echo_with(&channel, raw("x"), call_options(|options| options.wait_for_ready = Some(true)));
    for _ in 0..3 {
        let status = soon(echo(&channel, raw("x"))).await.expect_err("no config");
        assert_eq!(status.code(), Code::Unavailable);
        let expected = "failed to resolve fleet:1: service config, methodConfig: expected a list, found 5";
        assert!(status.message().contains(expected), "{}", status.message());
    }
    assert_eq!(channel.state(), ConnectivityState::TransientFailure);
    assert!(!waiting.is_finished());
    operator.set(&[1], "");
    soon(waiting).await.expect("no panic").expect("a response");
    assert_eq!(sent(&channel, 1).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn own_config_is_the_default() {
    let operator = Operator::new(&[1], "not JSON");
    let (_network, _servers, channel) =
        fleet(&operator, |config| config.service_config = Some(limit(10).into()));
    assert_eq!((sent(&channel, 10).await, sent(&channel, 11).await), (Ok(()), Err(Code::ResourceExhausted)));
    let typed = ServiceConfig::default().load_balancing(PolicyConfig::RoundRobin);
    operator.publish(Resolution::new(endpoints(&[1])).service_config(typed));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(sent(&channel, 11).await, Ok(()));
    operator.set(&[1], "");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(sent(&channel, 11).await, Err(Code::ResourceExhausted));
}

#[tokio::test(start_paused = true)]
async fn configs_of_the_resolver_can_be_disabled() {
    for load_balancing in [PolicyConfig::default(), PolicyConfig::RoundRobin] {
        let operator = Operator::new(&[1], &limit(10));
        let (_network, _servers, channel) = fleet(&operator, |config| {
            config.disable_service_config = true;
            config.load_balancing = load_balancing.clone();
        });
        assert_eq!(sent(&channel, 11).await, Ok(()), "{load_balancing:?}");
    }
}

/// Retries of failures, which a config may throttle.
#[tokio::test(start_paused = true)]
async fn throttling_changes() {
    let config = |rest: &str| {
        format!(
            r#"{{ "methodConfig": [{{ "name": [{{}}], "retryPolicy": {{ "maxAttempts": 3, "initialBackoff": "0.1s",
            "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["NOT_FOUND"] }} }}] {rest} }}"#
        )
    };
    let throttled = config(r#", "retryThrottling": { "maxTokens": 1, "tokenRatio": 0.1 }"#);
    let operator = Operator::new(&[1], &throttled);
    let (_network, servers, channel) = fleet(&operator, |_| {});
    let attempts = async || {
        let before = servers[0].started();
        soon(echo(&channel, raw("fail"))).await.expect_err("it fails");
        servers[0].started() - before
    };
    assert_eq!(attempts().await, 1);
    operator.set(&[1], &config(""));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(attempts().await, 3);
    operator.set(&[1], &throttled);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(attempts().await, 1);
}

/// A resolver that gives a config, but says it does not.
#[derive(Debug)]
struct Unannounced;

impl Resolver for Unannounced {
    fn resolve(&self) -> Resolving<'_> {
        Box::pin(async { Ok(Resolution::new([address(1)]).service_config(ROUND_ROBIN)) })
    }
}

#[tokio::test(start_paused = true)]
async fn unannounced_config_is_an_error() {
    let network = Network::default();
    network.start(1);
    for load_balancing in [PolicyConfig::default(), PolicyConfig::RoundRobin] {
        let channel = network.channel(Unannounced, |config| config.load_balancing = load_balancing.clone());
        let status = soon(echo(&channel, raw("x"))).await.expect_err("unannounced");
        let expected = "gives a service config unannounced; let its gives_service_config() return true";
        assert!(status.message().contains(expected), "{}", status.message());
    }
}
