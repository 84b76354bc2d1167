//! Connecting, lost connections, and cancelled calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{ShopService, in_memory, order, serve, serve_with, soon};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::channel::Lanes;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Response};

fn router() -> tonic::transport::server::Router {
    Server::builder().add_service(ShopServer::new(ShopService::default()))
}

/// Returns an address without a listener.
async fn free_address() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn nobody_is_there() {
    assert!(ShopClient::connect("http://nobody.invalid").await.is_err());
    assert!(ShopClient::connect(format!("http://{}", free_address().await)).await.is_err());
}

#[tokio::test]
async fn a_server_that_has_stopped_is_unavailable() {
    let server = serve(router()).await;
    let mut client = ShopClient::connect(server.uri()).await.unwrap();
    client.buy(order("")).await.unwrap();
    server.stop().await;
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn a_lazy_channel_finds_a_server_that_comes_later() {
    let address = free_address().await;
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = ShopClient::new(endpoint.connect_lazy());
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
    let server =
        serve_with(address, async move |stopped| router().serve_with_shutdown(address, stopped).await);
    // The channel pauses between attempts.
    let called = async {
        while client.buy(order("")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(called).await;
    server.stop().await;
    assert_eq!(client.buy(order("")).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn calls_under_way_end_before_the_server_does() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes_on) = (Arc::clone(&begun), Arc::clone(&go_on));
    let shop = ShopService::on_buy(move |request| {
        let (begins, goes_on) = (Arc::clone(&begins), Arc::clone(&goes_on));
        async move {
            begins.notify_one();
            goes_on.notified().await;
            Ok(Response::new(request.into_inner()))
        }
    });
    let server = serve(Server::builder().add_service(ShopServer::new(shop))).await;
    let mut client = ShopClient::connect(server.uri()).await.unwrap();
    let call = tokio::spawn(async move { client.buy(order("bread")).await });
    soon(begun.notified()).await;
    let stopping = tokio::spawn(server.stop());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!stopping.is_finished());
    go_on.notify_one();
    assert_eq!(call.await.unwrap().unwrap().into_inner(), order("bread"));
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_handler_ends_whose_call_is_given_up() {
    struct Told(mpsc::Sender<()>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.try_send(()).unwrap();
        }
    }
    let (sender, mut told) = mpsc::channel(8);
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    let shop = ShopService::on_buy(move |_| {
        let (told, begins) = (Told(sender.clone()), Arc::clone(&begins));
        async move {
            begins.notify_one();
            std::future::pending::<()>().await;
            drop(told);
            Ok(Response::new(order("")))
        }
    });
    let router = Server::builder().add_service(ShopServer::new(shop));
    let channel = in_memory(router, &Endpoint::from_static("http://shop.test"));
    let mut client = ShopClient::new(channel);
    tokio::select! {
        _ = client.buy(order("")) => panic!("it does not answer"),
        () = begun.notified() => {}
    }
    soon(told.recv()).await.unwrap();
}

/// An empty SETTINGS frame, and its acknowledgement (RFC 9113 §6.5).
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const ACKNOWLEDGED: [u8; 9] = [0, 0, 0, 4, 1, 0, 0, 0, 0];

#[tokio::test(start_paused = true)]
async fn keepalive_finds_a_server_that_says_nothing_more() {
    let connector = tower::service_fn(async |_| {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            theirs.write_all(&[SETTINGS, ACKNOWLEDGED].concat()).await.unwrap();
            theirs.read_to_end(&mut Vec::new()).await
        });
        Ok::<_, std::io::Error>(TokioIo::new(ours))
    });
    let endpoint = Endpoint::from_static("http://shop.test")
        .http2_keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10));
    let mut client = ShopClient::new(endpoint.connect_with_connector_lazy(connector));
    let begun = tokio::time::Instant::now();
    let status = tokio::time::timeout(Duration::from_secs(600), client.buy(order(""))).await.unwrap();
    assert_eq!(status.unwrap_err().code(), Code::Unavailable);
    assert!((30..60).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn keepalive_finds_a_client_that_says_nothing_more() {
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let server = Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .add_service(ShopServer::new(ShopService::default()));
    let incoming = tokio_stream::once(Ok::<_, std::io::Error>(theirs));
    tokio::spawn(server.serve_with_incoming(incoming));
    let begun = tokio::time::Instant::now();
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    ours.write_all(&[preface, &SETTINGS, &ACKNOWLEDGED].concat()).await.unwrap();
    let mut said = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(600), ours.read_to_end(&mut said));
    ended.await.unwrap().unwrap();
    assert!((30..60).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

/// Without a shutdown signal, accepted connections live on when no more arrive and serving ends.
#[tokio::test]
async fn connections_go_on_when_no_more_come() {
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
async fn calls_are_spread_over_servers() {
    let (first, second) = (serve(router()).await, serve(router()).await);
    let channel = Channel::balance_list([first.endpoint(), second.endpoint()].into_iter());
    let mut client = ShopClient::new(channel);
    for _ in 0..10 {
        client.buy(order("")).await.unwrap();
    }
    first.stop().await;
    let called = async {
        while client.buy(order("")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(called).await;
    second.stop().await;
}

/// Bidirectional streams, over a listener that is not a `TcpIncoming`.
#[tokio::test]
async fn streams_go_both_ways_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = serve_with(address, async move |stopped| {
        router().serve_with_incoming_shutdown(TcpListenerStream::new(listener), stopped).await
    });
    let mut client = ShopClient::connect(server.uri()).await.unwrap();
    let (sender, orders) = mpsc::channel(1);
    let mut replies = client.haggle(ReceiverStream::new(orders)).await.unwrap().into_inner();
    for n in 0..20 {
        sender.send(order(&n.to_string())).await.unwrap();
        assert_eq!(replies.message().await.unwrap(), Some(order(&n.to_string())));
    }
    drop(sender);
    assert_eq!(replies.message().await.unwrap(), None);
    let orders = tokio_stream::iter(["a", "b", "c"].map(order));
    assert_eq!(client.collect(orders).await.unwrap().into_inner(), order("abc"));
    drop((replies, client));
    server.stop().await;
}

#[tokio::test]
async fn a_channel_has_the_lanes_that_it_was_given() {
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
