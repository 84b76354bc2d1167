//! Lanes that open and close during calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::Kind;
use tokio::io::duplex;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use thalweg::channel::{Channel, Lanes};
use thalweg::server::{Methods, Server, Service};
use thalweg::{CallOptions, Method, Raw, Request, Response, ServiceOptions, Status};

use crate::support::peer::{HEAD, OK, Peer, connected};
use crate::support::{Receiver, chat, soon};

static HOLD: Method = Method::new("/test.Hold/Hold");

/// Responds to a call on demand.
struct Hold {
    arrived: AtomicUsize,
    go: Semaphore,
}

impl Hold {
    fn new(go: usize) -> Arc<Self> {
        Arc::new(Self { arrived: AtomicUsize::new(0), go: Semaphore::new(go) })
    }

    fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    async fn hold(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        self.go.acquire().await.expect("it is never closed").forget();
        Ok(Response::new(request.into_inner()))
    }
}

#[derive(Clone)]
struct HoldService(Arc<Hold>);

impl Service for HoldService {
    const NAME: &'static str = "test.Hold";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("Hold", &self.0, &ServiceOptions::default(), Hold::hold);
    }
}

/// Connects a channel with one lane to a server with this stream limit per connection; the tests open and close more
/// lanes.
async fn channel(hold: &Arc<Hold>, streams: u32) -> Channel {
    let hold = Arc::clone(hold);
    let connect = move || {
        let (near, far) = duplex(64 * 1024);
        let server =
            Server::builder().max_concurrent_streams(streams).add_service(HoldService(Arc::clone(&hold)));
        tokio::spawn(server.serve_connection(far));
        std::future::ready(Ok(near))
    };
    Channel::builder("memory:1").lanes(Lanes::fixed(1)).connector(connect).connect().await.expect("a server")
}

fn call_with(channel: &Channel, number: u8, options: CallOptions) -> JoinHandle<u8> {
    let channel = channel.clone();
    tokio::spawn(async move {
        let request = Request::new(Raw(Bytes::from(vec![number])));
        let response: Response<Raw> = channel.unary(&HOLD, request, &options).await.expect("a response");
        response.into_inner().0[0]
    })
}

fn call(channel: &Channel, number: u8) -> JoinHandle<u8> {
    call_with(channel, number, CallOptions::default())
}

async fn until(condition: impl Fn() -> bool) {
    let met = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), met).await.expect("the condition must be met");
}

fn in_flight(channel: &Channel) -> Vec<usize> {
    channel.lanes().iter().map(|lane| lane.in_flight).collect()
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_move_to_new_lane() {
    let hold = Hold::new(0);
    let channel = channel(&hold, 2).await;
    let calls: Vec<_> = (0..8).map(|number| call(&channel, number)).collect();
    until(|| hold.arrived() == 2 && channel.waiting() == 6).await;
    channel.engine().open_lanes(1, "a test");
    until(|| hold.arrived() == 4 && channel.waiting() == 4).await;
    assert_eq!(in_flight(&channel), [2, 2]);
    channel.engine().open_lanes(2, "a test");
    until(|| hold.arrived() == 8 && channel.waiting() == 0).await;
    assert_eq!(in_flight(&channel), [2, 2, 2, 2]);
    hold.go.add_permits(8);
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(usize::from(call.await.expect("no panic")), number);
    }
    assert_eq!(in_flight(&channel), [0, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_are_served_in_order_by_any_lane() {
    let hold = Hold::new(0);
    let channel = channel(&hold, 1).await;
    channel.engine().open_lanes(1, "a test");
    until(|| channel.lanes().iter().all(|lane| lane.state == "READY")).await;
    let (ended, mut order) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..20 {
        let (call, ended) = (call(&channel, number), ended.clone());
        tokio::spawn(async move { ended.send(call.await.expect("no panic")) });
        until(|| hold.arrived() + channel.waiting() == usize::from(number) + 1).await;
    }
    for number in 0..20 {
        hold.go.add_permits(1);
        let ended = order.recv().await.expect("one has ended");
        // Two calls run at a time, and either may finish first.
        assert!(ended.abs_diff(number) <= 1, "{ended} ended as number {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn lane_closes_after_last_call_without_failures() {
    let hold = Hold::new(0);
    let channel = channel(&hold, 100).await;
    channel.engine().open_lanes(1, "more calls than one lane carries");
    until(|| channel.lanes().iter().all(|lane| lane.state == "READY")).await;
    let calls: Vec<_> = (0..10).map(|number| call(&channel, number)).collect();
    until(|| hold.arrived() == 10).await;
    assert_eq!(in_flight(&channel), [5, 5]);
    let first = channel.lanes()[0].id;
    channel.engine().close_lanes(&[first], "it did not help");
    let lanes = channel.lanes();
    assert_eq!(lanes.len(), 2);
    assert!(!lanes[0].is_draining && lanes[0].reason == "more calls than one lane carries", "{lanes:?}");
    assert!(lanes[1].is_draining && lanes[1].id == first && lanes[1].in_flight == 5, "{lanes:?}");
    assert_eq!((lanes[1].state, &*lanes[1].reason), ("SHUTDOWN", "it did not help"));
    // New calls take the remaining lane, which cannot be closed.
    channel.engine().close_lanes(&[lanes[0].id], "it is the last");
    let late = call(&channel, 10);
    until(|| hold.arrived() == 11).await;
    assert_eq!(in_flight(&channel), [6, 5]);
    hold.go.add_permits(11);
    for (number, call) in calls.into_iter().chain([late]).enumerate() {
        assert_eq!(usize::from(call.await.expect("no panic")), number);
    }
    until(|| channel.lanes().len() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_lanes_open_and_close() {
    let hold = Hold::new(1_000_000);
    let channel = channel(&hold, 3).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let caller = |number| {
        let (channel, is_over) = (channel.clone(), Arc::clone(&is_over));
        tokio::spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                assert_eq!(call(&channel, number).await.expect("no panic"), number);
            }
        })
    };
    let callers: Vec<_> = (0..16).map(caller).collect();
    for _ in 0..100 {
        let arrived = hold.arrived();
        let lanes = channel.lanes();
        let open: Vec<_> = lanes.iter().filter(|lane| !lane.is_draining).map(|lane| lane.id).collect();
        if open.len() < 4 {
            channel.engine().open_lanes(1, "a test");
        } else {
            channel.engine().close_lanes(&open[..3], "a test");
        }
        until(|| hold.arrived() > arrived + 10).await;
    }
    is_over.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.expect("every call is answered");
    }
    assert_eq!(channel.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_with_same_key_use_one_lane() {
    let hold = Hold::new(0);
    let channel = channel(&hold, 100).await;
    channel.engine().open_lanes(3, "a test");
    until(|| channel.lanes().iter().all(|lane| lane.state == "READY")).await;
    for number in 0..10 {
        drop(call_with(&channel, number, CallOptions::default().affinity_key("the same")));
    }
    until(|| hold.arrived() == 10).await;
    let mut counts = in_flight(&channel);
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 0, 10]);
    for number in 10..100 {
        drop(call_with(&channel, number, CallOptions::default().affinity_key(number)));
    }
    until(|| hold.arrived() == 100).await;
    assert!(in_flight(&channel).iter().all(|&count| count >= 10), "{:?}", in_flight(&channel));
}

/// hyper-h2, which grpclib uses, ends a connection at GOAWAY, including all open streams.
#[tokio::test(start_paused = true)]
async fn goaway_is_sent_after_last_stream() {
    let check = async |is_dropped: bool| {
        let (channel, mut server, mut accepted) = connected(&[]).await;
        let (requests, receiver) = mpsc::unbounded_channel();
        let (responses, ()) = tokio::join!(chat(&channel, Receiver(receiver)), async {
            soon(server.next_of(Kind::Headers)).await;
            server.headers(1, false, HEAD).send().await;
        });
        let mut responses = responses.expect("a response");
        let channel = if is_dropped {
            drop(channel);
            None
        } else {
            let first = channel.lanes()[0].id;
            channel.engine().open_lanes(1, "a test");
            let second = Peer::server(soon(accepted.recv()).await.expect("another lane"), &[]).await;
            until(|| channel.lanes().iter().all(|lane| lane.state == "READY")).await;
            channel.engine().close_lanes(&[first], "a test");
            Some((channel, second))
        };
        for _ in 0..3 {
            requests.send(Raw(Bytes::from_static(b"x"))).expect("the call goes on");
            loop {
                let frame = soon(server.next()).await.expect("the connection goes on");
                assert_ne!(frame.kind, Kind::GoAway, "dropped: {is_dropped}");
                if frame.kind == Kind::Data {
                    break;
                }
            }
            server.message(1, false, b"y").send().await;
            let response = soon(responses.message()).await.expect("the call goes on");
            assert_eq!(response, Some(Raw(Bytes::from_static(b"y"))));
        }
        drop(requests);
        server.headers(1, true, OK).send().await;
        assert_eq!(soon(responses.message()).await.expect("OK"), None);
        let rest = soon(server.rest()).await;
        let last = rest.last().map(|frame| (frame.kind, frame.code()));
        assert_eq!(last, Some((Kind::GoAway, ErrorCode::NoError)), "dropped: {is_dropped}");
        drop(channel);
    };
    check(true).await;
    check(false).await;
}
