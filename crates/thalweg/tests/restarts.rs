//! Servers that are killed, told to stop, or restarted under load, on real sockets: which calls may fail, and with what.

mod support;

use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use support::{ECHO, Echo, raw, soon};
use thalweg::channel::Lanes;
use thalweg::{CallOptions, Channel, Code, Raw, Request, Response, Server, Status, Stream};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Servers, one after the other, that share one listening socket, so that a client which connects between two of them is
/// answered by the second.
struct Servers {
    listener: TcpListener,
}

/// A server with a runtime of its own.
struct Running {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

struct Accepted(tokio::net::TcpListener);

impl Stream for Accepted {
    type Item = TcpStream;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TcpStream>> {
        Poll::Ready(Some(ready!(self.0.poll_accept(cx)).expect("a connection").0))
    }
}

impl Servers {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        Self { listener }
    }

    fn target(&self) -> String {
        self.listener.local_addr().expect("bound").to_string()
    }

    fn start(&self) -> Running {
        let listener = self.listener.try_clone().expect("a descriptor");
        Running::start(move || tokio::net::TcpListener::from_std(listener).expect("a listener"))
    }
}

impl Running {
    fn start(listener: impl FnOnce() -> tokio::net::TcpListener + Send + 'static) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = runtime.spawn(async move {
            let server = Server::builder().add_service(Echo::default());
            server.serve_incoming(Accepted(listener()), async move { stopped.await.unwrap_or(()) }).await;
        });
        Self { runtime, stop, serving }
    }

    /// As `kill -9`: the sockets are closed with whatever is on them.
    fn kill(self) {
        self.runtime.shutdown_background();
    }

    /// Lets the calls that there are end, as SIGTERM does.
    async fn stop(self) {
        self.stop.send(()).expect("it serves");
        soon(self.serving).await.expect("no panic");
        self.runtime.shutdown_background();
    }
}

/// What the callers of one channel saw.
struct Callers {
    channel: Channel,
    is_over: Arc<AtomicBool>,
    /// Calls answered.
    answered: Arc<AtomicUsize>,
    /// How many cuts have begun, and how many are over: a call that fails must have met one.
    begun: Arc<AtomicUsize>,
    over: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<Vec<Status>>>,
}

const CALLERS: usize = 8;

impl Callers {
    async fn start(target: &str) -> Self {
        let builder = Channel::builder(target).lanes(Lanes::fixed(2)).backoff_jitter(|| 0.0);
        let channel = builder.connect().await.expect("a server");
        let (is_over, answered): (Arc<AtomicBool>, Arc<AtomicUsize>) = Default::default();
        let (begun, over): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
        let caller = |number: usize| {
            let channel = channel.clone();
            let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
            let (begun, over) = (Arc::clone(&begun), Arc::clone(&over));
            tokio::spawn(async move {
                let mut failures = Vec::new();
                let mut options = CallOptions::default();
                // What fails then has been sent: there was no other reason to.
                options.wait_for_ready = true;
                while !is_over.load(Ordering::SeqCst) {
                    let over_before = over.load(Ordering::SeqCst);
                    // Some of the handlers have to wait.
                    let message = raw(if number.is_multiple_of(2) { "yield" } else { "x" });
                    let reply: Result<Response<Raw>, Status> =
                        channel.unary(&ECHO, Request::new(message.clone()), &options).await;
                    match reply {
                        Ok(reply) => {
                            assert_eq!(reply.into_inner(), message);
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(status) => {
                            let began = begun.load(Ordering::SeqCst);
                            assert!(began > over_before, "failed with no reason: {status:?}");
                            failures.push(status);
                        }
                    }
                }
                failures
            })
        };
        let tasks = (0..CALLERS).map(caller).collect();
        Self { channel, is_over, answered, begun, over, tasks }
    }

    /// Waits until so many more calls are answered than are now: the channel has recovered.
    async fn answer(&self, more: usize) {
        let enough = self.answered.load(Ordering::SeqCst) + more;
        let answered = async {
            while self.answered.load(Ordering::SeqCst) < enough {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        let channel = &self.channel;
        tokio::time::timeout(Duration::from_secs(60), answered)
            .await
            .unwrap_or_else(|_| panic!("no answers any more: {channel:?}"));
    }

    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    fn end(&self) {
        self.over.fetch_add(1, Ordering::SeqCst);
    }

    /// The failures of all calls.
    async fn finish(self) -> Vec<Status> {
        self.is_over.store(true, Ordering::SeqCst);
        let mut failures = Vec::new();
        for task in self.tasks {
            failures.extend(soon(task).await.expect("a caller found no fault"));
        }
        assert!(self.channel.lanes().iter().all(|lane| lane.in_flight == 0), "{:?}", self.channel);
        failures
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_two_hundred_times() {
    const KILLS: usize = 200;
    let servers = Servers::new();
    let mut running = servers.start();
    let callers = Callers::start(&servers.target()).await;
    for _ in 0..KILLS {
        callers.answer(20).await;
        callers.begin();
        running.kill();
        running = servers.start();
        callers.answer(20).await;
        callers.end();
    }
    let failures = callers.finish().await;
    // One call of each caller was on its way when the server was killed, and a connection may be killed as it comes up.
    assert!(failures.len() <= 2 * CALLERS * KILLS, "{} calls failed", failures.len());
    for status in failures {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        let message = status.message();
        assert!(message.contains(&servers.target()), "where is missing: {message}");
        assert!(message.contains("closed the connection") || message.contains("lost: "), "why: {message}");
    }
    running.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn told_to_stop_two_hundred_times() {
    let servers = Servers::new();
    let mut running = servers.start();
    let callers = Callers::start(&servers.target()).await;
    for _ in 0..200 {
        callers.answer(20).await;
        running.stop().await;
        running = servers.start();
    }
    callers.answer(20).await;
    let failures = callers.finish().await;
    assert!(failures.is_empty(), "a graceful end fails no call: {failures:?}");
    running.kill();
}

/// Kills the server, leaves its port to nobody for a moment, and starts another there.
async fn restarts(count: usize) {
    let bind = |address: SocketAddr| {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("an option");
        socket.bind(address).expect("the port");
        socket.listen(128).expect("a listener")
    };
    let first = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = first.local_addr().expect("bound");
    drop(first);
    let mut running = Running::start(move || bind(address));
    let callers = loop {
        // The port may not be bound yet.
        if TcpStream::connect(address).await.is_ok() {
            break Callers::start(&address.to_string()).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    for _ in 0..count {
        callers.answer(20).await;
        callers.begin();
        let Running { runtime, serving, .. } = running;
        // Dropped with its listener.
        serving.abort();
        let _ = soon(serving).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        runtime.shutdown_background();
        running = Running::start(move || bind(address));
        callers.answer(20).await;
        callers.end();
    }
    for status in callers.finish().await {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains(&address.to_string()), "{status:?}");
    }
    running.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_two_hundred_times() {
    // Each costs one pause of the backoff, so they run side by side.
    let all: Vec<_> = (0..20).map(|_| tokio::spawn(restarts(10))).collect();
    for one in all {
        one.await.expect("as it should be");
    }
}
