//! Servers that are killed, told to stop, or restarted under load, on real sockets: which calls may fail, and with what.

mod support;

use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use support::{ECHO, Echo, raw, soon};
use thalweg::channel::Lanes;
use thalweg::{CallOptions, Channel, Code, Raw, Request, Response, Server, Status, Stream};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// An address for servers, one after the other. It is theirs while none of them listens, too: a connection to it is
/// refused then, and no socket of another gets it.
struct Port {
    address: SocketAddr,
    _bound: Socket,
}

/// A server with a runtime of its own.
struct Running {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    /// Connections that it has accepted.
    accepted: Arc<AtomicUsize>,
}

struct Accepted(tokio::net::TcpListener, Arc<AtomicUsize>);

impl Stream for Accepted {
    type Item = TcpStream;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TcpStream>> {
        let (socket, _) = ready!(self.0.poll_accept(cx)).expect("a connection");
        self.1.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Some(socket))
    }
}

impl Port {
    fn new() -> Self {
        let bound = Self::socket();
        bound.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        let address = bound.local_addr().expect("bound").as_socket().expect("an IP address");
        Self { address, _bound: bound }
    }

    fn socket() -> Socket {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("an option");
        socket
    }

    fn target(&self) -> String {
        self.address.to_string()
    }

    /// From here on, connections are made, whether anybody accepts them or not.
    fn listen(&self) -> TcpListener {
        let socket = Self::socket();
        socket.bind(&self.address.into()).expect("the port");
        socket.listen(128).expect("a listener");
        socket.set_nonblocking(true).expect("an option");
        socket.into()
    }
}

impl Running {
    fn start(listener: TcpListener) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let (stop, stopped) = oneshot::channel::<()>();
        let accepted = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&accepted);
        let serving = runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            let server = Server::builder().add_service(Echo::default());
            let stopped = async move { stopped.await.unwrap_or(()) };
            server.serve_incoming(Accepted(listener, counted), stopped).await;
        });
        Self { runtime, stop, serving, accepted }
    }

    /// A server on a listener that outlives it, so that a client which connects between two servers is answered by the second.
    fn share(listener: &TcpListener) -> Self {
        Self::start(listener.try_clone().expect("a descriptor"))
    }

    /// As `kill -9`: the sockets are closed with whatever is on them. They are when this returns.
    async fn kill(self) {
        // Dropped, a runtime waits for its threads.
        tokio::task::spawn_blocking(move || drop(self.runtime)).await.expect("no panic");
    }

    /// Lets the calls that there are end, as SIGTERM does.
    async fn stop(mut self) {
        let (stop, _) = oneshot::channel();
        std::mem::replace(&mut self.stop, stop).send(()).expect("it serves");
        soon(&mut self.serving).await.expect("no panic");
        self.kill().await;
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
const LANES: usize = 2;

impl Callers {
    async fn start(target: &str) -> Self {
        let builder = Channel::builder(target).lanes(Lanes::fixed(LANES)).backoff_jitter(|| 0.0);
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

    /// Waits until every lane is connected to this server, which is the only one: a driver may be slow to see that the
    /// connection to the one before is gone.
    async fn reach(&self, server: &Running) {
        let reached = async {
            while server.accepted.load(Ordering::SeqCst) < LANES
                || self.channel.lanes().iter().any(|lane| lane.state != "READY")
            {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        let channel = &self.channel;
        tokio::time::timeout(Duration::from_secs(60), reached)
            .await
            .unwrap_or_else(|_| panic!("the new server is not reached: {channel:?}"));
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
    let port = Port::new();
    let listener = port.listen();
    let mut running = Running::share(&listener);
    let callers = Callers::start(&port.target()).await;
    for _ in 0..KILLS {
        callers.answer(20).await;
        callers.begin();
        running.kill().await;
        running = Running::share(&listener);
        callers.reach(&running).await;
        callers.end();
    }
    callers.answer(20).await;
    let failures = callers.finish().await;
    // One call of each caller was on its way when the server was killed, and its next one may be on the way on another
    // lane whose driver has not seen it yet.
    assert!(failures.len() <= LANES * CALLERS * KILLS, "{} calls failed", failures.len());
    for status in failures {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        let message = status.message();
        assert!(message.contains(&port.target()), "where is missing: {message}");
        assert!(message.contains("closed the connection") || message.contains("lost: "), "why: {message}");
    }
    running.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn told_to_stop_two_hundred_times() {
    let port = Port::new();
    let listener = port.listen();
    let mut running = Running::share(&listener);
    let callers = Callers::start(&port.target()).await;
    for _ in 0..200 {
        callers.answer(20).await;
        running.stop().await;
        running = Running::share(&listener);
    }
    callers.answer(20).await;
    let failures = callers.finish().await;
    assert!(failures.is_empty(), "a graceful end fails no call: {failures:?}");
    running.kill().await;
}

/// Kills the server, leaves its port to nobody for a moment, and starts another there.
async fn restarts(count: usize) {
    let port = Port::new();
    let mut running = Running::start(port.listen());
    let callers = Callers::start(&port.target()).await;
    for _ in 0..count {
        callers.answer(20).await;
        callers.begin();
        // Dropped with its listener.
        running.serving.abort();
        let _ = soon(&mut running.serving).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        running.kill().await;
        running = Running::start(port.listen());
        callers.reach(&running).await;
        callers.end();
    }
    for status in callers.finish().await {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains(&port.target()), "{status:?}");
    }
    running.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_two_hundred_times() {
    // Each costs one pause of the backoff, so they run side by side.
    let all: Vec<_> = (0..20).map(|_| tokio::spawn(restarts(10))).collect();
    for one in all {
        one.await.expect("as it should be");
    }
}
