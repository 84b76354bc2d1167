//! SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 §5.1.2): calls without a free stream wait for their turn.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use thalweg_engine::http2::ErrorCode;
use thalweg_engine::http2::frame::{Kind, Setting};
use thalweg_engine::{Code, Lanes};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::support::peer::{OK, OK_HEADERS, Peer};
use crate::support::{
    Echo, Receiver, Served, chat, connected, echo, in_flight, raw, server_config, soon, spawn_echo,
    spawn_echo_with, until, within,
};

/// Echoes the next call's message, and returns it.
async fn respond_next(peer: &mut Peer) -> String {
    let data = soon(peer.next_of(Kind::Data)).await;
    let message = String::from_utf8(data.payload[5..].to_vec()).expect("text");
    peer.headers(data.stream, false, OK_HEADERS).message(data.stream, false, &data.payload[5..]);
    peer.headers(data.stream, true, OK).send().await;
    message
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_limit_wait_in_their_order() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxConcurrentStreams(1)]).await;
    let mut calls = Vec::new();
    for number in 0..20_usize {
        calls.push(spawn_echo(&channel, &number.to_string()));
        until(|| in_flight(&channel) + channel.waiting() == number + 1).await;
    }
    assert_eq!((in_flight(&channel), channel.waiting()), (1, 19));
    for number in 0..20 {
        assert_eq!(respond_next(&mut peer).await, number.to_string());
    }
    for call in calls {
        soon(call).await.expect("no panic").expect("a response");
    }
    assert_eq!((in_flight(&channel), channel.waiting()), (0, 0));
}

/// Waiting calls keep their order when a new call arrives just as a stream becomes free.
#[tokio::test(start_paused = true)]
async fn new_call_does_not_change_the_order_of_those_that_wait() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxConcurrentStreams(1)]).await;
    let first = tokio::spawn({
        let channel = channel.clone();
        async move {
            echo(&channel, raw("first")).await.expect("a response");
            // Before the calls woken by its end are polled.
            echo(&channel, raw("new")).await.expect("a response");
        }
    });
    until(|| in_flight(&channel) == 1).await;
    let waiting = ["second", "third", "fourth"].map(|message| spawn_echo(&channel, message));
    until(|| channel.waiting() == 3).await;
    let mut messages = Vec::new();
    for _ in 0..5 {
        messages.push(respond_next(&mut peer).await);
    }
    messages.retain(|message| message != "new");
    assert_eq!(messages, ["first", "second", "third", "fourth"]);
    soon(first).await.expect("no panic");
    for call in waiting {
        soon(call).await.expect("no panic").expect("a response");
    }
}

/// A call that gives up while it waits leaves the queue; its wake-up passes to the next.
#[tokio::test(start_paused = true)]
async fn abandoned_call_leaves_the_queue() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxConcurrentStreams(1)]).await;
    let first = spawn_echo(&channel, "first");
    until(|| in_flight(&channel) == 1).await;
    let hurried = spawn_echo_with(&channel, raw("hurried"), within(Duration::from_secs(1)));
    let dropped = spawn_echo(&channel, "dropped");
    let last = spawn_echo(&channel, "last");
    until(|| channel.waiting() == 3).await;
    assert_eq!(soon(hurried).await.expect("no panic").expect_err("late").code(), Code::DeadlineExceeded);
    dropped.abort();
    until(|| channel.waiting() == 1).await;
    assert_eq!(respond_next(&mut peer).await, "first");
    assert_eq!(respond_next(&mut peer).await, "last");
    soon(first).await.expect("no panic").expect("a response");
    soon(last).await.expect("no panic").expect("a response");
}

/// A reset frees a stream for the next call, and so does a dropped stream.
#[tokio::test(start_paused = true)]
async fn reset_stream_frees_a_turn() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxConcurrentStreams(1)]).await;
    let first = spawn_echo(&channel, "first");
    let data = soon(peer.next_of(Kind::Data)).await;
    let second = tokio::spawn({
        let channel = channel.clone();
        async move { chat(&channel, Receiver(mpsc::unbounded_channel().1)).await.map(drop) }
    });
    until(|| channel.waiting() == 1).await;
    peer.reset(data.stream, ErrorCode::Cancel).send().await;
    soon(first).await.expect("no panic").expect_err("it was reset");
    let headers = soon(peer.next_of(Kind::Headers)).await;
    let third = spawn_echo(&channel, "third");
    until(|| channel.waiting() == 1).await;
    peer.headers(headers.stream, false, OK_HEADERS).send().await;
    soon(second).await.expect("no panic").expect("a head, and dropped");
    assert_eq!(respond_next(&mut peer).await, "third");
    soon(third).await.expect("no panic").expect("a response");
}

/// When the server's SETTINGS permit more streams, waiting calls use them.
#[tokio::test(start_paused = true)]
async fn raised_limit_admits_waiting_calls() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxConcurrentStreams(0)]).await;
    let calls = ["a", "b", "c"].map(|message| spawn_echo(&channel, message));
    until(|| channel.waiting() == 3).await;
    peer.settings(&[Setting::MaxConcurrentStreams(2)]).send().await;
    until(|| in_flight(&channel) == 2).await;
    assert_eq!(channel.waiting(), 1);
    for expected in ["a", "b", "c"] {
        assert_eq!(respond_next(&mut peer).await, expected);
    }
    for call in calls {
        soon(call).await.expect("no panic").expect("a response");
    }
}

/// Unsent header blocks are bounded: further calls wait until some have been sent.
#[tokio::test(start_paused = true)]
async fn calls_with_unsent_headers_are_bounded() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxConcurrentStreams(100_000)]).await;
    let calls: Vec<_> = (0..10_000).map(|_| spawn_echo(&channel, "x")).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let waiting = channel.waiting();
    assert!((1..6000).contains(&waiting), "{waiting} of 10,000 wait, {} are open", in_flight(&channel));
    let mut seen = 0;
    while seen < 10_000 {
        seen += usize::from(soon(peer.next()).await.expect("it goes on").kind == Kind::Headers);
    }
    assert_eq!((in_flight(&channel), channel.waiting()), (10_000, 0));
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

/// On a server with one stream, many callers get all their responses.
#[tokio::test(start_paused = true)]
async fn every_waiting_call_gets_a_turn() {
    let config = server_config(|config| config.http2.max_concurrent_streams = 1);
    let channel = Served::start(config, Echo::default().router()).channel(|_| {}).await;
    let callers: Vec<_> = (0..20)
        .map(|number: usize| {
            let channel = channel.clone();
            tokio::spawn(async move {
                for round in 0..20 {
                    let message = if (number + round).is_multiple_of(3) { raw("yield") } else { raw("x") };
                    assert_eq!(echo(&channel, message.clone()).await.expect("a response"), message);
                }
            })
        })
        .collect();
    for caller in callers {
        soon(caller).await.expect("no panic");
    }
}

/// Callers that make one call after another do not overtake calls that wait.
#[tokio::test(start_paused = true)]
async fn callers_take_turns_for_a_single_stream() {
    const CALLERS: usize = 64;
    let config = server_config(|config| config.http2.max_concurrent_streams = 1);
    let channel = Served::start(config, Echo::default().router()).channel(|_| {}).await;
    let counts: Arc<[AtomicUsize; CALLERS]> = Arc::new([const { AtomicUsize::new(0) }; CALLERS]);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (channel, counts) = (channel.clone(), Arc::clone(&counts));
            tokio::spawn(async move {
                for _ in 0..20 {
                    echo(&channel, raw("x")).await.expect("a response");
                    counts[caller].fetch_add(1, Ordering::SeqCst);
                    let made = || counts.iter().map(|count| count.load(Ordering::SeqCst));
                    let (least, most) = (made().min().expect("callers"), made().max().expect("callers"));
                    assert!(most - least <= 1, "{least} to {most} calls");
                }
            })
        })
        .collect();
    for caller in callers {
        soon(caller).await.expect("no panic");
    }
}

/// A call that waits and whose future is not polled delays the others for a second at most.
#[tokio::test(start_paused = true)]
async fn call_that_is_not_polled_gives_up_its_turn() {
    let (channel, mut peer, _accepted) = connected(&[Setting::MaxConcurrentStreams(1)]).await;
    let first = spawn_echo(&channel, "first");
    until(|| in_flight(&channel) == 1).await;
    let mut stalled = pin!(echo(&channel, raw("stalled")));
    assert!(is_pending(stalled.as_mut()).await);
    let third = spawn_echo(&channel, "third");
    until(|| channel.waiting() == 2).await;
    assert_eq!(respond_next(&mut peer).await, "first");
    soon(first).await.expect("no panic").expect("a response");
    let started = Instant::now();
    assert_eq!(respond_next(&mut peer).await, "third");
    assert!(started.elapsed() <= Duration::from_secs(1), "{:?}", started.elapsed());
    soon(third).await.expect("no panic").expect("a response");
    let responded = async { assert_eq!(respond_next(&mut peer).await, "stalled") };
    let (outcome, ()) = tokio::join!(soon(stalled), responded);
    outcome.expect("a response");
}

/// Polls a future once, and returns whether it waits.
async fn is_pending<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

/// New lanes take waiting calls, and calls use the lane with the fewest.
#[tokio::test(start_paused = true)]
async fn calls_are_divided_among_lanes() {
    let config = server_config(|config| config.http2.max_concurrent_streams = 2);
    let channel = Served::start(config, Echo::default().router()).channel(|_| {}).await;
    let calls: Vec<_> = (0..8).map(|_| spawn_echo(&channel, "sleep")).collect();
    until(|| channel.waiting() == 6).await;
    channel.open_lanes(1, "a test");
    until(|| channel.waiting() == 4).await;
    channel.open_lanes(2, "a test");
    until(|| channel.waiting() == 0).await;
    let lanes = channel.lanes();
    assert_eq!(lanes.iter().map(|lane| lane.in_flight).collect::<Vec<_>>(), [2, 2, 2, 2]);
    assert!(lanes.iter().all(|lane| lane.state == "READY" && !lane.is_draining), "{lanes:?}");
    // A closing lane finishes its calls and accepts no more.
    channel.close_lanes(&[lanes[3].id], "a test");
    let lanes = channel.lanes();
    assert!(lanes[3].is_draining && lanes[3].state == "SHUTDOWN" && lanes[3].in_flight == 2, "{lanes:?}");
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    until(|| channel.lanes().len() == 3).await;
    assert_eq!(soon(echo(&channel, raw("x"))).await.expect("a response"), raw("x"));
}

#[tokio::test(start_paused = true)]
async fn fixed_lanes_share_the_calls_evenly() {
    let service = Echo::default();
    let channel = Served::echo(&service).channel(|config| config.lanes = Lanes::fixed(3)).await;
    let calls: Vec<_> = (0..9).map(|_| spawn_echo(&channel, "sleep")).collect();
    until(|| service.started() == 9).await;
    assert_eq!(channel.lanes().iter().map(|lane| lane.in_flight).collect::<Vec<_>>(), [3, 3, 3]);
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    until(|| service.cancelled() == 9).await;
}
