//! Calls made by handlers: they inherit the deadline of the served call, and end with it.

use std::sync::Arc;
use std::time::Duration;

use thalweg::server::{Methods, Service};
use thalweg::{
    CallOptions, Caller, Channel, Code, Deadline, Parent, Raw, Request, Response, Server, ServiceOptions,
    Status,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::support::{CHAT, ECHO, Echo, REPEAT, Receiver, connect, items, raw, serve, soon, start, until};

static TIME_LEFT: thalweg::Method = thalweg::Method::new("/test.Back/TimeLeft");
static FORWARD: thalweg::Method = thalweg::Method::new("/test.Front/Forward");
static SPAWN: thalweg::Method = thalweg::Method::new("/test.Front/Spawn");

/// Responds with the time left of its calls.
struct Backend;

impl Service for Backend {
    const NAME: &'static str = "test.Back";

    fn register(self, methods: &mut Methods<'_>) {
        let options = ServiceOptions::default();
        methods.unary("TimeLeft", &Arc::new(self), &options, |_, request: Request<Raw>| async move {
            let remaining = Deadline::of(&request).map(|deadline| deadline.remaining().as_secs_f64());
            Ok(Response::new(raw(format!("{}", remaining.unwrap_or(-1.0)))))
        });
    }
}

/// Calls another server.
struct Front {
    backend: Channel,
    /// Outcomes of the calls in spawned tasks.
    spawned: mpsc::UnboundedSender<Code>,
}

impl Service for Front {
    const NAME: &'static str = "test.Front";

    fn register(self, methods: &mut Methods<'_>) {
        let (service, options) = (Arc::new(self), ServiceOptions::default());
        methods.unary("Forward", &service, &options, |front: Arc<Self>, request: Request<Raw>| async move {
            let backend = Parent::of(&request).caller(&front.backend);
            backend
                .unary::<Raw, Raw>(&TIME_LEFT, Request::new(request.into_inner()), &CallOptions::default())
                .await
        });
        methods.unary("Spawn", &service, &options, |front: Arc<Self>, request: Request<Raw>| async move {
            let parent = Parent::of(&request);
            let _guard = parent.guard();
            let (backend, spawned) = (parent.caller(&front.backend), front.spawned.clone());
            tokio::spawn(async move {
                let options = CallOptions::default();
                let outcome = backend.unary::<Raw, Raw>(&ECHO, Request::new(raw("sleep")), &options).await;
                let _ = spawned.send(outcome.map_or_else(|status| status.code(), |_| Code::Ok));
            });
            if request.get_ref() == &raw("wait") {
                front.spawned.send(Code::Ok).expect("the test waits for it");
                std::future::pending::<()>().await;
            }
            Ok::<_, Status>(Response::new(raw("")))
        });
    }
}

/// Starts a front, and returns the outcomes of its spawned calls.
async fn front() -> (Channel, mpsc::UnboundedReceiver<Code>) {
    let backend = Server::builder().add_service(Echo::default()).add_service(Backend);
    let backend = connect(&start(backend).await).await;
    let (spawned, ended) = mpsc::unbounded_channel();
    (connect(&serve(Front { backend, spawned }).await).await, ended)
}

fn within(timeout: Option<Duration>) -> Request<Raw> {
    let mut request = Request::new(raw(""));
    if let Some(timeout) = timeout {
        request.set_timeout(timeout);
    }
    request
}

#[tokio::test]
async fn handler_sees_remaining_time() {
    let check = async |channel: &Channel, method: &thalweg::Method, timeout: Option<Duration>| {
        let response = channel.unary::<Raw, Raw>(method, within(timeout), &CallOptions::default()).await;
        let Raw(remaining) = response.expect("a response").into_inner();
        let remaining: f64 = std::str::from_utf8(&remaining).expect("text").parse().expect("a number");
        match timeout {
            None => assert!(remaining < 0.0, "{remaining} s of no deadline"),
            Some(timeout) => {
                assert!(remaining > 0.0 && remaining <= timeout.as_secs_f64(), "{remaining} of {timeout:?}");
            }
        }
    };
    let direct = connect(&serve(Backend).await).await;
    let (front, _ended) = front().await;
    for timeout in [None, Some(Duration::from_secs(100)), Some(Duration::from_secs(1_000_000))] {
        check(&direct, &TIME_LEFT, timeout).await;
        check(&front, &FORWARD, timeout).await;
    }
}

/// Header blocks that differ only in the timeout; the server decodes the common part once.
#[tokio::test]
async fn deadlines_are_per_call() {
    let channel = connect(&serve(Backend).await).await;
    for hours in [9, 8, 8, 7, 1, 7, 2, 0, 2, 9, 0, 3] {
        let timeout = (hours > 0).then(|| Duration::from_secs(hours * 3600));
        let response = channel.unary::<Raw, Raw>(&TIME_LEFT, within(timeout), &CallOptions::default()).await;
        let Raw(remaining) = response.expect("a response").into_inner();
        let remaining: f64 = std::str::from_utf8(&remaining).expect("text").parse().expect("a number");
        // The times are hours apart, so the result does not depend on the machine's speed.
        assert_eq!(if remaining < 0.0 { 0 } else { (remaining / 3600.0).ceil() as u64 }, hours);
    }
}

#[tokio::test]
async fn child_has_earlier_deadline() {
    let channel = connect(&serve(Backend).await).await;
    let check =
        async |parent: Option<u64>, own_timeout: Option<u64>, option: Option<u64>, expected: Option<u64>| {
            let secs = |secs: Option<u64>| secs.map(Duration::from_secs);
            let deadline = secs(parent).map(|remaining| Deadline::at(Instant::now() + remaining));
            let mut options = CallOptions::default();
            options.timeout = secs(option);
            let caller = Parent::until(deadline).caller(&channel);
            let response = caller.unary::<Raw, Raw>(&TIME_LEFT, within(secs(own_timeout)), &options).await;
            let Raw(remaining) = response.expect("a response").into_inner();
            let remaining: f64 = std::str::from_utf8(&remaining).expect("text").parse().expect("a number");
            // The deadlines are hours apart, so the result does not depend on the machine's speed.
            let found = if remaining < 0.0 { None } else { Some((remaining / 3600.0).ceil() as u64 * 3600) };
            assert_eq!(found, expected);
        };
    check(None, None, None, None).await;
    check(Some(3600), None, None, Some(3600)).await;
    check(Some(3600), Some(7200), None, Some(3600)).await;
    check(Some(7200), Some(3600), None, Some(3600)).await;
    check(Some(7200), None, Some(3600), Some(3600)).await;
    check(Some(3600), None, Some(7200), Some(3600)).await;
    check(None, Some(3600), Some(7200), Some(3600)).await;
}

#[tokio::test]
async fn no_call_after_deadline() {
    let (front, _ended) = front().await;
    let parent = Parent::until(Some(Deadline::at(Instant::now())));
    let caller = parent.caller(&front);
    let outcome = caller.unary::<Raw, Raw>(&FORWARD, Request::new(raw("")), &CallOptions::default()).await;
    assert_eq!(outcome.expect_err("it is over").code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn spawned_calls_end_with_handler() {
    let (front, mut ended) = front().await;
    // The handler returns.
    let response = front.unary::<Raw, Raw>(&SPAWN, Request::new(raw("")), &CallOptions::default()).await;
    assert!(response.is_ok(), "{response:?}");
    assert_eq!(soon(ended.recv()).await, Some(Code::Cancelled));
    // The handler is cancelled while it waits.
    let call = tokio::spawn(async move {
        front.unary::<Raw, Raw>(&SPAWN, Request::new(raw("wait")), &CallOptions::default()).await
    });
    assert_eq!(soon(ended.recv()).await, Some(Code::Ok), "it has begun");
    call.abort();
    assert_eq!(soon(ended.recv()).await, Some(Code::Cancelled));
}

#[tokio::test]
async fn stream_ends_with_parent() {
    let channel = connect(&serve(Echo::default()).await).await;
    let parent = Parent::until(None);
    let (caller, guard, options) = (parent.caller(&channel), parent.guard(), CallOptions::default());
    let (sender, source) = mpsc::unbounded_channel::<Raw>();
    let chat = caller.bidi_streaming::<_, Raw>(&CHAT, Request::new(Receiver(source)), &options).await;
    let mut chat = chat.expect("it begins").into_inner();
    sender.send(raw("a")).expect("it is read");
    assert_eq!(chat.message().await.expect("no error"), Some(raw("a")));
    let order = Request::new(raw("2 1"));
    let repeat = caller.server_streaming::<Raw, Raw>(&REPEAT, order, &options).await.expect("it begins");
    let mut repeat = repeat.into_inner();
    assert!(repeat.message().await.expect("no error").is_some());
    drop(guard);
    assert_eq!(soon(chat.message()).await.expect_err("it is over").code(), Code::Cancelled);
    assert_eq!(chat.message().await.expect("nothing follows"), None);
    until(|| channel.lanes()[0].in_flight <= 1).await;
    // No new call can start.
    let requests = Request::new(items(vec![raw("a")]));
    let count = caller.client_streaming::<_, Raw>(&crate::support::COUNT, requests, &options).await;
    assert_eq!(count.expect_err("it is over").code(), Code::Cancelled);
    drop(repeat);
}
