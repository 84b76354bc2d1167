//! Servers that are killed, stopped or restarted under load, on real sockets: which calls may fail, and how.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::callers::{CALLERS, Callers, Calls, Load, check_lost};
use crate::support::servers::{Port, Running};
use crate::support::soon;
use thalweg::channel::Lanes;

const LANES: usize = 2;

/// Failed connection attempts, in tests that expect none.
static FAILED: AtomicUsize = AtomicUsize::new(0);

fn two_lanes(calls: Calls) -> Load {
    Load { lanes: Lanes::fixed(LANES), calls, jitter: || 0.0 }
}

/// Like [`two_lanes`], for a port that always has a listener.
fn two_lanes_without_failed_attempts(calls: Calls) -> Load {
    let jitter = || {
        FAILED.fetch_add(1, Ordering::SeqCst);
        0.0
    };
    Load { jitter, ..two_lanes(calls) }
}

/// The number of lanes changes while the server restarts.
fn adaptive() -> Load {
    Load { lanes: Lanes::adaptive().cap(4), calls: Calls::Both, jitter: || 0.0 }
}

/// Kills the server 200 times, while its listener stays.
async fn kill(load: Load) {
    let is_fixed = load.lanes == Lanes::fixed(LANES);
    let port = Port::new();
    let listener = port.listen();
    let mut running = Running::share(&listener);
    let callers = Callers::start(&port.target(), load).await;
    let mut connections = 0;
    for _ in 0..200 {
        callers.wait_for_responses(20).await;
        callers.begin_cut();
        connections += running.kill().await;
        running = Running::share(&listener);
        if is_fixed {
            callers.wait_for_lanes(&running, LANES).await;
            callers.end_cut();
        }
    }
    callers.wait_for_responses(20).await;
    let failures = callers.finish().await;
    check_lost(&failures, &port.target());
    // A call fails once with a connection that is killed. Its caller's next call may take another lane whose driver has
    // not noticed the loss yet, but not the same lane.
    assert!(failures.len() <= CALLERS * connections, "{} of {connections}", failures.len());
    assert_eq!(FAILED.load(Ordering::SeqCst), 0, "the listener was there all the time: no backoff");
    running.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_two_hundred_times() {
    kill(two_lanes_without_failed_attempts(Calls::Unary)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_two_hundred_times_with_streams() {
    kill(two_lanes_without_failed_attempts(Calls::Streams)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_two_hundred_times_with_adaptive_lanes() {
    kill(adaptive()).await;
}

/// Stops the server 200 times, while its listener stays.
async fn stop(load: Load) {
    let port = Port::new();
    let listener = port.listen();
    let mut running = Running::share(&listener);
    let callers = Callers::start(&port.target(), load).await;
    for _ in 0..200 {
        callers.wait_for_responses(20).await;
        running.stop().await;
        running = Running::share(&listener);
    }
    callers.wait_for_responses(20).await;
    let failures = callers.finish().await;
    assert!(failures.is_empty(), "a graceful end fails no call: {failures:?}");
    running.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_shutdown_two_hundred_times() {
    stop(two_lanes(Calls::Unary)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_shutdown_two_hundred_times_with_streams() {
    stop(two_lanes(Calls::Streams)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graceful_shutdown_two_hundred_times_with_adaptive_lanes() {
    stop(adaptive()).await;
}

/// Kills the server, leaves its port without a listener for a moment, and starts another server there.
async fn restart(count: usize, load: Load) {
    let is_fixed = load.lanes == Lanes::fixed(LANES);
    let port = Port::new();
    let mut running = Running::start(port.listen());
    let callers = Callers::start(&port.target(), load).await;
    let mut connections = 0;
    for _ in 0..count {
        callers.wait_for_responses(20).await;
        callers.begin_cut();
        // Dropped with its listener.
        running.serving.abort();
        let _ = soon(&mut running.serving).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        connections += running.kill().await;
        running = Running::start(port.listen());
        if is_fixed {
            callers.wait_for_lanes(&running, LANES).await;
            callers.end_cut();
        }
    }
    callers.wait_for_responses(20).await;
    let failures = callers.finish().await;
    check_lost(&failures, &port.target());
    assert!(failures.len() <= CALLERS * connections, "{} of {connections}", failures.len());
    running.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_two_hundred_times() {
    // Each costs one pause of the backoff, so they run concurrently.
    let loads = [two_lanes(Calls::Unary), two_lanes(Calls::Streams), adaptive()];
    let all: Vec<_> = (0..60).map(|number| tokio::spawn(restart(10, loads[number % 3].clone()))).collect();
    for one in all {
        one.await.expect("as it should be");
    }
}
