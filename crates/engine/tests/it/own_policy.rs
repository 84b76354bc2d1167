//! Balancing policies of the application, with attributes, weights and localities from its resolver.

use std::sync::Arc;
use std::time::Instant;

use thalweg_engine::policy::{
    Decision, EndpointView, Pick, PickArgs, Picker, Policy, PolicyConfig, PolicyFactory,
};
use thalweg_engine::service_config::PolicyRegistry;
use thalweg_engine::{Code, ConnectivityState, Endpoint, EndpointList, Locality};

use crate::balance::{Network, address, calls};
use crate::support::{Echo, echo, raw, soon};

/// Prefers ready servers of one zone. Servers of the same zone take calls in proportion to their weights.
#[derive(Clone, Debug)]
struct Nearest {
    zone: String,
}

impl PolicyFactory for Nearest {
    fn name(&self) -> &'static str {
        "nearest"
    }

    fn build(&self, _seed: u64) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// An attribute.
#[derive(Debug)]
struct IsDrained;

impl Policy for Nearest {
    fn name(&self) -> &'static str {
        "nearest"
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], _now: Instant) -> Decision {
        Decision::connecting_all(endpoints, |ready| {
            let is_used = |&at: &usize| endpoints[at].endpoint.get::<IsDrained>().is_none();
            let is_near = |&at: &usize| endpoints[at].endpoint.locality.zone == self.zone;
            let used: Vec<usize> = ready.into_iter().filter(is_used).collect();
            let near: Vec<usize> = used.iter().copied().filter(is_near).collect();
            let chosen = if near.is_empty() { used } else { near };
            let shares = |at: usize| std::iter::repeat_n(at, endpoints[at].endpoint.weight as usize);
            Arc::new(InTurn(chosen.into_iter().flat_map(shares).collect()))
        })
    }
}

#[derive(Debug)]
struct InTurn(Vec<usize>);

impl Picker for InTurn {
    fn pick(&self, call: &PickArgs<'_>) -> Pick {
        match self.0.as_slice() {
            [] => Pick::Fail("all servers are drained".into()),
            positions => Pick::Endpoint(positions[(call.turn % positions.len() as u64) as usize]),
        }
    }
}

fn server(number: u16, zone: &str) -> Endpoint {
    Endpoint::from(address(number)).locality(Locality::new("", zone, ""))
}

fn nearest(zone: &str) -> PolicyConfig {
    PolicyConfig::Custom(Arc::new(Nearest { zone: zone.to_owned() }))
}

#[tokio::test(start_paused = true)]
async fn own_policy_balances_by_zone_weight_and_attribute() {
    let network = Network::default();
    let services = [1, 2, 3].map(|number| network.start(number));
    let started = || services.each_ref().map(Echo::started);
    let servers = EndpointList::new([server(1, "a"), server(2, "b"), server(3, "b").weight(3)]);
    let channel = network.channel(servers.clone(), |config| config.load_balancing = nearest("b"));
    soon(channel.connect()).await.expect("a server");
    crate::balance::settle().await;
    calls(&channel, 40).await;
    assert_eq!(started(), [0, 10, 30]);
    servers.set([server(1, "a"), server(2, "b").attribute(IsDrained), server(3, "b").attribute(IsDrained)]);
    crate::balance::settle().await;
    calls(&channel, 5).await;
    assert_eq!(started(), [5, 10, 30]);
    servers.set([server(1, "a").attribute(IsDrained)]);
    crate::balance::settle().await;
    let error = soon(echo(&channel, raw("x"))).await.expect_err("no server");
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().starts_with("nearest: all servers are drained [/test.Echo/Echo to "), "{error}");
    assert_eq!(channel.state(), ConnectivityState::Ready);
}

#[tokio::test(start_paused = true)]
async fn service_config_selects_an_own_policy() {
    let network = Network::default();
    let services = [1, 2].map(|number| network.start(number));
    let servers = EndpointList::new([server(1, "a"), server(2, "b")]);
    let channel = network.channel(servers, |config| {
        config.policies = PolicyRegistry::default().register("nearest", |config| {
            let zone = config["zone"].as_str().ok_or("zone is missing")?;
            Ok(Arc::new(Nearest { zone: zone.to_owned() }))
        });
        config.service_config = Some(r#"{ "loadBalancingConfig": [{ "nearest": { "zone": "b" } }] }"#.into());
    });
    soon(channel.connect()).await.expect("a server");
    crate::balance::settle().await;
    calls(&channel, 4).await;
    assert_eq!(services.each_ref().map(Echo::started), [0, 4]);
}
