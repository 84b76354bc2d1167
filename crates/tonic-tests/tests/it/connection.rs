//! Connecting, lost connections, and cancelled calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{RunningServer, ShopService, in_memory, order, serve, serve_with, within_a_minute};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::channel::{Change, Lanes};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response};

fn router() -> tonic::transport::server::Router {
    Server::builder().add_service(ShopServer::new(ShopService::default()))
}

/// Returns an address without a listener.
async fn free_address() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn connect_fails_without_a_server() {
    assert!(ShopClient::connect("http://nobody.invalid").await.is_err());
    assert!(ShopClient::connect(format!("http://{}", free_address().await)).await.is_err());
}

#[tokio::test]
async fn stopped_server_is_unavailable() {
    let server = serve(router()).await;
    let mut client = ShopClient::connect(server.uri()).await.unwrap();
    client.buy(order("")).await.unwrap();
    server.stop().await;
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn lazy_channel_connects_to_late_server() {
    let address = free_address().await;
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = ShopClient::new(endpoint.connect_lazy());
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
    let server =
        serve_with(address, async move |stopped| router().serve_with_shutdown(address, stopped).await);
    // The channel pauses between attempts.
    let call_until_success = async {
        while client.buy(order("")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_a_minute(call_until_success).await;
    server.stop().await;
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn shutdown_waits_for_calls_in_flight() {
    let (started, proceed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (on_start, on_proceed) = (Arc::clone(&started), Arc::clone(&proceed));
    let shop = ShopService::on_buy(move |request| {
        let (on_start, on_proceed) = (Arc::clone(&on_start), Arc::clone(&on_proceed));
        async move {
            on_start.notify_one();
            on_proceed.notified().await;
            Ok(Response::new(request.into_inner()))
        }
    });
    let server = serve(Server::builder().add_service(ShopServer::new(shop))).await;
    let mut client = ShopClient::connect(server.uri()).await.unwrap();
    let call = tokio::spawn(async move { client.buy(order("bread")).await });
    within_a_minute(started.notified()).await;
    let stopping = tokio::spawn(server.stop());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!stopping.is_finished());
    proceed.notify_one();
    assert_eq!(call.await.unwrap().unwrap().into_inner(), order("bread"));
    stopping.await.unwrap();
}

#[tokio::test]
async fn cancelled_call_drops_its_handler() {
    struct DropNotice(mpsc::Sender<()>);
    impl Drop for DropNotice {
        fn drop(&mut self) {
            self.0.try_send(()).unwrap();
        }
    }
    let (sender, mut dropped) = mpsc::channel(8);
    let started = Arc::new(Notify::new());
    let on_start = Arc::clone(&started);
    let shop = ShopService::on_buy(move |_| {
        let (dropped, on_start) = (DropNotice(sender.clone()), Arc::clone(&on_start));
        async move {
            on_start.notify_one();
            std::future::pending::<()>().await;
            drop(dropped);
            Ok(Response::new(order("")))
        }
    });
    let router = Server::builder().add_service(ShopServer::new(shop));
    let channel = in_memory(router, &Endpoint::from_static("http://shop.test"));
    let mut client = ShopClient::new(channel);
    tokio::select! {
        _ = client.buy(order("")) => panic!("it does not answer"),
        () = started.notified() => {}
    }
    within_a_minute(dropped.recv()).await.unwrap();
}

/// An empty SETTINGS frame, and its acknowledgement (RFC 9113 §6.5).
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const SETTINGS_ACK: [u8; 9] = [0, 0, 0, 4, 1, 0, 0, 0, 0];

#[tokio::test(start_paused = true)]
async fn keepalive_detects_a_silent_server() {
    let connector = tower::service_fn(async |_| {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            theirs.write_all(&[SETTINGS, SETTINGS_ACK].concat()).await.unwrap();
            theirs.read_to_end(&mut Vec::new()).await
        });
        Ok::<_, std::io::Error>(TokioIo::new(ours))
    });
    let endpoint = Endpoint::from_static("http://shop.test")
        .http2_keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10));
    let mut client = ShopClient::new(endpoint.connect_with_connector_lazy(connector));
    let started = tokio::time::Instant::now();
    let status = tokio::time::timeout(Duration::from_secs(600), client.buy(order(""))).await.unwrap();
    assert_eq!(status.unwrap_err().code(), Code::Unavailable);
    assert!((30..60).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn keepalive_detects_a_silent_client() {
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let server = Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .add_service(ShopServer::new(ShopService::default()));
    let incoming = tokio_stream::once(Ok::<_, std::io::Error>(theirs));
    tokio::spawn(server.serve_with_incoming(incoming));
    let started = tokio::time::Instant::now();
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    ours.write_all(&[preface, &SETTINGS, &SETTINGS_ACK].concat()).await.unwrap();
    let mut received = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(600), ours.read_to_end(&mut received));
    ended.await.unwrap().unwrap();
    assert!((30..60).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

/// Without a shutdown signal, accepted connections live on when no more arrive and serving ends.
#[tokio::test]
async fn connections_outlive_the_listener() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let incoming = tokio_stream::once(Ok::<_, std::io::Error>(theirs));
    router().serve_with_incoming(incoming).await.unwrap();
    let mut ours = Some(TokioIo::new(ours));
    let connector = tower::service_fn(move |_| {
        let io = ours.take().ok_or(std::io::ErrorKind::ConnectionRefused);
        async { io.map_err(std::io::Error::from) }
    });
    let channel = Endpoint::from_static("http://shop.test").connect_with_connector(connector).await.unwrap();
    ShopClient::new(channel).buy(order("")).await.unwrap();
}

#[tokio::test]
async fn calls_are_balanced_over_servers() {
    let (first, second) = (serve(router()).await, serve(router()).await);
    let channel = Channel::balance_list([first.endpoint(), second.endpoint()].into_iter());
    let mut client = ShopClient::new(channel);
    for _ in 0..10 {
        client.buy(order("")).await.unwrap();
    }
    first.stop().await;
    // No call fails: the other server is ready.
    for _ in 0..100 {
        client.buy(order("")).await.unwrap();
    }
    second.stop().await;
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
}

/// Starts a server at `address`, which is free or will be soon.
async fn restart(address: std::net::SocketAddr) -> RunningServer {
    loop {
        if let Ok(listener) = TcpListener::bind(address).await {
            let incoming = TcpListenerStream::new(listener);
            return serve_with(address, async move |stopped| {
                router().serve_with_incoming_shutdown(incoming, stopped).await
            });
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// While one server of three restarts, no call fails, and none waits.
#[tokio::test]
async fn no_call_fails_in_rolling_restarts() {
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(serve(router()).await);
    }
    let channel = Channel::balance_list(servers.iter().map(RunningServer::endpoint));
    let is_over = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (mut client, is_over) = (ShopClient::new(channel.clone()), Arc::clone(&is_over));
            tokio::spawn(async move {
                while is_over.load(Ordering::Relaxed) == 0 {
                    client.buy(order("")).await.expect("no call fails");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        })
        .collect();
    for _ in 0..3 {
        let server = servers.remove(0);
        let address = server.address;
        server.stop().await;
        servers.push(restart(address).await);
        // The channel waits a second, ±20 %, before it tries the restarted server again.
        tokio::time::sleep(Duration::from_millis(1300)).await;
    }
    is_over.store(1, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("no failed call");
    }
}

#[tokio::test]
async fn endpoints_of_a_channel_may_change_while_calls_wait() {
    let (channel, changes) = Channel::balance_channel::<u32>(4);
    let mut client = ShopClient::new(channel);
    let waiting = tokio::spawn({
        let mut client = client.clone();
        async move { client.buy(order("first")).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!waiting.is_finished(), "there is no endpoint");
    let (first, second) = (serve(router()).await, serve(router()).await);
    changes.send(Change::Insert(1, first.endpoint())).await.unwrap();
    within_a_minute(waiting).await.unwrap().unwrap();
    // Replacing an endpoint moves the calls.
    changes.send(Change::Insert(1, second.endpoint())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.stop().await;
    for _ in 0..10 {
        client.buy(order("")).await.unwrap();
    }
    changes.send(Change::Remove(1)).await.unwrap();
    second.stop().await;
}

/// Returns a server whose calls never end, and counts them.
fn silent_router(arrived: &Arc<AtomicUsize>) -> tonic::transport::server::Router {
    let arrived = Arc::clone(arrived);
    let shop = ShopService::on_buy(move |_| {
        arrived.fetch_add(1, Ordering::Relaxed);
        std::future::pending()
    });
    Server::builder().add_service(ShopServer::new(shop))
}

/// The timeout of an endpoint is that of the calls that are sent to it, as in tonic.
#[tokio::test]
async fn timeouts_of_balanced_endpoints_apply_to_their_calls() {
    let arrived: [Arc<AtomicUsize>; 2] = Default::default();
    let (impatient, patient) =
        (serve(silent_router(&arrived[0])).await, serve(silent_router(&arrived[1])).await);
    let endpoints = [impatient.endpoint().timeout(Duration::from_millis(500)), patient.endpoint()];
    let client = ShopClient::new(Channel::balance_list(endpoints.into_iter()));
    let arrived = || arrived.each_ref().map(|count| count.load(Ordering::Relaxed));
    let mut calls = tokio::task::JoinSet::new();
    within_a_minute(async {
        while arrived().contains(&0) {
            let mut client = client.clone();
            calls.spawn(async move { client.buy(order("")).await });
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while arrived().iter().sum::<usize>() < calls.len() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    for _ in 0..arrived()[0] {
        let status = within_a_minute(calls.join_next()).await.unwrap().unwrap().unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Cancelled, "Timeout expired"));
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(calls.try_join_next().is_none(), "the other endpoint has no timeout");
    // The call's own timeout applies everywhere.
    for _ in 0..4 {
        let mut request = Request::new(order(""));
        request.set_timeout(Duration::from_millis(10));
        let status = within_a_minute(client.clone().buy(request)).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Cancelled, "Timeout expired"));
    }
    calls.shutdown().await;
    impatient.stop().await;
    patient.stop().await;
}

#[tokio::test]
async fn timeout_of_a_balanced_endpoint_starts_when_the_call_is_sent() {
    let (channel, changes) = Channel::balance_channel::<u32>(4);
    let mut waiting = ShopClient::new(channel.clone());
    let waiting = tokio::spawn(async move { waiting.buy(order("")).await });
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let (server, arrived) = (serve(router()).await, Arc::default());
    changes.send(Change::Insert(1, server.endpoint().timeout(Duration::from_secs(1)))).await.unwrap();
    within_a_minute(waiting).await.unwrap().unwrap();
    // A timeout that comes later applies, too.
    let silent = serve(silent_router(&arrived)).await;
    changes.send(Change::Remove(1)).await.unwrap();
    changes.send(Change::Insert(2, silent.endpoint().timeout(Duration::from_millis(50)))).await.unwrap();
    let status = within_a_minute(async {
        loop {
            if let Err(status) = ShopClient::new(channel.clone()).buy(order("")).await {
                return status;
            }
        }
    });
    assert_eq!(status.await.message(), "Timeout expired");
    server.stop().await;
    silent.stop().await;
}

/// Bidirectional streams, over a listener that is not a `TcpIncoming`.
#[tokio::test]
async fn bidirectional_streams_interleave() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = serve_with(address, async move |stopped| {
        router().serve_with_incoming_shutdown(TcpListenerStream::new(listener), stopped).await
    });
    let mut client = ShopClient::connect(server.uri()).await.unwrap();
    let (sender, orders) = mpsc::channel(1);
    let mut responses = client.haggle(ReceiverStream::new(orders)).await.unwrap().into_inner();
    for n in 0..20 {
        sender.send(order(&n.to_string())).await.unwrap();
        assert_eq!(responses.message().await.unwrap(), Some(order(&n.to_string())));
    }
    drop(sender);
    assert_eq!(responses.message().await.unwrap(), None);
    let orders = tokio_stream::iter(["a", "b", "c"].map(order));
    assert_eq!(client.collect(orders).await.unwrap().into_inner(), order("abc"));
    drop((responses, client));
    server.stop().await;
}

#[tokio::test]
async fn channel_opens_the_configured_lanes() {
    for (lanes, expected) in [(Lanes::fixed(1), 1), (Lanes::fixed(3), 3), (Lanes::adaptive().floor(2), 2)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let incoming = TcpListenerStream::new(listener).map(move |stream| {
            count.fetch_add(1, Ordering::Relaxed);
            stream
        });
        tokio::spawn(router().serve_with_incoming(incoming));
        let mut client = ShopClient::new(endpoint.lanes(lanes).connect().await.unwrap());
        client.buy(order("")).await.unwrap();
        assert_eq!(accepted.load(Ordering::Relaxed), expected);
    }
}
