//! Balanced channels of which one server is bad: further attempts and ejections avoid it. And subsets of servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderMap;
use thalweg_engine::policy::{PolicyConfig, RandomSubsettingConfig};
use thalweg_engine::server::{Handler, MessageResponse, ServerMethod, UnaryHandler};
use thalweg_engine::{Channel, Code, Encode, EndpointList, Envelope, RequestHead, ServiceOptions, Status};
use tokio::time::sleep;

use crate::balance::{Network, Server, calls, endpoints, settle};
use crate::support::{
    BoxFuture, Echo, EchoResponse, Served, echo, raw, response_of, routes, server_config, soon, spawn_echo,
};

/// A server that may be bad, and counts its calls.
#[derive(Clone, Default)]
struct Troubled {
    calls: Arc<AtomicUsize>,
    trouble: Arc<AtomicUsize>,
}

const NONE: usize = 0;
/// All calls end with UNAVAILABLE.
const FAILS: usize = 1;
/// No call ends.
const SILENT: usize = 2;

impl Troubled {
    fn start(network: &Network, number: u16, trouble: usize) -> Self {
        let server = Self::default();
        server.set(trouble);
        let method =
            ServerMethod::new("test.Echo/Echo", ServiceOptions::default(), Handler::unary(server.clone()));
        network.set(number, Server::Up(Served::start(server_config(|_| {}), routes([method]))));
        server
    }

    fn set(&self, trouble: usize) {
        self.trouble.store(trouble, Ordering::Relaxed);
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl UnaryHandler for Troubled {
    type Future = BoxFuture<Self::Output>;
    type Output = Result<EchoResponse, Status>;

    fn start(&self, _: &RequestHead, _: Envelope<'_>) -> Result<Self::Future, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let trouble = self.trouble.load(Ordering::Relaxed);
        Ok(Box::pin(async move {
            match trouble {
                FAILS => Err(Status::new(Code::Unavailable, "this server fails")),
                SILENT => std::future::pending().await,
                _ => Ok(EchoResponse { metadata: HeaderMap::new(), message: raw("y"), trailers: None }),
            }
        }))
    }

    fn response(output: &Self::Output) -> Result<MessageResponse<'_, impl Encode>, Status> {
        response_of(output)
    }
}

/// Returns a `round_robin` channel over servers 1, 2 and 3 with this policy of attempts.
fn channel(network: &Network, attempts: &str) -> Channel {
    let json = format!(r#"{{ "methodConfig": [{{ "name": [{{ "service": "test.Echo" }}], {attempts} }}] }}"#);
    network.channel(EndpointList::new(endpoints(&[1, 2, 3])), |config| {
        config.service_config = Some(json.into());
    })
}

/// Makes 60 calls at the same time, so that picks for first and further attempts alternate. All must succeed.
async fn check_attempts(trouble: usize, attempts: &str) {
    let network = Network::default();
    let bad = Troubled::start(&network, 1, trouble);
    let good = [2, 3].map(|number| network.start(number));
    let channel = channel(&network, attempts);
    soon(channel.connect()).await.expect("a server is up");
    settle().await;
    let calls: Vec<_> = (0..60).map(|_| spawn_echo(&channel, "x")).collect();
    for call in calls {
        soon(call).await.expect("no panic").expect("a response of another server");
    }
    assert_eq!(bad.calls(), 20);
    assert_eq!(good.each_ref().map(Echo::started).iter().sum::<usize>(), 60);
}

#[tokio::test(start_paused = true)]
async fn retry_goes_to_a_server_that_the_call_has_not_tried() {
    let policy = r#""retryPolicy": { "maxAttempts": 2, "initialBackoff": "0.01s", "maxBackoff": "0.01s",
        "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"] }"#;
    check_attempts(FAILS, policy).await;
}

#[tokio::test(start_paused = true)]
async fn hedged_attempt_goes_to_a_server_that_the_call_has_not_tried() {
    check_attempts(SILENT, r#""hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": "0.005s" }"#).await;
}

/// A call that has tried all ready servers gets one of them again.
#[tokio::test(start_paused = true)]
async fn retry_goes_to_a_tried_server_if_there_is_no_other() {
    let network = Network::default();
    let bad = Troubled::start(&network, 1, FAILS);
    let policy = r#""retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.01s",
        "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"] }"#;
    let channel = channel(&network, policy);
    soon(echo(&channel, raw("x"))).await.expect_err("the only server fails");
    assert_eq!(bad.calls(), 3);
}

/// gRFC A50, through all of the channel: outcomes of calls eject a server, and it comes back after the ejection.
#[tokio::test(start_paused = true)]
async fn server_that_fails_its_calls_is_ejected_for_a_while() {
    let network = Network::default();
    let bad = Troubled::start(&network, 1, FAILS);
    let good = [2, 3].map(|number| network.start(number));
    let json = r#"{ "loadBalancingConfig": [{ "outlier_detection_experimental": {
        "interval": "1s", "baseEjectionTime": "5s", "maxEjectionPercent": 50,
        "failurePercentageEjection": { "threshold": 50, "minimumHosts": 3, "requestVolume": 10 },
        "childPolicy": [{ "round_robin": {} }] } }] }"#;
    let channel = network.channel(EndpointList::new(endpoints(&[1, 2, 3])), |config| {
        config.service_config = Some(json.into());
    });
    soon(channel.connect()).await.expect("a server is up");
    settle().await;
    let mut failed = 0;
    for _ in 0..60 {
        failed += usize::from(soon(echo(&channel, raw("x"))).await.is_err());
    }
    assert_eq!((failed, bad.calls()), (20, 20));

    sleep(Duration::from_secs(2)).await;
    calls(&channel, 60).await;
    assert_eq!(bad.calls(), 20);

    bad.set(NONE);
    sleep(Duration::from_secs(6)).await;
    let before = good.each_ref().map(Echo::started);
    calls(&channel, 60).await;
    assert_eq!(bad.calls(), 40);
    let after = good.each_ref().map(Echo::started);
    assert_eq!([after[0] - before[0], after[1] - before[1]], [20, 20]);
}

/// gRFC A68: a channel connects to a subset only, and keeps what it can of it.
#[tokio::test(start_paused = true)]
async fn channel_uses_a_subset_of_the_servers() {
    const SERVERS: [u16; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    let network = Network::default();
    let services = SERVERS.map(|number| network.start(number));
    let started = || services.each_ref().map(Echo::started);
    // Makes 300 calls, and returns the servers that got them.
    let used = async |channel: &Channel| {
        calls(channel, 1).await;
        settle().await;
        let before = started();
        calls(channel, 300).await;
        let grown: Vec<usize> = started().iter().zip(before).map(|(after, before)| after - before).collect();
        assert!(grown.iter().all(|&calls| calls == 0 || calls == 100), "{grown:?}");
        SERVERS.into_iter().zip(grown).filter(|(_, calls)| *calls > 0).map(|(number, _)| number).collect()
    };
    let mut all = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let list = EndpointList::new(endpoints(&SERVERS));
        let attempts = network.attempts.load(Ordering::Relaxed);
        let channel = network.channel(list.clone(), |config| {
            let subset = RandomSubsettingConfig::new(3, PolicyConfig::RoundRobin);
            config.load_balancing = PolicyConfig::RandomSubsetting(subset);
        });
        let first: Vec<u16> = used(&channel).await;
        assert_eq!((first.len(), network.attempts.load(Ordering::Relaxed) - attempts), (3, 3));
        let rest: Vec<u16> = SERVERS.into_iter().filter(|number| *number != first[0]).collect();
        list.set(endpoints(&rest));
        settle().await;
        let second: Vec<u16> = used(&channel).await;
        let kept = first.iter().filter(|number| second.contains(number)).count();
        assert_eq!((second.len(), kept), (3, 2), "{first:?} {second:?}");
        all.extend(first);
    }
    // Each channel has a subset of its own: one server is in none of 20 with a probability of 0.7²⁰ = 0.0008.
    assert!(all.len() >= 8, "{all:?}");
}
