//! How soon a channel recovers from an outage: by gRPC's backoff, in virtual time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{ECHO, Echo, raw, spawn_echo, until};
use thalweg::channel::Lanes;
use thalweg::{CallOptions, Channel, Code, Raw, Request, Response, Server, Status};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A server behind pipes that is there, or is not.
#[derive(Clone, Default)]
struct Remote {
    is_gone: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// When somebody tried to connect.
    attempts: Arc<Mutex<Vec<Instant>>>,
}

impl Remote {
    fn channel(&self, lanes: Lanes) -> Channel {
        let remote = self.clone();
        let builder = Channel::builder("remote:1").lanes(lanes).backoff_jitter(|| 0.0);
        builder.connector(move || std::future::ready(remote.connect())).connect_lazy().expect("a channel")
    }

    fn connect(&self) -> io::Result<DuplexStream> {
        self.attempts.lock().unwrap().push(Instant::now());
        if self.is_gone.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (client, server) = tokio::io::duplex(64 * 1024);
        let server = Server::builder().add_service(Echo::default()).serve_connection(server);
        self.connections.lock().unwrap().push(tokio::spawn(server));
        Ok(client)
    }

    async fn fail(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
        let connections = std::mem::take(&mut *self.connections.lock().unwrap());
        for connection in connections {
            connection.abort();
            let _ = connection.await;
        }
        self.attempts.lock().unwrap().clear();
    }
}

/// When, after an outage began, the first attempt comes that finds the server there: of gRPC's pauses of 1 s, 1.6 s,
/// 2.56 s ... 120 s, each is taken at its lower end, four fifths of it. And how many attempts failed before.
fn recovery(outage: Duration) -> (Duration, usize) {
    let (mut at, mut failed, mut pause_s) = (Duration::ZERO, 0, 1.0_f64);
    while at < outage {
        at += Duration::from_secs_f64(0.8 * pause_s.min(120.0));
        failed += 1;
        pause_s *= 1.6;
    }
    (at, failed)
}

/// Timers have a resolution of so much.
const TICK: Duration = Duration::from_millis(1);

async fn check(lanes: Lanes) {
    let remote = Remote::default();
    let channel = remote.channel(lanes);
    let mut options = CallOptions::default();
    options.wait_for_ready = true;
    let mut outages = 0;
    // From 10 ms to half an hour.
    for number in 0..200 {
        let outage = Duration::from_secs_f64(0.01 * 1.0625_f64.powi(number));
        let (expected, failed) = recovery(outage);
        if expected < outage + 50 * TICK {
            // Which of the two comes first is a matter of ticks.
            continue;
        }
        outages += 1;
        // Whoever is on the way fails, and all lanes know it.
        let lost: Vec<_> = (0..4).map(|_| spawn_echo(&channel, "sleep")).collect();
        until(|| channel.lanes().iter().map(|lane| lane.in_flight).sum::<usize>() == 4).await;
        remote.fail().await;
        for call in lost {
            let status = call.await.expect("no panic").expect_err("it is gone");
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
            assert!(status.message().contains("closed the connection"), "{status:?}");
        }
        until(|| channel.lanes().iter().all(|lane| lane.state != "READY")).await;
        remote.attempts.lock().unwrap().clear();

        let began = Instant::now();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let (channel, options) = (channel.clone(), options.clone());
                tokio::spawn(async move { call(&channel, &options).await.map(|_| Instant::now()) })
            })
            .collect();
        // Whoever does not wait is told why.
        tokio::time::sleep(outage).await;
        let status = call(&channel, &CallOptions::default()).await.expect_err("nobody is there");
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains("connection refused"), "{status:?}");
        remote.is_gone.store(false, Ordering::SeqCst);
        for call in waiting {
            let answered = call.await.expect("no panic").expect("an answer") - began;
            let latest = expected + TICK * (failed as u32 + 1);
            assert!((expected..=latest).contains(&answered), "{outage:?}: {answered:?}, not {expected:?}");
        }
        let attempts = remote.attempts.lock().unwrap().len();
        assert_eq!(attempts, failed + 1, "{outage:?}: attempts");
    }
    assert!(outages > 150, "{outages}");
}

async fn call(channel: &Channel, options: &CallOptions) -> Result<Response<Raw>, Status> {
    channel.unary(&ECHO, Request::new(raw("x")), options).await
}

#[tokio::test(start_paused = true)]
async fn one_lane_recovers_with_the_first_attempt_that_the_backoff_permits() {
    check(Lanes::fixed(1)).await;
}

#[tokio::test(start_paused = true)]
async fn of_several_lanes_one_tries_until_it_recovers() {
    check(Lanes::fixed(3)).await;
}

#[tokio::test(start_paused = true)]
async fn adaptive_lanes_recover_as_fixed_ones() {
    check(Lanes::adaptive().floor(1).cap(3)).await;
}
