//! Channels that connect, and errors of those that cannot.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpListener, UnixListener};

use crate::tonic::transport::{Channel, Endpoint, Error};
use crate::tonic::{Code, Status};

/// An empty SETTINGS frame (RFC 9113 §6.5), with which a server starts.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Does the minimum for a channel to connect.
async fn greet(mut io: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
    io.write_all(&SETTINGS).await.unwrap();
    // Reads until the client disconnects.
    let _ = io.read_to_end(&mut Vec::new()).await;
}

/// Starts a server that counts its connections from 127.0.0.2; returns its URI and the count.
async fn tcp() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let from_other = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&from_other);
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            count.fetch_add(usize::from(peer.ip().to_string() == "127.0.0.2"), Ordering::Relaxed);
            tokio::spawn(greet(stream));
        }
    });
    (uri, from_other)
}

#[tokio::test]
async fn channels_connect_over_tcp_and_unix_sockets() {
    let (uri, from_other) = tcp().await;
    let endpoint = Endpoint::from_shared(uri).unwrap();
    endpoint.connect().await.unwrap();
    assert_eq!(from_other.load(Ordering::Relaxed), 0);
    endpoint.local_address(Some("127.0.0.2".parse().unwrap())).connect().await.unwrap();
    assert_eq!(from_other.load(Ordering::Relaxed), 1);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move { greet(listener.accept().await.unwrap().0).await });
    Endpoint::from_shared(format!("unix:{}", path.display())).unwrap().connect().await.unwrap();
}

#[tokio::test]
async fn connector_receives_the_uri() {
    let uris = Arc::new(std::sync::Mutex::new(Vec::new()));
    let recorded = Arc::clone(&uris);
    let connector = tower::service_fn(move |uri: Uri| {
        recorded.lock().unwrap().push(uri.to_string());
        async {
            let (near, far) = tokio::io::duplex(4096);
            tokio::spawn(greet(far));
            Ok::<_, std::io::Error>(TokioIo::new(near))
        }
    });
    let endpoint = Endpoint::from_static("http://shop.example/");
    endpoint.connect_with_connector(connector.clone()).await.unwrap();
    // Its future is `Unpin`.
    let boxed = tower::ServiceExt::boxed(connector.clone());
    Channel::connect(boxed, endpoint.clone()).await.unwrap();
    assert_eq!(*uris.lock().unwrap(), ["http://shop.example/", "http://shop.example/"]);
    drop((endpoint.connect_with_connector_lazy(connector.clone()), Channel::new(connector, endpoint)));
    assert_eq!(uris.lock().unwrap().len(), 2, "they connect when calls come");
}

/// Checks the error for the program, and the status of its call.
fn check(error: Error, code: Code, part: &str) {
    assert_eq!(error.to_string(), "transport error");
    let source = error.source().unwrap().to_string();
    assert!(source.contains(part), "{source}");
    let status = Status::from_error(Box::new(error));
    assert_eq!(status.code(), code);
    assert!(code == Code::Unknown || status.message().contains(part), "{status:?}");
}

#[tokio::test]
async fn unreachable_target_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let silent = endpoint.clone().connect_timeout(Duration::from_millis(50)).connect().await;
    check(silent.unwrap_err(), Code::Unavailable, &address.to_string());
    drop(listener);
    check(endpoint.connect().await.unwrap_err(), Code::Unavailable, &address.to_string());
    let connector = tower::service_fn(async |_: Uri| Err::<TokioIo<DuplexStream>, _>("no way there"));
    let refused = endpoint.connect_with_connector(connector).await;
    check(refused.unwrap_err(), Code::Unavailable, "no way there");
    let error = Endpoint::from_static("127.0.0.1:1").connect().await.unwrap_err();
    assert_eq!(error.to_string(), "invalid URI");
}

#[tokio::test]
async fn poll_ready_needs_no_body_type() {
    use tower::{Service, ServiceExt as _};

    let mut channel = Endpoint::from_shared(tcp().await.0).unwrap().connect_lazy();
    // Like `etcd-client`.
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.unwrap();
    let request = http::Request::new(crate::tonic::body::Body::empty());
    drop(channel.ready().await.unwrap().call(request));
    let request = http::Request::new(vocabulary::body::Body::empty());
    drop(channel.ready().await.unwrap().call(request));
    drop(channel.clone().oneshot(http::Request::new(crate::tonic::body::Body::empty())));
}
