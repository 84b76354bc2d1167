//! Tests `grpc.health.v1` with the generated client.

use std::collections::HashMap;

use thalweg::server::{Methods, Service};
use thalweg::{Code, Streaming};
use thalweg_services::health::pb::health_check_response::ServingStatus as Told;
use thalweg_services::health::pb::health_client::HealthClient;
use thalweg_services::health::pb::{HealthCheckRequest, HealthCheckResponse, HealthListRequest};
use thalweg_services::health::{self, HealthReporter, ServingStatus};

use crate::support::{Running, soon};

/// A change of the statuses.
#[derive(Clone, Copy, Debug)]
enum Step {
    Nothing,
    Set(&'static str, ServingStatus),
    Serves,
    ServesNot,
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

fn take(step: Step, health: &HealthReporter) {
    match step {
        Step::Nothing => {}
        Step::Set(service, status) => health.set_service_status(service, status),
        Step::Serves => health.set_serving::<Orders>(),
        Step::ServesNot => health.set_not_serving::<Orders>(),
        Step::Clear(service) => health.clear_service_status(service),
        Step::ShutDown => health.shut_down(),
        Step::Resume => health.resume(),
    }
}

fn asked(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn next(watched: &mut Streaming<HealthCheckResponse>) -> Result<Told, Code> {
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
    let mut watched = client.watch(asked(service)).await.expect("a watch").into_inner();
    let mut told = reporter.service_status(service).map_or(Told::ServiceUnknown, Told::from);
    assert_eq!(next(&mut watched).await, Ok(told), "at once");
    for (step, expected) in steps {
        take(*step, &reporter);
        assert_eq!(reporter.service_status(service), *expected, "{step:?}");

        let checked = health::check(&server.channel, service).await;
        assert_eq!(checked.map_err(|status| status.code()), expected.ok_or(Code::NotFound), "{step:?}");

        let listed = client.list(HealthListRequest {}).await.expect("a list").into_inner().statuses;
        let listed: HashMap<_, _> = listed.iter().map(|(name, it)| (name.as_str(), it.status())).collect();
        assert_eq!(listed.get(service).copied(), expected.map(Told::from), "{step:?}: {listed:?}");

        let expected = expected.map_or(Told::ServiceUnknown, Told::from);
        // Watchers are notified of changes only.
        if std::mem::replace(&mut told, expected) != expected {
            assert_eq!(next(&mut watched).await, Ok(expected), "{step:?}");
        }
    }
}

#[tokio::test]
async fn the_server_as_a_whole_serves_from_the_start() {
    use ServingStatus::{NotServing, Serving, Unknown};
    check(
        "",
        &[
            (Step::Nothing, Some(Serving)),
            (Step::Set("", NotServing), Some(NotServing)),
            (Step::Set("", NotServing), Some(NotServing)),
            (Step::Set("", Unknown), Some(Unknown)),
            // Statuses of services are independent.
            (Step::Serves, Some(Unknown)),
            (Step::Clear(""), None),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_service_is_unknown_until_it_is_set_and_after_it_was_cleared() {
    use ServingStatus::{NotServing, Serving};
    check(
        Orders::NAME,
        &[
            (Step::Nothing, None),
            (Step::Set("shop.Order", Serving), None),
            (Step::Serves, Some(Serving)),
            (Step::ServesNot, Some(NotServing)),
            (Step::Clear("shop.Order"), Some(NotServing)),
            (Step::Clear(Orders::NAME), None),
            (Step::Set(Orders::NAME, Serving), Some(Serving)),
        ],
    )
    .await;
}

#[tokio::test]
async fn nothing_serves_between_shutting_down_and_resuming() {
    use ServingStatus::{NotServing, Serving};
    check(
        Orders::NAME,
        &[
            (Step::Serves, Some(Serving)),
            (Step::ShutDown, Some(NotServing)),
            (Step::ShutDown, Some(NotServing)),
            (Step::Clear(Orders::NAME), None),
            (Step::Serves, Some(NotServing)),
            (Step::Resume, Some(Serving)),
        ],
    )
    .await;
}

#[tokio::test]
async fn watchers_are_told_of_a_graceful_stop_and_do_not_hold_it_up() {
    let reporter = HealthReporter::new();
    reporter.set_serving::<Orders>();
    reporter.set_service_status("shop.Closed", ServingStatus::NotServing);
    let server = Running::start(|server| server.add_service(reporter.service())).await;
    let client = HealthClient::new(server.channel.clone());
    let mut watching = Vec::new();
    for (service, before, after) in [
        ("", Told::Serving, Some(Told::NotServing)),
        (Orders::NAME, Told::Serving, Some(Told::NotServing)),
        ("shop.Closed", Told::NotServing, None),
        ("shop.Unknown", Told::ServiceUnknown, None),
    ] {
        let mut watched = client.watch(asked(service)).await.expect("a watch").into_inner();
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
async fn a_server_that_stops_says_nothing_of_another_with_the_same_reporter() {
    let reporter = HealthReporter::new();
    let [stopping, staying] = [
        Running::start(|server| server.add_service(reporter.service())).await,
        Running::start(|server| server.add_service(reporter.service())).await,
    ];
    stopping.stop().await;
    assert_eq!(health::check(&staying.channel, "").await.expect("it serves"), ServingStatus::Serving);
}

#[tokio::test]
async fn what_is_asked_for_has_bounds() {
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

    let refused = client.check(asked(&"x".repeat(5000))).await.expect_err("too long a name");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
}
