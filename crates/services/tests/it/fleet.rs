//! Tests a channel over several servers that report their health and load by the services.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thalweg::channel::ChannelBuilder;
use thalweg::channel::EndpointList;
use thalweg::channel::policy::{PolicyConfig, WeightedRoundRobinConfig};
use thalweg::server::{Methods, ServerBuilder, Service};
use thalweg::{CallOptions, Channel, Method, Raw, Request, Response, ServiceOptions, Status};
use thalweg_services::health::{HealthReporter, ServingStatus};
use thalweg_services::orca::ServerMetrics;

use crate::support::{Running, soon};

static COUNT: Method = Method::new("/test.Counted/Count");

/// Counts its calls.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicUsize>);

impl Service for Counted {
    const NAME: &'static str = "test.Counted";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("Count", &Arc::new(self), &ServiceOptions::default(), count);
    }
}

async fn count(counted: Arc<Counted>, _: Request<Raw>) -> Result<Response<Raw>, Status> {
    counted.0.fetch_add(1, Ordering::Relaxed);
    Ok(Response::new(Raw("".into())))
}

impl Counted {
    fn calls(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Starts a server for each of `services`, and returns a channel over them.
async fn fleet<const N: usize>(
    services: &[Counted; N],
    add: impl Fn(usize, ServerBuilder) -> ServerBuilder,
    set: impl FnOnce(ChannelBuilder) -> ChannelBuilder,
) -> (Vec<Running>, Channel) {
    let mut servers = Vec::new();
    for (at, service) in services.iter().enumerate() {
        servers.push(Running::start(|server| add(at, server).add_service(service.clone())).await);
    }
    let addresses: Vec<SocketAddr> =
        servers.iter().map(|server| server.address.parse().expect("an address")).collect();
    let channel = Channel::builder("fleet").resolver(EndpointList::new(addresses));
    let channel = set(channel).connect().await.expect("they listen");
    (servers, channel)
}

async fn call(channel: &Channel) {
    let request = Request::new(Raw("".into()));
    soon(channel.unary::<Raw, Raw>(&COUNT, request, &CallOptions::default())).await.expect("no call fails");
}

/// Calls until `condition`; no call may fail.
async fn call_until(channel: &Channel, condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            call(channel).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn calls_leave_a_server_that_does_not_serve_and_come_back() {
    let services: [Counted; 2] = Default::default();
    let health = [(); 2].map(|()| HealthReporter::new());
    for health in &health {
        health.set_serving::<Counted>();
    }
    let config = r#"{
        "loadBalancingConfig": [{ "round_robin": {} }],
        "healthCheckConfig": { "serviceName": "test.Counted" }
    }"#;
    let (servers, channel) = fleet(
        &services,
        |at, server| server.add_service(health[at].service()),
        |channel| channel.service_config(config),
    )
    .await;
    let moved = || {
        let before = services.each_ref().map(Counted::calls);
        move |services: &[Counted; 2]| [services[0].calls() - before[0], services[1].calls() - before[1]]
    };
    call_until(&channel, || services.iter().all(|service| service.calls() > 10)).await;
    for _ in 0..3 {
        health[0].set_service_status("test.Counted", ServingStatus::NotServing);
        // Calls that are under way when the status changes still arrive.
        let mut since = moved();
        let mut quiet = 0;
        soon(async {
            while quiet < 50 {
                call(&channel).await;
                quiet = if since(&services)[0] == 0 { quiet + 1 } else { 0 };
                since = moved();
            }
        })
        .await;
        let since = moved();
        call_until(&channel, || since(&services)[1] >= 100).await;
        assert_eq!(since(&services)[0], 0);
        health[0].set_serving::<Counted>();
        call_until(&channel, || since(&services)[0] >= 20).await;
    }
    for server in servers {
        soon(server.stop()).await;
    }
}

/// Returns the percentage of each server in 3000 calls.
async fn percentages(channel: &Channel, services: &[Counted; 3]) -> [f64; 3] {
    let before = services.each_ref().map(Counted::calls);
    for _ in 0..3000 {
        call(channel).await;
    }
    std::array::from_fn(|at| (services[at].calls() - before[at]) as f64 / 30.0)
}

/// Checks that calls follow utilizations of 0.25, 0.5 and 1, which are weights of 4, 2 and 1.
async fn check_weights(is_out_of_band: bool) {
    let services: [Counted; 3] = Default::default();
    let metrics = [0.25, 0.5, 1.0].map(|utilization| {
        let metrics = ServerMetrics::new();
        metrics.set_cpu_utilization(utilization);
        metrics.set_qps(100.0);
        metrics
    });
    let weighted = WeightedRoundRobinConfig::default()
        .enable_oob_load_report(is_out_of_band)
        .blackout_period(Duration::ZERO)
        .weight_update_period(Duration::from_millis(100));
    let (servers, channel) = fleet(
        &services,
        |at, server| {
            if is_out_of_band {
                server.add_service(metrics[at].service())
            } else {
                server.interceptor(metrics[at].per_call())
            }
        },
        |channel| channel.load_balancing(PolicyConfig::WeightedRoundRobin(weighted)),
    )
    .await;
    let mut found = [0.0; 3];
    let is_near = |found: [f64; 3]| {
        found.iter().zip([57.1, 28.6, 14.3]).all(|(found, expected)| (found - expected).abs() < 1.0)
    };
    // Reports need some time to arrive, and to be used.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        found = percentages(&channel, &services).await;
        if is_near(found) {
            break;
        }
    }
    assert!(is_near(found), "{found:?} %");
    for server in servers {
        soon(server.stop()).await;
    }
}

#[tokio::test]
async fn calls_follow_the_load_in_trailers() {
    check_weights(false).await;
}

#[tokio::test]
async fn calls_follow_the_load_out_of_band() {
    check_weights(true).await;
}
