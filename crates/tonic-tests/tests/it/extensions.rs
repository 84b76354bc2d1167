//! Additions to tonic's interface: `EndpointExt`, `ChannelExt` and `ServerExt`.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use thalweg_tonic_tests::pb::Order;
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{ShopService, in_memory, order, serve, serve_with, within_a_minute};
use tokio::net::TcpListener;
use tonic::transport::channel::policy::PolicyConfig;
use tonic::transport::channel::{ChannelExt, ConnectivityState, EndpointExt, EndpointList, WaitForReady};
use tonic::transport::server::{Router, ServerExt, TcpIncoming};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};

fn router(shop: ShopService) -> Router {
    Server::builder().add_service(ShopServer::new(shop))
}

/// A service config for all methods.
fn config(settings: &str) -> String {
    format!(r#"{{ "methodConfig": [{{ "name": [{{ "service": "shop.Shop" }}], {settings} }}] }}"#)
}

/// Returns a port that nothing listens on.
async fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

fn endpoint_at(address: SocketAddr) -> Endpoint {
    Endpoint::from_shared(format!("http://{address}")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn timeouts_and_limits_of_a_service_config_apply() {
    let settings = r#""timeout": "2s", "maxRequestMessageBytes": 20, "maxResponseMessageBytes": 10"#;
    let endpoint = Endpoint::from_static("http://shop.test").service_config(config(settings));
    let slow = ShopService::on_buy(async |request: Request<Order>| {
        if request.get_ref().item == "slow" {
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        Ok(Response::new(request.into_inner()))
    });
    let mut client = ShopClient::new(in_memory(router(slow), &endpoint));
    client.buy(order("short")).await.unwrap();
    for (item, code) in [
        ("slow", Code::DeadlineExceeded),
        ("longer than ten", Code::ResourceExhausted),
        ("a request longer than twenty", Code::ResourceExhausted),
    ] {
        assert_eq!(client.buy(order(item)).await.unwrap_err().code(), code, "{item}");
    }
    let mut client = ShopClient::new(in_memory(router(ShopService::default()), &endpoint));
    let (sender, orders) = tokio::sync::mpsc::channel(1);
    let orders = tokio_stream::wrappers::ReceiverStream::new(orders);
    let mut responses = client.haggle(orders).await.unwrap().into_inner();
    sender.send(order("short")).await.unwrap();
    assert_eq!(responses.message().await.unwrap(), Some(order("short")));
    assert_eq!(responses.message().await.unwrap_err().code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn calls_are_retried_by_a_service_config() {
    let policy = r#""retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
        "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"] }"#;
    for (retries, expected) in [(true, 3), (false, 1)] {
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&attempts);
        let shop = ShopService::on_buy(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Err(Status::unavailable("try again")) }
        });
        let server = serve(router(shop)).await;
        let channel =
            server.endpoint().service_config(config(policy)).retries(retries).connect().await.unwrap();
        ShopClient::new(channel).buy(order("")).await.unwrap_err();
        assert_eq!(attempts.load(Ordering::SeqCst), expected, "{retries}");
    }
}

#[tokio::test]
async fn invalid_service_config_is_reported() {
    let endpoint = Endpoint::from_static("http://[::1]:1").service_config(config(r#""timeout": "soon""#));
    let error = format!("{:?}", endpoint.connect().await.unwrap_err());
    assert!(error.contains("timeout"), "{error}");
    let channel = endpoint.connect_lazy();
    assert_eq!(channel.state(), ConnectivityState::TransientFailure);
    assert!(format!("{:?}", channel.connected().await.unwrap_err()).contains("timeout"));
}

#[tokio::test]
async fn resolver_and_policy_spread_calls() {
    let shop = |name: &'static str| ShopService::on_buy(async move |_| Ok(Response::new(order(name))));
    let (first, second) = (serve(router(shop("first"))).await, serve(router(shop("second"))).await);
    let servers = EndpointList::new([first.address, second.address]);
    let channel = Endpoint::from_static("http://shop.test")
        .resolver(servers.clone())
        .load_balancing(PolicyConfig::RoundRobin)
        .connect_lazy();
    let mut client = ShopClient::new(channel);
    let mut take = async |calls: usize| {
        let mut names = Vec::new();
        for _ in 0..calls {
            names.push(client.buy(order("")).await.unwrap().into_inner().item);
        }
        names.sort();
        names.dedup();
        names
    };
    // The other server may be connected later.
    while within_a_minute(take(2)).await.len() < 2 {}
    servers.set([second.address]);
    while within_a_minute(take(4)).await != ["second"] {}
    first.stop().await;
    assert_eq!(take(10).await, ["second"]);
}

#[tokio::test]
async fn channel_reports_its_state_and_waits_for_a_server() {
    let address = free_address().await;
    let hour = Duration::from_secs(3600);
    let channel = endpoint_at(address).connect_backoff(hour, hour).connect_lazy();
    let mut client = ShopClient::new(channel.clone());
    assert_eq!(channel.state(), ConnectivityState::Idle);
    assert!(channel.connected().await.is_err());
    assert_eq!(channel.state(), ConnectivityState::TransientFailure);
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
    let mut request = Request::new(order("patient"));
    request.extensions_mut().insert(WaitForReady(true));
    let mut patient = client.clone();
    let waiting = tokio::spawn(async move { patient.buy(request).await });
    let listener = TcpListener::bind(address).await.unwrap();
    let server = serve_with(address, async move |stopped| {
        router(ShopService::default())
            .serve_with_incoming_shutdown(TcpIncoming::from(listener), stopped)
            .await
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished(), "the backoff is an hour");
    channel.reset_backoff();
    assert_eq!(within_a_minute(waiting).await.unwrap().unwrap().into_inner(), order("patient"));
    assert_eq!(channel.state(), ConnectivityState::Ready);
    drop((channel, client));
    server.stop().await;
}

#[tokio::test]
async fn request_overrides_the_channel_in_waiting_for_a_server() {
    let endpoint = endpoint_at(free_address().await).wait_for_ready(true);
    let mut client = ShopClient::new(endpoint.connect_lazy());
    let patient = tokio::time::timeout(Duration::from_millis(100), client.buy(order("")));
    assert!(patient.await.is_err(), "it waits");
    let mut request = Request::new(order(""));
    request.extensions_mut().insert(WaitForReady(false));
    assert_eq!(within_a_minute(client.buy(request)).await.unwrap_err().code(), Code::Unavailable);
}

/// Returns whether the channel takes another call.
async fn is_ready(channel: &mut Channel) -> bool {
    poll_fn(|cx| Poll::Ready(channel.poll_ready(cx).is_ready())).await
}

#[tokio::test(start_paused = true)]
async fn channel_is_not_ready_while_many_calls_wait() {
    let slow = ShopService::on_buy(async |request: Request<Order>| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Response::new(request.into_inner()))
    });
    let router = Server::builder().max_concurrent_streams(1).add_service(ShopServer::new(slow));
    let endpoint = Endpoint::from_static("http://shop.test").lanes(1).buffer_size(4);
    let mut channel = in_memory(router, &endpoint);
    let client = ShopClient::new(channel.clone());
    let started = tokio::time::Instant::now();
    // One is in flight, and four wait.
    let mut calls = Vec::new();
    for expected in [true, true, true, true, true, false, false] {
        assert_eq!(is_ready(&mut channel).await, expected, "with {} calls", calls.len());
        if expected {
            let mut client = client.clone();
            calls.push(tokio::spawn(async move { client.buy(order("")).await }));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    within_a_minute(channel.ready()).await.unwrap();
    // Blocked callers are woken when two calls wait.
    assert_eq!(started.elapsed().as_secs(), 2);
    for call in calls {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn rate_limits_apply_to_the_endpoints_of_a_list() {
    let servers = [serve(router(ShopService::default())).await, serve(router(ShopService::default())).await];
    let limited = servers.each_ref().map(|server| server.endpoint().rate_limit(3, Duration::from_secs(3600)));
    let mut client = ShopClient::new(Channel::balance_list(limited.into_iter()));
    let mut made = 0;
    // The second endpoint may be connected later.
    while made < 6 {
        let call = tokio::time::timeout(Duration::from_secs(5), client.buy(order(""))).await;
        call.expect("a call is left").unwrap();
        made += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seventh = tokio::time::timeout(Duration::from_millis(200), client.buy(order(""))).await;
    assert!(seventh.is_err(), "all calls of this hour were made");
}

#[tokio::test]
async fn errors_of_balanced_channels_name_the_endpoints() {
    let (first, second) = (free_address().await, free_address().await);
    let channel = Channel::balance_list([endpoint_at(first), endpoint_at(second)].into_iter());
    let error = ShopClient::new(channel).buy(order("")).await.unwrap_err();
    assert!(error.message().contains(&format!("http://{first}, http://{second}")), "{error}");
    let (channel, changes) = Channel::balance_channel(1);
    changes.send(tonic::transport::channel::Change::Insert(1, endpoint_at(first))).await.unwrap();
    let error = ShopClient::new(channel).buy(order("")).await.unwrap_err();
    assert!(error.message().contains("balanced channel"), "{error}");
    assert!(!error.message().contains("balanced:80"), "{error}");
}

#[tokio::test]
async fn calls_are_cancelled_after_the_shutdown_grace() {
    let endless = ShopService::on_buy(async |_| std::future::pending().await);
    let mut server = Server::builder().shutdown_grace(Duration::from_millis(50));
    let server = serve(server.add_service(ShopServer::new(endless))).await;
    let mut client = ShopClient::new(server.channel().await);
    let call = tokio::spawn(async move { client.buy(order("")).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    within_a_minute(server.stop()).await;
    within_a_minute(call).await.unwrap().unwrap_err();
}
