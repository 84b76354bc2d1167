//! Callers of one channel, who call without a pause while its server comes and goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use thalweg::channel::Lanes;
use thalweg::{CallOptions, Channel, Code, Request, Response, Status};
use tokio::task::JoinHandle;

use super::servers::Running;
use super::{CHAT, ECHO, items, raw, soon};

pub(crate) const CALLERS: usize = 8;

/// What is called, and through what.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) lanes: Lanes,
    pub(crate) calls: Calls,
    /// Gives pauses between attempts to connect their jitter: a test that counts its calls knows how many attempts
    /// failed.
    pub(crate) jitter: fn() -> f64,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Calls {
    Unary,
    /// Streams both ways, of some messages each.
    Streams,
    /// Every other caller has streams.
    Both,
}

/// What the callers of one channel saw.
pub(crate) struct Callers {
    pub(crate) channel: Channel,
    saw: Saw,
    tasks: Vec<JoinHandle<Vec<Status>>>,
}

#[derive(Clone, Default)]
struct Saw {
    is_over: Arc<AtomicBool>,
    /// Calls answered.
    answered: Arc<AtomicUsize>,
    /// How many cuts have begun, and how many are over: a call that fails must have met one.
    begun: Arc<AtomicUsize>,
    over: Arc<AtomicUsize>,
}

impl Callers {
    pub(crate) async fn start(target: &str, load: Load) -> Self {
        let builder = Channel::builder(target).lanes(load.lanes).backoff_jitter(load.jitter);
        let channel = builder.connect().await.expect("a server");
        let saw = Saw::default();
        let caller = |number: usize| {
            let has_streams = match load.calls {
                Calls::Unary => false,
                Calls::Streams => true,
                Calls::Both => number % 4 >= 2,
            };
            tokio::spawn(call(channel.clone(), saw.clone(), number, has_streams))
        };
        let tasks = (0..CALLERS).map(caller).collect();
        Self { channel, saw, tasks }
    }

    /// Waits until so many more calls are answered than are now: the channel has recovered.
    pub(crate) async fn answer(&self, more: usize) {
        let enough = self.saw.answered.load(Ordering::SeqCst) + more;
        self.wait("answers", || self.saw.answered.load(Ordering::SeqCst) >= enough).await;
    }

    /// Waits until each of so many lanes is connected to this server, which is the only one: a driver may be slow to
    /// see that the connection to the one before is gone.
    pub(crate) async fn reach(&self, server: &Running, lanes: usize) {
        self.wait("a connection of each lane", || {
            server.accepted.load(Ordering::SeqCst) >= lanes && self.all_ready()
        })
        .await;
    }

    pub(crate) fn all_ready(&self) -> bool {
        self.channel.lanes().iter().all(|lane| lane.state == "READY")
    }

    /// Waits for what must come; how long that takes is the machine's business, and what makes it come has no end.
    pub(crate) async fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let come = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        let channel = &self.channel;
        tokio::time::timeout(Duration::from_secs(60), come)
            .await
            .unwrap_or_else(|_| panic!("it does not come to {what}: {channel:?}"));
    }

    pub(crate) fn begin(&self) {
        self.saw.begun.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.saw.over.fetch_add(1, Ordering::SeqCst);
    }

    /// The failures of all calls.
    pub(crate) async fn finish(self) -> Vec<Status> {
        self.saw.is_over.store(true, Ordering::SeqCst);
        let mut failures = Vec::new();
        for task in self.tasks {
            failures.extend(soon(task).await.expect("a caller found no fault"));
        }
        // What ended is counted by the callers; streams are given up where they are dropped.
        assert!(self.channel.lanes().iter().all(|lane| lane.in_flight == 0), "{:?}", self.channel);
        failures
    }
}

/// Each failure says what became of the connection, and to where that was.
pub(crate) fn check_lost(failures: &[Status], target: &str) {
    for status in failures {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        let message = status.message();
        assert!(message.contains(target), "where is missing: {message}");
        assert!(message.contains("closed the connection") || message.contains("lost: "), "why: {message}");
    }
}

/// Calls until it is over; what failed.
async fn call(channel: Channel, saw: Saw, number: usize, has_streams: bool) -> Vec<Status> {
    let mut failures = Vec::new();
    let mut options = CallOptions::default();
    // What fails then has been sent: there was no other reason to.
    options.wait_for_ready = true;
    while !saw.is_over.load(Ordering::SeqCst) {
        let over_before = saw.over.load(Ordering::SeqCst);
        let called = if has_streams {
            chat(&channel, &options).await
        } else {
            unary(&channel, number, &options).await
        };
        match called {
            Ok(()) => {
                saw.answered.fetch_add(1, Ordering::SeqCst);
            }
            Err(status) => {
                let began = saw.begun.load(Ordering::SeqCst);
                assert!(began > over_before, "failed with no reason: {status:?}");
                failures.push(status);
            }
        }
    }
    failures
}

async fn unary(channel: &Channel, number: usize, options: &CallOptions) -> Result<(), Status> {
    // Some of the handlers have to wait.
    let message = raw(if number.is_multiple_of(2) { "yield" } else { "x" });
    let reply =
        channel.unary(&ECHO, Request::new(message.clone()), options).await.map(Response::into_inner)?;
    assert_eq!(message, reply);
    Ok(())
}

async fn chat(channel: &Channel, options: &CallOptions) -> Result<(), Status> {
    let sent: Vec<_> = ["a", "bc", "def"].map(raw).into();
    let requests = Request::new(items(sent.clone()));
    let mut replies = channel.bidi_streaming(&CHAT, requests, options).await?.into_inner();
    let mut received = Vec::new();
    while let Some(reply) = replies.message().await? {
        received.push(reply);
    }
    assert_eq!(sent, received, "a stream that ends with OK is whole");
    Ok(())
}
