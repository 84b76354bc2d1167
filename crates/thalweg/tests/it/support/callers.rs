//! Callers of one channel that call continuously while its server restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use thalweg::channel::Lanes;
use thalweg::{CallOptions, Channel, Code, Request, Response, Status};
use tokio::task::JoinHandle;

use super::servers::Running;
use super::{CHAT, ECHO, items, raw, soon};

pub(crate) const CALLERS: usize = 8;

/// The calls to make, and the channel's settings.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) lanes: Lanes,
    pub(crate) calls: Calls,
    /// Jitter of the pauses between connection attempts. Tests can count failed attempts with it.
    pub(crate) jitter: fn() -> f64,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Calls {
    Unary,
    /// Bidirectional streams of a few messages.
    Streams,
    /// Every other caller uses streams.
    Both,
}

/// The callers of one channel, and their results.
pub(crate) struct Callers {
    pub(crate) channel: Channel,
    counters: Counters,
    tasks: Vec<JoinHandle<Vec<Status>>>,
}

#[derive(Clone, Default)]
struct Counters {
    is_over: Arc<AtomicBool>,
    /// Number of responses.
    responses: Arc<AtomicUsize>,
    /// Numbers of cuts that started and ended: a failed call must have met one.
    cuts_started: Arc<AtomicUsize>,
    cuts_ended: Arc<AtomicUsize>,
}

impl Callers {
    pub(crate) async fn start(target: &str, load: Load) -> Self {
        let builder = Channel::builder(target).lanes(load.lanes).backoff_jitter(load.jitter);
        let channel = builder.connect().await.expect("a server");
        let counters = Counters::default();
        let caller = |number: usize| {
            let has_streams = match load.calls {
                Calls::Unary => false,
                Calls::Streams => true,
                Calls::Both => number % 4 >= 2,
            };
            tokio::spawn(call(channel.clone(), counters.clone(), number, has_streams))
        };
        let tasks = (0..CALLERS).map(caller).collect();
        Self { channel, counters, tasks }
    }

    /// Waits for `more` further responses: the channel has recovered.
    pub(crate) async fn wait_for_responses(&self, more: usize) {
        let enough = self.counters.responses.load(Ordering::SeqCst) + more;
        self.wait("answers", || self.counters.responses.load(Ordering::SeqCst) >= enough).await;
    }

    /// Waits until `lanes` lanes are connected to this server, the only one running. A driver may be slow to notice
    /// that its connection to the previous server is gone.
    pub(crate) async fn wait_for_lanes(&self, server: &Running, lanes: usize) {
        self.wait("a connection of each lane", || {
            server.accepted.load(Ordering::SeqCst) >= lanes && self.all_ready()
        })
        .await;
    }

    pub(crate) fn all_ready(&self) -> bool {
        self.channel.lanes().iter().all(|lane| lane.state == "READY")
    }

    /// Waits for a condition; the time depends on the machine, so the timeout is long.
    pub(crate) async fn wait(&self, goal: &str, is_reached: impl Fn() -> bool) {
        let polling = async {
            while !is_reached() {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        let channel = &self.channel;
        tokio::time::timeout(Duration::from_secs(60), polling)
            .await
            .unwrap_or_else(|_| panic!("it does not come to {goal}: {channel:?}"));
    }

    pub(crate) fn begin_cut(&self) {
        self.counters.cuts_started.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end_cut(&self) {
        self.counters.cuts_ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the callers and returns the failures of all calls.
    pub(crate) async fn finish(self) -> Vec<Status> {
        self.counters.is_over.store(true, Ordering::SeqCst);
        let mut failures = Vec::new();
        for task in self.tasks {
            failures.extend(soon(task).await.expect("a caller found no fault"));
        }
        // The callers counted the calls that ended; dropped streams are cancelled.
        assert!(self.channel.lanes().iter().all(|lane| lane.in_flight == 0), "{:?}", self.channel);
        failures
    }
}

/// Checks that each failure names the target and what happened to the connection.
pub(crate) fn check_lost(failures: &[Status], target: &str) {
    for status in failures {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        let message = status.message();
        assert!(message.contains(target), "where is missing: {message}");
        assert!(message.contains("closed the connection") || message.contains("lost: "), "why: {message}");
    }
}

/// Calls until the test is over; returns the failures.
async fn call(channel: Channel, counters: Counters, number: usize, has_streams: bool) -> Vec<Status> {
    let mut failures = Vec::new();
    let mut options = CallOptions::default();
    // With this, only calls that were sent can fail.
    options.wait_for_ready = Some(true);
    while !counters.is_over.load(Ordering::SeqCst) {
        let ended_before = counters.cuts_ended.load(Ordering::SeqCst);
        let called = if has_streams {
            chat(&channel, &options).await
        } else {
            unary(&channel, number, &options).await
        };
        match called {
            Ok(()) => {
                counters.responses.fetch_add(1, Ordering::SeqCst);
            }
            Err(status) => {
                let began = counters.cuts_started.load(Ordering::SeqCst);
                assert!(began > ended_before, "failed with no reason: {status:?}");
                failures.push(status);
            }
        }
    }
    failures
}

async fn unary(channel: &Channel, number: usize, options: &CallOptions) -> Result<(), Status> {
    // Some handlers have to wait.
    let message = raw(if number.is_multiple_of(2) { "yield" } else { "x" });
    let response =
        channel.unary(&ECHO, Request::new(message.clone()), options).await.map(Response::into_inner)?;
    assert_eq!(message, response);
    Ok(())
}

async fn chat(channel: &Channel, options: &CallOptions) -> Result<(), Status> {
    let sent: Vec<_> = ["a", "bc", "def"].map(raw).into();
    let requests = Request::new(items(sent.clone()));
    let mut responses = channel.bidi_streaming(&CHAT, requests, options).await?.into_inner();
    let mut received = Vec::new();
    while let Some(response) = responses.message().await? {
        received.push(response);
    }
    assert_eq!(sent, received, "a stream that ends with OK is whole");
    Ok(())
}
