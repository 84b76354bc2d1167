//! A network that stalls under load, and stalls that end in a cut: which calls may fail, and how.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::callers::{CALLERS, Callers, Calls, Load, check_lost};
use crate::support::{CHAT, ECHO, Echo, items, raw, serve, soon};
use thalweg::channel::Lanes;
use thalweg::{CallOptions, Channel, Code, Raw, Request, Status};
use thalweg_link::{Cut, Link, LinkOptions};

const LANES: usize = 2;

/// A server behind a link.
async fn linked() -> Link {
    let server = serve(Echo::default()).await;
    let listen = "127.0.0.1:0".parse().expect("an address");
    Link::start(LinkOptions::new(listen, server.parse().expect("an address"))).expect("a link")
}

/// Makes a call through a stalled link: no response can arrive.
async fn short_keepalive(channel: Channel, is_stream: bool) -> Status {
    let mut options = CallOptions::default();
    options.timeout = Some(Duration::from_millis(5));
    let outcome = if is_stream {
        let requests = Request::new(items(vec![raw("x")]));
        let opened = channel.bidi_streaming::<_, Raw>(&CHAT, requests, &options).await;
        opened.map(drop)
    } else {
        channel.unary::<_, Raw>(&ECHO, Request::new(raw("x")), &options).await.map(drop)
    };
    outcome.expect_err("nothing moves")
}

/// Stalls the link 200 times, and resumes it after the deadlines of some calls have passed.
async fn stall(load: Load) {
    let link = linked().await;
    let callers = Callers::start(&link.address().to_string(), load).await;
    for _ in 0..200 {
        callers.wait_for_responses(20).await;
        link.stall();
        let short_keepalive: Vec<_> =
            (0..4).map(|n| tokio::spawn(short_keepalive(callers.channel.clone(), n % 2 == 0))).collect();
        for call in short_keepalive {
            let status = soon(call).await.expect("no panic");
            assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
            assert!(status.message().contains("deadline"), "{status:?}");
        }
        link.resume();
    }
    callers.wait_for_responses(20).await;
    let failures = callers.finish().await;
    assert!(failures.is_empty(), "who has no deadline waits: {failures:?}");
    let connections = link.stats().connections;
    assert_eq!((connections.cut, connections.reset), (0, 0), "{connections:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_stalls_fail_no_call() {
    stall(Load { lanes: Lanes::fixed(LANES), calls: Calls::Both, jitter: || 0.0 }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_stalls_with_adaptive_lanes_fail_no_call() {
    stall(Load { lanes: Lanes::adaptive().cap(4), calls: Calls::Both, jitter: || 0.0 }).await;
}

/// Failed connection attempts, in tests that expect none.
static FAILED: AtomicUsize = AtomicUsize::new(0);

fn count_failed() -> f64 {
    FAILED.fetch_add(1, Ordering::SeqCst);
    0.0
}

/// Stalls the link 200 times, and cuts its connections each time before it resumes.
async fn stall_and_cut(load: Load) {
    let is_fixed = load.lanes == Lanes::fixed(LANES);
    let link = linked().await;
    let target = link.address().to_string();
    let callers = Callers::start(&target, load).await;
    let mut cut = 0;
    for _ in 0..200 {
        callers.wait_for_responses(20).await;
        callers.begin_cut();
        link.stall();
        cut += link.cut(Cut::Reset);
        link.resume();
        if is_fixed {
            // Cut connections do not count as open, and each lane has one connection.
            let reached = || link.stats().connections.open == LANES as u64 && callers.all_ready();
            callers.wait("a connection of each lane", reached).await;
            callers.end_cut();
        }
    }
    callers.wait_for_responses(20).await;
    let failures = callers.finish().await;
    check_lost(&failures, &target);
    // A caller has one call at a time, and that fails once with a connection.
    assert!(failures.len() <= CALLERS * cut, "{} of {cut}", failures.len());
    assert!(!is_fixed || cut == LANES * 200, "{cut}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_cuts_while_stalled_recover() {
    stall_and_cut(Load { lanes: Lanes::fixed(LANES), calls: Calls::Both, jitter: count_failed }).await;
    assert_eq!(FAILED.load(Ordering::SeqCst), 0, "the link listens all the time: no backoff");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_cuts_while_stalled_with_adaptive_lanes_recover() {
    stall_and_cut(Load { lanes: Lanes::adaptive().cap(4), calls: Calls::Both, jitter: || 0.0 }).await;
}
