//! Threads owned by servers and channels.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::support::{Echo, Receiver, chat, echo, raw, soon, spawn_echo, until};
use thalweg::server::{BoundServer, Methods, Service};
use thalweg::{CallOptions, Channel, Code, Method, Raw, Request, Response, Server, ServiceOptions, Status};
use tokio::sync::{Notify, oneshot};

/// Responds with its handler's thread, or the processors that the thread may run on; or waits for a signal.
#[derive(Default)]
struct Where {
    entered: Notify,
    proceed: Notify,
}

static NAME: Method = Method::new("/test.Where/Name");
static CPUS: Method = Method::new("/test.Where/Cpus");
static WAIT: Method = Method::new("/test.Where/Wait");

#[expect(clippy::unused_async, reason = "handlers are async, those that do not wait, too")]
impl Where {
    async fn name(self: Arc<Self>, _: Request<Raw>) -> Result<Response<Raw>, Status> {
        Ok(Response::new(raw(std::thread::current().name().unwrap_or("nameless"))))
    }

    async fn cpus(self: Arc<Self>, _: Request<Raw>) -> Result<Response<Raw>, Status> {
        Ok(Response::new(raw(allowed_cpus())))
    }

    async fn wait(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        self.entered.notify_one();
        self.proceed.notified().await;
        Ok(Response::new(request.into_inner()))
    }
}

struct WhereService(Arc<Where>);

impl Service for WhereService {
    const NAME: &'static str = "test.Where";

    fn register(self, methods: &mut Methods<'_>) {
        let options = ServiceOptions::default();
        methods.unary("Name", &self.0, &options, Where::name);
        methods.unary("Cpus", &self.0, &options, Where::cpus);
        methods.unary("Wait", &self.0, &options, Where::wait);
    }
}

/// Returns `Cpus_allowed_list` of this thread, such as `0-1`.
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("proc(5) has it").trim().to_owned()
}

fn builder(service: &Arc<Where>) -> thalweg::server::ServerBuilder {
    Server::builder().add_service(Echo::default()).add_service(WhereService(Arc::clone(service)))
}

async fn bound(builder: thalweg::server::ServerBuilder) -> (BoundServer, String) {
    let server = builder.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("a free port");
    let target = server.local_addresses()[0].to_string();
    (server, target)
}

async fn call_text(channel: &Channel, method: &Method) -> Result<String, Status> {
    let outcome = channel.unary::<_, Raw>(method, Request::new(raw("")), &CallOptions::default()).await?;
    Ok(String::from_utf8_lossy(&outcome.into_inner().0).into_owned())
}

#[tokio::test]
async fn connections_spread_evenly_over_threads() {
    let (server, target) = bound(builder(&Arc::default()).threads(2)).await;
    tokio::spawn(server.serve());
    let mut threads = BTreeMap::<String, usize>::new();
    let mut channels = Vec::new();
    for _ in 0..6 {
        let channel = Channel::builder(&target).connect().await.expect("a server");
        *threads.entry(call_text(&channel, &NAME).await.expect("a name")).or_default() += 1;
        channels.push(channel);
    }
    let expected = [("thalweg-server-0".to_owned(), 3), ("thalweg-server-1".to_owned(), 3)];
    assert_eq!(threads, BTreeMap::from(expected));
}

/// With threads on both sides, the test's runtime only makes the calls.
#[tokio::test]
async fn calls_work_between_threads() {
    let (server, target) =
        bound(builder(&Arc::default()).threads(2).busy_poll(Duration::from_micros(20))).await;
    let serving = tokio::spawn(server.serve());
    let channel = Channel::builder(&target).lanes(3).threads(2).connect().await.expect("a server");
    let calls: Vec<_> = (0..50).map(|call| spawn_echo(&channel, &format!("call {call}"))).collect();
    for (number, call) in calls.into_iter().enumerate() {
        let response = soon(call).await.expect("no panic").expect("a response");
        assert_eq!(response, raw(format!("call {number}")));
    }
    let large = raw(vec![3; 3_000_000]);
    assert!(echo(&channel, large.clone()).await.expect("a response") == large);
    serving.abort();
}

#[tokio::test]
async fn panic_ends_only_its_call() {
    let (server, target) = bound(builder(&Arc::default()).threads(1)).await;
    tokio::spawn(server.serve());
    let channel = crate::support::connect(&target).await;
    for _ in 0..3 {
        let status = echo(&channel, raw("panic")).await.expect_err("asked to");
        assert_eq!((status.code(), status.message()), (Code::Internal, "the handler panicked"));
        assert_eq!(call_text(&channel, &NAME).await.expect("a name"), "thalweg-server-0");
    }
}

#[tokio::test]
async fn shutdown_waits_for_calls_on_threads() {
    let service = Arc::new(Where::default());
    let (server, target) = bound(builder(&service).threads(2)).await;
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
    let channel = crate::support::connect(&target).await;
    let call = tokio::spawn(async move { call_text(&channel, &WAIT).await });
    soon(service.entered.notified()).await;
    stop.send(()).expect("it serves");
    // It accepts no new connections: it is stopping, and waits.
    soon(async { while Channel::builder(&target).connect().await.is_ok() {} }).await;
    assert!(!serving.is_finished());
    service.proceed.notify_one();
    soon(call).await.expect("no panic").expect("a response");
    soon(serving).await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn dropped_server_closes_connections() {
    let (server, target) = bound(builder(&Arc::default()).threads(2)).await;
    let serving = tokio::spawn(server.serve());
    let channel = crate::support::connect(&target).await;
    let waiting = spawn_echo(&channel, "sleep");
    until(|| channel.lanes()[0].in_flight == 1).await;
    serving.abort();
    let status = soon(waiting).await.expect("no panic").expect_err("its connection is gone");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
}

/// Reports the end of the thread whose thread-local storage holds it.
struct ThreadsEnd(mpsc::Sender<String>);

impl Drop for ThreadsEnd {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.0.send("ended".to_owned());
    }
}

thread_local! {
    static THREADS_END: std::cell::OnceCell<ThreadsEnd> = const { std::cell::OnceCell::new() };
}

#[tokio::test]
async fn threads_of_dropped_channel_end_after_last_call() {
    let (server, target) = bound(builder(&Arc::default())).await;
    tokio::spawn(server.serve());
    let (sender, events) = mpsc::channel();
    let channel = Channel::builder("memory:1").threads(1).connector(move || {
        sender.send(std::thread::current().name().unwrap_or("nameless").to_owned()).expect("the test waits");
        THREADS_END.with(|place| drop(place.set(ThreadsEnd(sender.clone()))));
        let target = target.clone();
        async move { tokio::net::TcpStream::connect(target).await }
    });
    let channel = channel.connect().await.expect("a server");
    assert_eq!(events.recv().expect("it connected"), "thalweg-channel-0");

    let (requests, receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut responses = chat(&channel, Receiver(receiver)).await.expect("a response");
    drop(channel);
    for text in ["the call", "goes on"] {
        requests.send(raw(text)).expect("it is taken");
        assert_eq!(soon(responses.message()).await.expect("a message"), Some(raw(text)));
    }
    assert!(events.try_recv().is_err(), "the thread is still needed");
    drop(requests);
    assert_eq!(soon(responses.message()).await.expect("a clean end"), None);
    let ended = tokio::task::spawn_blocking(move || events.recv_timeout(Duration::from_secs(20)));
    assert_eq!(ended.await.expect("no panic").as_deref(), Ok("ended"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn threads_are_pinned_to_processors() {
    let first = allowed_cpus().split(['-', ',']).next().expect("at least one").to_owned();
    let cpu: usize = first.parse().expect("a number");
    let (server, target) = bound(builder(&Arc::default()).pin([cpu])).await;
    let before = allowed_cpus();
    tokio::spawn(server.serve());
    let channel = Channel::builder(&target).threads(2).pin([cpu]).connect().await.expect("a server");
    assert_eq!(call_text(&channel, &CPUS).await.expect("a list"), first);
    assert_eq!(
        call_text(&channel, &NAME).await.expect("a name"),
        "thalweg-server-0",
        "one processor, one thread"
    );
    assert_eq!(allowed_cpus(), before, "the caller's thread runs where it ran");
}

#[tokio::test]
async fn invalid_threads_are_named() {
    let check = async |threads: Option<usize>, cpus: &[usize], expected: &[&str]| {
        let (mut server, mut channel) = (Server::builder(), Channel::builder("localhost:1"));
        if let Some(threads) = threads {
            (server, channel) = (server.threads(threads), channel.threads(threads));
        }
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = server.pin(cpus.iter().copied()).bind(&[address]).await.expect_err("no server");
        let channel = channel.pin(cpus.iter().copied()).connect_lazy().expect_err("no channel");
        for (message, whose) in
            [(server.to_string(), "the server's threads: "), (channel.to_string(), "the channel's threads: ")]
        {
            for part in [&[whose], expected].concat() {
                assert!(message.contains(part), "{message} lacks `{part}`");
            }
        }
    };
    check(Some(0), &[], &["0 threads are not allowed; use 1 or more"]).await;
    check(Some(1025), &[], &["1025 threads exceed the maximum of 1024"]).await;
    #[cfg(target_os = "linux")]
    {
        let first: usize =
            allowed_cpus().split(['-', ',']).next().and_then(|cpu| cpu.parse().ok()).expect("one");
        check(None, &[first, 1_000_000], &["CPU 1000000: ", "CPUs of this process: "]).await;
        check(Some(2), &[first, 1_000_000], &["CPU 1000000: "]).await;
    }
}
