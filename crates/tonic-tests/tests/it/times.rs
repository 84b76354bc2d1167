//! Timeouts and concurrency limits, with a paused clock.

use std::time::Duration;

use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{ShopService, in_memory, order};
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};

/// Creates a client of a service that takes a second per call.
fn client(server: Server, endpoint: &Endpoint) -> ShopClient<Channel> {
    let shop = ShopService::on_buy(async |request: Request<_>| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Response::new(request.into_inner()))
    });
    ShopClient::new(in_memory({ server }.add_service(ShopServer::new(shop)), endpoint))
}

fn endpoint() -> Endpoint {
    Endpoint::from_static("http://shop.test")
}

fn request_with_timeout(timeout: Duration) -> Request<thalweg_tonic_tests::pb::Order> {
    let mut request = Request::new(order(""));
    request.set_timeout(timeout);
    request
}

fn check_expired(
    outcome: Result<Response<thalweg_tonic_tests::pb::Order>, Status>,
    started: Instant,
    millis: u64,
) {
    let status = outcome.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Cancelled, "Timeout expired"));
    assert_eq!(started.elapsed().as_millis() / 10, u128::from(millis / 10));
}

#[tokio::test(start_paused = true)]
async fn shorter_timeout_applies() {
    let (millis, seconds) = (Duration::from_millis, Duration::from_secs);
    for (server, of_endpoint, of_call, expected) in [
        (None, None, Some(millis(500)), 500),
        (Some(millis(100)), None, Some(seconds(36_000)), 100),
        (Some(seconds(100)), None, Some(millis(100)), 100),
        (Some(millis(300)), None, None, 300),
        (None, Some(millis(200)), None, 200),
        (None, Some(seconds(100)), Some(millis(700)), 700),
    ] {
        let server = server.map_or_else(Server::builder, |timeout| Server::builder().timeout(timeout));
        let endpoint = of_endpoint.map_or_else(endpoint, |timeout| endpoint().timeout(timeout));
        let mut client = client(server, &endpoint);
        let started = Instant::now();
        let request = of_call.map_or_else(|| Request::new(order("")), request_with_timeout);
        check_expired(client.buy(request).await, started, expected);
    }
    let mut client = client(Server::builder().timeout(seconds(2)), &endpoint().timeout(seconds(2)));
    client.buy(request_with_timeout(seconds(2))).await.unwrap();
}

/// Request headers that differ from earlier ones only in the timeout.
#[tokio::test(start_paused = true)]
async fn timeout_applies_after_calls_without_one() {
    let mut client = client(Server::builder(), &endpoint());
    for _ in 0..5 {
        client.buy(order("")).await.unwrap();
    }
    client.buy(request_with_timeout(Duration::from_secs(2))).await.unwrap();
    let started = Instant::now();
    check_expired(client.buy(request_with_timeout(Duration::from_millis(500))).await, started, 500);
    client.buy(order("")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn excess_call_is_shed() {
    let calls = async |server: Server, count: usize| {
        let client = client(server, &endpoint());
        let started = Instant::now();
        let calls: Vec<_> = (0..count)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    client.buy(order("")).await.map_or_else(|status| status.code(), |_| Code::Ok)
                })
            })
            .collect();
        let mut codes = Vec::new();
        for call in calls {
            codes.push(call.await.unwrap());
        }
        codes.sort_by_key(|code| i32::from(*code));
        (codes, started.elapsed().as_secs())
    };
    let concurrency_limited = || Server::builder().concurrency_limit_per_connection(1);
    let outcomes = vec![Code::Ok, Code::ResourceExhausted, Code::ResourceExhausted];
    assert_eq!(calls(concurrency_limited().load_shed(true), 3).await, (outcomes, 1));
    assert_eq!(calls(concurrency_limited().load_shed(true), 1).await, (vec![Code::Ok], 1));
    assert_eq!(calls(concurrency_limited(), 3).await, (vec![Code::Ok; 3], 3));
}
