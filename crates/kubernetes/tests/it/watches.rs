//! Lists and watches: what is asked for, and which servers follow.

use std::net::SocketAddr;
use std::time::Duration;

use crate::api::{Api, Seen, Watch, addresses, event, slice, status};

const TARGET: &str = "kubernetes:///orders.shop:grpc";
const ONE: &str = "10.0.0.1:50051";
const TWO: &str = "10.0.0.2:50051";
const THREE: &str = "10.0.0.3:50051";

fn pods(texts: &[&str]) -> Vec<SocketAddr> {
    addresses(texts)
}

/// Starts a watch of one pod.
async fn start(api: &mut Api, seen: &mut Seen<'_>) -> Watch {
    let slices = [slice("a", "4", &pods(&[ONE]))];
    let (watch, ()) = tokio::join!(api.list_and_watch("5", &slices), seen.check(&[ONE]));
    watch
}

#[tokio::test]
async fn a_service_is_listed_and_watched() {
    let mut api = Api::start().await;
    let resolver = api.resolver(TARGET);
    let mut seen = Seen::new(&resolver);
    let served = async {
        let list = api.request().await;
        assert_eq!(list.path, "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices");
        assert_eq!(list.query, "labelSelector=kubernetes.io%2Fservice-name%3Dorders&resourceVersion=0");
        assert_eq!(list.authorization.as_deref(), Some("Bearer secret"));
        list.list("5", &[slice("a", "4", &pods(&[ONE]))]);
        let watch = api.request().await;
        assert!(
            watch.query.starts_with(
                "labelSelector=kubernetes.io%2Fservice-name%3Dorders&watch=true&allowWatchBookmarks=true\
                 &resourceVersion=5&timeoutSeconds="
            ),
            "{}",
            watch.query
        );
        let seconds = watch.query.rsplit('=').next().and_then(|seconds| seconds.parse::<u32>().ok());
        assert!(seconds.is_some_and(|seconds| (300..=600).contains(&seconds)), "{}", watch.query);
        watch.watch()
    };
    let (mut watch, ()) = tokio::join!(served, seen.check(&[ONE]));

    watch.event("ADDED", &slice("b", "6", &pods(&[TWO, THREE]))).await;
    seen.next(&[ONE, TWO, THREE]).await;
    watch.event("MODIFIED", &slice("b", "7", &pods(&[TWO]))).await;
    seen.next(&[ONE, TWO]).await;
    watch.event("DELETED", &slice("a", "8", &pods(&[ONE]))).await;
    seen.next(&[TWO]).await;
    watch.event("MODIFIED", &slice("b", "9", &[])).await;
    seen.next(&[]).await;
}

#[tokio::test]
async fn a_watch_continues_from_the_last_version() {
    let mut api = Api::start().await;
    let resolver = api.resolver(TARGET);
    let mut seen = Seen::new(&resolver);
    let mut watch = start(&mut api, &mut seen).await;
    watch.event("MODIFIED", &slice("a", "6", &pods(&[TWO]))).await;
    seen.next(&[TWO]).await;
    // The API server ends the watch, as it does after some minutes.
    drop(watch);
    let mut watch = api.watch("6").await;
    watch.send(event("BOOKMARK", r#"{"metadata": {"resourceVersion": "70"}}"#) + "\n").await;
    watch.send("\n").await;
    drop(watch);
    let mut watch = api.watch("70").await;
    watch.event("MODIFIED", &slice("a", "71", &pods(&[THREE]))).await;
    seen.next(&[THREE]).await;
}

#[tokio::test]
async fn an_event_that_is_cut_off_comes_again() {
    let mut api = Api::start().await;
    let resolver = api.resolver(TARGET);
    let mut seen = Seen::new(&resolver);
    let mut watch = start(&mut api, &mut seen).await;
    let line = event("MODIFIED", &slice("a", "6", &pods(&[TWO]))) + "\n";
    let (start, end) = line.split_at(line.len() / 2);
    // A piece of a line is no event yet.
    watch.send(start.to_owned()).await;
    watch.send(end.to_owned() + start).await;
    seen.next(&[TWO]).await;
    watch.abort();
    // Neither does the piece become part of the next watch.
    let mut watch = api.watch("6").await;
    watch.event("MODIFIED", &slice("a", "7", &pods(&[ONE, TWO]))).await;
    seen.next(&[ONE, TWO]).await;
    watch.send(start.to_owned()).await;
    drop(watch);
    let mut watch = api.watch("7").await;
    watch.event("MODIFIED", &slice("a", "8", &pods(&[THREE]))).await;
    seen.next(&[THREE]).await;
}

#[tokio::test]
async fn a_forgotten_version_is_listed_again() {
    let mut api = Api::start().await;
    let resolver = api.resolver(TARGET);
    let mut seen = Seen::new(&resolver);
    let mut watch = start(&mut api, &mut seen).await;
    watch.event("ERROR", &status(410, "too old resource version: 5 (9)")).await;
    let list = api.request().await;
    assert!(!list.query.contains("resourceVersion"), "the latest state: {}", list.query);
    // Known servers stay until then.
    seen.check(&[ONE]).await;
    list.list("9", &[slice("b", "8", &pods(&[TWO]))]);
    seen.next(&[TWO]).await;
    let watch = api.request().await;
    assert!(watch.query.contains("resourceVersion=9&"), "{}", watch.query);
    // It may also be the response to a watch.
    watch.fail(410, "Expired");
    let list = api.request().await;
    assert!(!list.query.contains("resourceVersion"), "the latest state: {}", list.query);
    list.list("12", &[slice("b", "11", &pods(&[THREE]))]);
    seen.next(&[THREE]).await;
    api.watch("12").await;
}

#[tokio::test]
async fn known_servers_stay_while_the_api_server_fails() {
    let mut api = Api::start().await;
    let resolver = api.resolver(TARGET);
    let mut seen = Seen::new(&resolver);
    let watch = start(&mut api, &mut seen).await;
    drop(watch);
    for _ in 0..3 {
        // After an error of the API server, the version may be of no use.
        api.request().await.fail(500, "etcd is down");
        seen.check(&[ONE]).await;
    }
    let list = api.request().await;
    list.respond(200, "no JSON");
    seen.check(&[ONE]).await;
    let mut watch = api.list_and_watch("9", &[slice("a", "8", &pods(&[TWO]))]).await;
    seen.next(&[TWO]).await;
    watch.send("{\"type\": 1}\n").await;
    api.list_and_watch("10", &[slice("a", "9", &pods(&[THREE]))]).await;
    seen.next(&[THREE]).await;
}

#[tokio::test]
async fn a_lost_connection_is_made_again() {
    let mut api = Api::start().await;
    let resolver = api.resolver(TARGET);
    let mut seen = Seen::new(&resolver);
    let served = async {
        let list = api.request().await;
        let connection = list.connection;
        list.list("5", &[slice("a", "4", &pods(&[ONE]))]);
        let watch = api.request().await;
        assert_eq!(watch.connection, connection, "one connection is enough");
        (connection, watch.watch())
    };
    let ((first, watch), ()) = tokio::join!(served, seen.check(&[ONE]));
    watch.abort();
    let again = api.request().await;
    assert_ne!(again.connection, first);
    assert!(again.query.contains("resourceVersion=5&"), "{}", again.query);
}

#[tokio::test]
async fn a_changed_token_is_used_for_the_next_request() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "first\n").expect("a file");
    let mut api = Api::start().await;
    let settings = api.settings().token_file(file.path());
    let resolver = thalweg_kubernetes::KubernetesResolver::with_api_server(TARGET, settings).expect("valid");
    let mut seen = Seen::new(&resolver);
    let served = async {
        let list = api.request().await;
        assert_eq!(list.authorization.as_deref(), Some("Bearer first"));
        std::fs::write(file.path(), "second\n").expect("a file");
        list.fail(401, "Unauthorized");
        let list = api.request().await;
        assert_eq!(list.authorization.as_deref(), Some("Bearer second"));
        list.list("5", &[slice("a", "4", &pods(&[ONE]))]);
    };
    // The first failure is reported.
    let ((), failed) = tokio::join!(served, thalweg::channel::Resolver::resolve(&resolver));
    assert!(failed.is_err(), "{failed:?}");
    seen.next(&[ONE]).await;
}

#[tokio::test]
async fn the_watch_ends_with_the_last_clone() {
    let mut api = Api::start().await;
    let resolver = api.resolver(TARGET);
    assert!(!api.is_asked_within(Duration::from_millis(50)).await, "nothing is asked before it is needed");
    let clone = resolver.clone();
    let mut seen = Seen::new(&resolver);
    let mut watch = start(&mut api, &mut seen).await;
    drop(resolver);
    let mut seen = Seen::new(&clone);
    watch.event("MODIFIED", &slice("a", "6", &pods(&[TWO]))).await;
    while seen.version() < 2 {
        seen.wait().await;
    }
    seen.check(&[TWO]).await;
    drop(clone);
    watch.closed().await;
}

#[test]
fn the_watch_continues_on_another_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let servers = runtime();
    let mut api = servers.block_on(Api::start());
    let resolver = api.resolver(TARGET);
    let mut seen = Seen::new(&resolver);
    let (first, second) = (runtime(), runtime());
    std::thread::scope(|scope| {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        scope.spawn(|| {
            servers.block_on(async {
                api.request().await.list("5", &[slice("a", "4", &pods(&[ONE]))]);
                // The first runtime may end before or after it has started a watch.
                let mut list = api.request().await;
                while list.query.contains("watch=true") {
                    list = api.request().await;
                }
                list.list("6", &[slice("a", "6", &pods(&[TWO]))]);
                let _watch = api.watch("6").await;
                let _ = stopped.await;
            });
        });
        first.block_on(seen.check(&[ONE]));
        drop(first);
        // The end of the first runtime is a change. A resolution then starts the watch again.
        second.block_on(async {
            seen.next(&[ONE]).await;
            seen.next(&[TWO]).await;
        });
        drop(stop);
    });
}
