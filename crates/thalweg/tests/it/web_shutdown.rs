//! Servers with web protocols that listen on a UNIX socket, and that stop.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thalweg::server::{Methods, ServeError, Service};
use thalweg::web::Web;
use thalweg::{Raw, Request, Response, Server, ServiceOptions, Status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::support::http::{HttpResponse, http1_by, http2_by};
use crate::support::{connect, echo, raw, soon};

/// Echoes when permitted.
#[derive(Default)]
struct WaitingHandler {
    started: Notify,
    proceed: Notify,
    dropped: Notify,
}

struct Dropped<'a>(&'a Notify);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

struct Waits(Arc<WaitingHandler>);

impl Waits {
    async fn echo(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        if request.get_ref().0 == b"wait"[..] {
            let _dropped = Dropped(&self.0.dropped);
            self.0.started.notify_one();
            self.0.proceed.notified().await;
        }
        Ok(Response::new(request.into_inner()))
    }
}

impl Service for Waits {
    const NAME: &'static str = "test.Echo";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("Echo", &Arc::new(self), &ServiceOptions::default(), Waits::echo);
    }
}

/// A server on a UNIX socket.
struct Running {
    path: PathBuf,
    waiting: Arc<WaitingHandler>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    async fn start(grace: Duration) -> Running {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("thalweg-web-{}-{number}.sock", std::process::id()));
        let waiting = Arc::<WaitingHandler>::default();
        let server = Server::builder().add_service(Waits(Arc::clone(&waiting))).web(Web::new());
        let address = format!("unix:{}", path.display()).parse().expect("an address");
        let server = server.shutdown_grace(grace).bind(&[address]).await.expect("a free path");
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
        Running { path, waiting, stop, serving }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.path).await.expect("it listens")
    }

    /// Opens a connection whose call has started and waits.
    async fn hold(&self) -> UnixStream {
        let mut io = self.connect().await;
        io.write_all(&[REQUEST_HEAD.as_bytes(), b"\r\nhost: a\r\ncontent-length: 4\r\n\r\nwait"].concat())
            .await
            .expect("open");
        soon(self.waiting.started.notified()).await;
        io
    }
}

const REQUEST_HEAD: &str = "POST /test.Echo/Echo HTTP/1.1\r\ncontent-type: application/proto";

async fn read_to_end(mut io: UnixStream) -> Vec<u8> {
    let mut read_to_end = Vec::new();
    soon(io.read_to_end(&mut read_to_end)).await.expect("an end, no reset");
    read_to_end
}

#[tokio::test]
async fn unix_socket_serves_all_protocols() {
    let server = Running::start(Duration::from_secs(60)).await;
    let response = HttpResponse::read(&http1_by(server.connect().await, REQUEST_HEAD, b"by HTTP/1.1").await);
    assert_eq!(response.status_and_body(), (200, b"by HTTP/1.1".to_vec()));
    let channel = connect(&format!("unix:{}", server.path.display())).await;
    let response =
        http2_by(channel.engine(), "POST", "/test.Echo/Echo", "application/proto", b"by HTTP/2").await;
    assert_eq!(response, (200, b"by HTTP/2".to_vec()));
    assert_eq!(soon(echo(&channel, raw("by gRPC"))).await.expect("a response"), raw("by gRPC"));
    server.stop.send(()).expect("it serves");
    soon(server.serving).await.expect("no panic").expect("a clean end");
    assert!(!server.path.exists(), "the socket's file goes with the server");
}

#[tokio::test]
async fn shutdown_finishes_http1_requests() {
    let server = Running::start(Duration::from_secs(60)).await;
    let busy = server.hold().await;
    // It has served one response and is kept open.
    let mut idle = server.connect().await;
    idle.write_all(&[REQUEST_HEAD.as_bytes(), b"\r\nhost: a\r\ncontent-length: 1\r\n\r\na"].concat())
        .await
        .expect("open");
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\na") {
        assert_ne!(soon(idle.read_buf(&mut response)).await.expect("a response"), 0);
    }
    server.stop.send(()).expect("it serves");
    assert_eq!(read_to_end(idle).await, b"", "who has asked nothing goes at once");
    assert!(UnixStream::connect(&server.path).await.is_err(), "nobody is let in any more");
    assert!(!server.serving.is_finished(), "a call is under way");
    server.waiting.proceed.notify_one();
    let response = HttpResponse::read(&read_to_end(busy).await);
    assert!(response.fields.contains("connection: close\n"), "{response:?}");
    assert_eq!(response.status_and_body(), (200, b"wait".to_vec()));
    soon(server.serving).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn http1_call_is_closed_after_grace() {
    let server = Running::start(Duration::from_millis(10)).await;
    let busy = server.hold().await;
    server.stop.send(()).expect("it serves");
    soon(server.waiting.dropped.notified()).await;
    assert_eq!(read_to_end(busy).await, b"", "no response");
    soon(server.serving).await.expect("no panic").expect("a clean end");
}
