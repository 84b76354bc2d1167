//! Errors of calls: they name the service, the reason, and what to do.

use std::net::TcpListener;
use std::time::Duration;

use thalweg::channel::Resolver;
use thalweg::channel::policy::PolicyConfig;
use thalweg::{CallOptions, Channel, Code, Method, Raw, Request, Response, Status};
use thalweg_kubernetes::{ApiServer, KubernetesResolver};

use crate::api::{Api, slice};

static SAY: Method = Method::new("/test.Echo/Echo");

async fn call(channel: &Channel) -> Result<Response<Raw>, Status> {
    channel.unary(&SAY, Request::new(Raw("".into())), &CallOptions::default()).await
}

fn channel(resolver: KubernetesResolver, policy: PolicyConfig) -> Channel {
    let builder = Channel::builder("orders.shop").resolver(resolver).load_balancing(policy);
    builder.connect_lazy().expect("a valid channel")
}

/// Checks the error of a call, without and with a balancing policy.
async fn check(api: &mut Api, respond: impl Fn(crate::api::Asked), expected: &str) {
    for policy in [PolicyConfig::RoundRobin, PolicyConfig::default()] {
        let channel = channel(api.resolver("orders.shop:grpc"), policy);
        let serve = async {
            respond(api.request().await);
        };
        let ((), outcome) = tokio::join!(serve, call(&channel));
        let status = outcome.expect_err("there is no server");
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains(expected), "{}", status.message());
        drop(channel);
        // Requests of the dropped resolver.
        while api.is_asked_within(Duration::from_millis(50)).await {}
    }
}

#[tokio::test]
async fn a_missing_role_is_named() {
    let mut api = Api::start().await;
    let message = "endpointslices.discovery.k8s.io is forbidden: User system:serviceaccount:shop:default cannot \
                   list resource endpointslices";
    let expected = format!(
        "failed to list the EndpointSlices of service `orders` in namespace `shop`: HTTP 403: {message}; let a Role \
         allow `get`, `list` and `watch` of `endpointslices` in the API group `discovery.k8s.io`, and bind it to the \
         service account"
    );
    check(&mut api, |asked| asked.fail(403, message), &expected).await;
}

#[tokio::test]
async fn other_failures_are_named() {
    let mut api = Api::start().await;
    check(&mut api, |asked| asked.respond(502, "<html>\nbad gateway"), "HTTP 502: <html>\\nbad gateway")
        .await;
    check(&mut api, |asked| asked.respond(200, "{"), "invalid response of the API server: EOF while parsing")
        .await;
}

#[tokio::test]
async fn an_empty_list_is_explained() {
    let mut api = Api::start().await;
    let expected = "service `orders` in namespace `shop`: it has no EndpointSlices; check its name";
    check(&mut api, |asked| asked.list("5", &[]), expected).await;
    let no_pods = slice("a", "4", &[]);
    check(
        &mut api,
        |asked| asked.list("5", std::slice::from_ref(&no_pods)),
        "namespace `shop`: it has no pods",
    )
    .await;
}

#[tokio::test]
async fn an_unreachable_api_server_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let settings = ApiServer::new(format!("http://{free}"));
    let resolver = KubernetesResolver::with_api_server("orders.shop:grpc", settings).expect("valid");
    let error = resolver.resolve().await.expect_err("nothing listens").to_string();
    assert!(error.contains("service `orders` in namespace `shop`"), "{error}");
    assert!(error.contains(&free.to_string()) && error.contains("refused"), "{error}");
}

#[tokio::test]
async fn a_silent_api_server_is_named() {
    let mut api = Api::start().await;
    let settings = api.settings().timeout(Duration::from_millis(500));
    let resolver = KubernetesResolver::with_api_server("orders.shop:grpc", settings).expect("valid");
    let (_request, outcome) = tokio::join!(api.request(), resolver.resolve());
    let error = outcome.expect_err("no response").to_string();
    assert!(error.ends_with("namespace `shop`: no response of the API server within 500ms"), "{error}");
}

#[test]
fn settings_are_checked() {
    let check = |target: &str, api: ApiServer, expected: &str| {
        let error = KubernetesResolver::with_api_server(target, api).expect_err(target).to_string();
        assert!(error.contains(expected), "{error}");
    };
    let api = || ApiServer::new("https://10.0.0.1");
    check(
        "orders",
        api(),
        "the service `orders` has no namespace; use orders.NAMESPACE, or ApiServer::namespace",
    );
    check(
        "orders.shop:x y",
        api(),
        "invalid target `orders.shop:x y`: the port is invalid; use kubernetes:///",
    );
    check("orders.shop", ApiServer::new("10.0.0.1"), "invalid URL `10.0.0.1` of the API server");
    assert!(KubernetesResolver::with_api_server("orders", api().namespace("shop")).is_ok());
}
