//! Limits on a server's connections, and the choice of connections to close.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg_engine::http2::frame::{Flags, Kind, PREFACE};
use thalweg_engine::http2::{Config, ErrorCode};
use thalweg_engine::server::{self, ServerConfig};
use thalweg_engine::{Channel, ListenAddress};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, duplex};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::peer::Peer;
use crate::support::{Echo, channel_config, echo, raw, request_at, server_config, soon, spawn_echo};

/// Starts a server on a free port, configured by `set`.
async fn start(set: impl FnOnce(&mut ServerConfig)) -> String {
    let address: ListenAddress = "127.0.0.1:0".parse().expect("an address");
    let router = Echo::default().router();
    let server = server::bind(server_config(set), router, &[address]).await.expect("a free port");
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    target
}

async fn connect(target: &str) -> Channel {
    let channel = Channel::new(target, channel_config(|_| {})).expect("a target");
    channel.connect().await.expect("a server");
    channel
}

/// Returns a client's first bytes. They do not acknowledge SETTINGS.
fn hello() -> Peer {
    let mut client = Peer::new(duplex(1).0);
    client.out.extend_from_slice(PREFACE);
    client.settings(&[]);
    client
}

/// Connects from `from` and completes the handshake. Returns `None` if the server closes the connection first.
async fn idle_client(target: &str, from: Ipv4Addr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((from, 0))).expect("an address of loopback");
    let mut stream = socket.connect(target.parse().expect("an address")).await.expect("a listener");
    let mut hello = hello();
    hello.frame(Kind::Settings, Flags::ACK, 0, b"");
    // Refused connections may already be reset.
    let _ = stream.write_all(&hello.out).await;
    let mut first = [0];
    matches!(soon(stream.read(&mut first)).await, Ok(1)).then_some(stream)
}

const ONE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Connects repeatedly until the server accepts.
async fn admitted(target: &str, from: Ipv4Addr) -> TcpStream {
    soon(async {
        loop {
            if let Some(client) = idle_client(target, from).await {
                return client;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

#[tokio::test]
async fn connections_per_address_are_limited() {
    let target = start(|config| config.max_connections_per_address = Some(2)).await;
    let first = idle_client(&target, ONE).await.expect("room");
    let _second = idle_client(&target, ONE).await.expect("room");
    assert!(idle_client(&target, ONE).await.is_none());
    idle_client(&target, OTHER).await.expect("another address");
    drop(first);
    admitted(&target, ONE).await;
}

#[tokio::test]
async fn longest_idle_connection_makes_room() {
    let target = start(|config| config.max_connections = Some(2)).await;
    let busy = connect(&target).await;
    let call = spawn_echo(&busy, "sleep");
    let mut idle = idle_client(&target, ONE).await.expect("room");
    assert!(idle_client(&target, ONE).await.is_none(), "there are two");
    let mut rest = Vec::new();
    soon(idle.read_to_end(&mut rest)).await.expect("it is ended properly");
    let why = b"idle connection closed to free file descriptors";
    assert!(rest.windows(why.len()).any(|part| part == why));
    drop(idle);
    let _next = admitted(&target, ONE).await;
    assert!(!call.is_finished());
    // Connections with active calls are not closed.
    echo(&busy, raw("still here")).await.expect("its connection stays");
}

/// A client between two calls has not been idle for longest, although it came first.
#[tokio::test]
async fn connection_with_occasional_calls_stays_open() {
    let target = start(|config| config.max_connections = Some(2)).await;
    let honest = connect(&target).await;
    let mut idle = idle_client(&target, ONE).await.expect("room");
    soon(echo(&honest, raw("x"))).await.expect("a response");
    assert!(idle_client(&target, ONE).await.is_none(), "there are two");
    let mut rest = Vec::new();
    soon(idle.read_to_end(&mut rest)).await.expect("the one that never called is ended");
    soon(echo(&honest, raw("still here"))).await.expect("a response");
    assert_eq!(honest.lanes()[0].state, "READY");
}

#[tokio::test]
async fn connection_without_calls_gets_goaway() {
    let target = start(|config| config.max_connection_idle = Some(Duration::from_secs(1))).await;
    let busy = connect(&target).await;
    let call = spawn_echo(&busy, "sleep");
    let mut idle = idle_client(&target, ONE).await.expect("room");
    let mut rest = Vec::new();
    // Sweeps are a second apart. The client never acknowledges the PING, so the drain timeout runs too.
    soon(idle.read_to_end(&mut rest)).await.expect("it is ended properly");
    assert!(!call.is_finished());
    echo(&busy, raw("still here")).await.expect("it has a call");
}

/// A client that opens a call and sends DATA forever.
struct Flood {
    hello: Vec<u8>,
    frame: Vec<u8>,
    /// Number of bytes read from both; the frame repeats.
    read: usize,
    written: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Flood {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        while buf.remaining() > 0 {
            let part = match self.hello.get(self.read..) {
                Some(rest) if !rest.is_empty() => rest,
                _ => &self.frame[(self.read - self.hello.len()) % self.frame.len()..],
            };
            let len = part.len().min(buf.remaining());
            buf.put_slice(&part[..len]);
            self.read += len;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Flood {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.written.lock().expect("no panic").extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The protocol's timeouts also expire for a client that keeps the server busy.
#[tokio::test]
async fn flood_does_not_delay_settings_timeout() {
    // A call to an unknown method, whose DATA is discarded.
    let mut client = hello();
    client.headers(1, false, &request_at("/test.Echo/Nothing"));
    let hello = std::mem::take(&mut client.out);
    let frame = std::mem::take(&mut client.data(1, false, &[0; 1000]).out);
    let written = Arc::default();
    let flood = Flood { hello, frame, read: 0, written: Arc::clone(&written) };
    let http2 = Config::default().settings_timeout(Duration::from_millis(300));
    let config = server_config(|config| config.http2 = http2);
    soon(server::serve_connection(config, Echo::default().router(), flood)).await;
    let code = u32::from(ErrorCode::SettingsTimeout).to_be_bytes();
    let written = written.lock().expect("no panic");
    assert!(written.windows(4).any(|part| part == code), "{written:?}");
}
