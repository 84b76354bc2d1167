//! Tests `grpc.health.v1` with the generated client.

use std::collections::HashMap;

use thalweg::server::{Methods, Service};
use thalweg::{Code, Streaming};
use thalweg_services::health::pb::health_check_response::ServingStatus as WireStatus;
use thalweg_services::health::pb::health_client::HealthClient;
use thalweg_services::health::pb::{HealthCheckRequest, HealthCheckResponse, HealthListRequest};
use thalweg_services::health::{self, HealthReporter, ServingStatus};

use crate::support::{Running, soon};

/// A change of the statuses.
#[derive(Clone, Copy, Debug)]
enum Step {
    Nothing,
    Set(&'static str, ServingStatus),
    SetServing,
    SetNotServing,
    Clear(&'static str),
    ShutDown,
    Resume,
}

/// A service type.
struct Orders;

impl Service for Orders {
    const NAME: &'static str = "shop.Orders";
    fn register(self, _: &mut Methods<'_>) {}
}

fn apply(step: Step, health: &HealthReporter) {
    match step {
        Step::Nothing => {}
        Step::Set(service, status) => health.set_service_status(service, status),
        Step::SetServing => health.set_serving::<Orders>(),
        Step::SetNotServing => health.set_not_serving::<Orders>(),
        Step::Clear(service) => health.clear_service_status(service),
        Step::ShutDown => health.shut_down(),
        Step::Resume => health.resume(),
    }
}

fn request(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn next(watched: &mut Streaming<HealthCheckResponse>) -> Result<WireStatus, Code> {
    match soon(watched.message()).await {
        Ok(response) => Ok(response.expect("a watch ends with a status").status()),
        Err(status) => Err(status.code()),
    }
}

/// Checks `service` after each step by `Check`, `List`, the helper, and one open `Watch`.
async fn check(service: &str, steps: &[(Step, Option<ServingStatus>)]) {
    let reporter = HealthReporter::new();
    let server = Running::start(|server| server.add_service(reporter.service())).await;
    let client = HealthClient::new(server.channel.clone());
    let mut watched = client.watch(request(service)).await.expect("a watch").into_inner();
    let mut last_status =
        reporter.service_status(service).map_or(WireStatus::ServiceUnknown, WireStatus::from);
    assert_eq!(next(&mut watched).await, Ok(last_status), "at once");
    for (step, expected) in steps {
        apply(*step, &reporter);
        assert_eq!(reporter.service_status(service), *expected, "{step:?}");

        let checked = health::check(&server.channel, service).await;
        assert_eq!(checked.map_err(|status| status.code()), expected.ok_or(Code::NotFound), "{step:?}");

        let listed = client.list(HealthListRequest {}).await.expect("a list").into_inner().statuses;
        let listed: HashMap<_, _> = listed.iter().map(|(name, it)| (name.as_str(), it.status())).collect();
        assert_eq!(listed.get(service).copied(), expected.map(WireStatus::from), "{step:?}: {listed:?}");

        let expected = expected.map_or(WireStatus::ServiceUnknown, WireStatus::from);
        // Watchers are notified of changes only.
        if std::mem::replace(&mut last_status, expected) != expected {
            assert_eq!(next(&mut watched).await, Ok(expected), "{step:?}");
        }
    }
}

#[tokio::test]
async fn server_serves_from_the_start() {
    use ServingStatus::{NotServing, Serving, Unknown};
    check(
        "",
        &[
            (Step::Nothing, Some(Serving)),
            (Step::Set("", NotServing), Some(NotServing)),
            (Step::Set("", NotServing), Some(NotServing)),
            (Step::Set("", Unknown), Some(Unknown)),
            // Statuses of services are independent.
            (Step::SetServing, Some(Unknown)),
            (Step::Clear(""), None),
        ],
    )
    .await;
}

#[tokio::test]
async fn service_is_unknown_before_set_and_after_clear() {
    use ServingStatus::{NotServing, Serving};
    check(
        Orders::NAME,
        &[
            (Step::Nothing, None),
            (Step::Set("shop.Order", Serving), None),
            (Step::SetServing, Some(Serving)),
            (Step::SetNotServing, Some(NotServing)),
            (Step::Clear("shop.Order"), Some(NotServing)),
            (Step::Clear(Orders::NAME), None),
            (Step::Set(Orders::NAME, Serving), Some(Serving)),
        ],
    )
    .await;
}

#[tokio::test]
async fn shut_down_reports_not_serving_until_resume() {
    use ServingStatus::{NotServing, Serving};
    check(
        Orders::NAME,
        &[
            (Step::SetServing, Some(Serving)),
            (Step::ShutDown, Some(NotServing)),
            (Step::ShutDown, Some(NotServing)),
            (Step::Clear(Orders::NAME), None),
            (Step::SetServing, Some(NotServing)),
            (Step::Resume, Some(Serving)),
        ],
    )
    .await;
}

#[tokio::test]
async fn watchers_get_not_serving_and_end_on_graceful_shutdown() {
    let reporter = HealthReporter::new();
    reporter.set_serving::<Orders>();
    reporter.set_service_status("shop.Closed", ServingStatus::NotServing);
    let server = Running::start(|server| server.add_service(reporter.service())).await;
    let client = HealthClient::new(server.channel.clone());
    let mut watching = Vec::new();
    for (service, before, after) in [
        ("", WireStatus::Serving, Some(WireStatus::NotServing)),
        (Orders::NAME, WireStatus::Serving, Some(WireStatus::NotServing)),
        ("shop.Closed", WireStatus::NotServing, None),
        ("shop.Unknown", WireStatus::ServiceUnknown, None),
    ] {
        let mut watched = client.watch(request(service)).await.expect("a watch").into_inner();
        assert_eq!(next(&mut watched).await, Ok(before), "{service}");
        watching.push((service, watched, after));
    }
    let stopped = server.stop();
    for (service, mut watched, after) in watching {
        if let Some(after) = after {
            assert_eq!(next(&mut watched).await, Ok(after), "{service}");
        }
        assert_eq!(next(&mut watched).await, Err(Code::Unavailable), "{service}");
    }
    // The grace period is unlimited, so the server ends because no call is left.
    stopped.await;
    assert_eq!(
        reporter.service_status(""),
        Some(ServingStatus::Serving),
        "of another server of this reporter"
    );
}

#[tokio::test]
async fn shutdown_does_not_affect_another_server_of_the_same_reporter() {
    let reporter = HealthReporter::new();
    let [stopping, staying] = [
        Running::start(|server| server.add_service(reporter.service())).await,
        Running::start(|server| server.add_service(reporter.service())).await,
    ];
    stopping.stop().await;
    assert_eq!(health::check(&staying.channel, "").await.expect("it serves"), ServingStatus::Serving);
}

#[tokio::test]
async fn list_and_service_name_lengths_are_limited() {
    let reporter = HealthReporter::new();
    // Together with the whole server there are a hundred.
    (1..100).for_each(|number| reporter.set_service_status(format!("a.S{number}"), ServingStatus::Serving));
    let server = Running::start(|server| server.add_service(reporter.service())).await;
    let client = HealthClient::new(server.channel.clone());
    let listed = client.list(HealthListRequest {}).await.expect("a list").into_inner();
    assert_eq!(listed.statuses.len(), 100);

    reporter.set_serving::<Orders>();
    let refused = client.list(HealthListRequest {}).await.expect_err("one too many");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("101") && refused.message().contains("100"), "{refused:?}");

    let refused = client.check(request(&"x".repeat(5000))).await.expect_err("too long a name");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
}
