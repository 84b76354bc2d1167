//! Recovery from outages with gRPC's backoff, in virtual time.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{ECHO, Echo, raw, spawn_echo, until};
use thalweg::channel::{Backoff, ChannelBuilder, Lanes};
use thalweg::{CallOptions, Channel, Code, Raw, Request, Response, Server, Status};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A server behind pipes that can be made unavailable.
#[derive(Clone, Default)]
struct Remote {
    is_removed: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// Times of connection attempts.
    attempts: Arc<Mutex<Vec<Instant>>>,
}

impl Remote {
    fn channel(&self, lanes: Lanes) -> Channel {
        self.channel_of(Channel::builder("remote:1").lanes(lanes).backoff_jitter(|| 0.0))
    }

    fn channel_of(&self, builder: ChannelBuilder) -> Channel {
        let remote = self.clone();
        builder.connector(move || std::future::ready(remote.connect())).connect_lazy().expect("a channel")
    }

    fn connect(&self) -> io::Result<DuplexStream> {
        self.attempts.lock().unwrap().push(Instant::now());
        if self.is_removed.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (client, server) = tokio::io::duplex(64 * 1024);
        let server = Server::builder().add_service(Echo::default()).serve_connection(server);
        let serving = tokio::spawn(async { server.await.expect("a configuration") });
        self.connections.lock().unwrap().push(serving);
        Ok(client)
    }

    /// Returns the times of connection attempts in ms after `began`.
    fn attempts_after(&self, began: Instant) -> Vec<u128> {
        self.attempts.lock().unwrap().iter().map(|at| (*at - began).as_millis()).collect()
    }

    async fn fail(&self) {
        self.is_removed.store(true, Ordering::SeqCst);
        let connections = std::mem::take(&mut *self.connections.lock().unwrap());
        for connection in connections {
            connection.abort();
            let _ = connection.await;
        }
        self.attempts.lock().unwrap().clear();
    }
}

/// Returns the time after the start of an outage at which the first attempt succeeds, and the number of failed
/// attempts. gRPC's pauses of 1 s, 1.6 s, 2.56 s ... 120 s are taken at their lower end, four fifths.
fn recovery(outage: Duration) -> (Duration, usize) {
    let (mut at, mut failed, mut pause_s) = (Duration::ZERO, 0, 1.0_f64);
    while at < outage {
        at += Duration::from_secs_f64(0.8 * pause_s.min(120.0));
        failed += 1;
        pause_s *= 1.6;
    }
    (at, failed)
}

/// Resolution of timers.
const TICK: Duration = Duration::from_millis(1);

async fn check(lanes: Lanes) {
    let remote = Remote::default();
    let channel = remote.channel(lanes);
    let mut options = CallOptions::default();
    options.wait_for_ready = Some(true);
    let mut outages = 0;
    // From 10 ms to half an hour.
    for number in 0..200 {
        let outage = Duration::from_secs_f64(0.01 * 1.0625_f64.powi(number));
        let (expected, failed) = recovery(outage);
        if expected < outage + 50 * TICK {
            // Too close to tell which comes first.
            continue;
        }
        outages += 1;
        // Calls in flight fail, so all lanes notice the outage.
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
        // A call that does not wait fails with the reason.
        tokio::time::sleep(outage).await;
        let status = call(&channel, &CallOptions::default()).await.expect_err("nobody is there");
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains("connection refused"), "{status:?}");
        remote.is_removed.store(false, Ordering::SeqCst);
        for call in waiting {
            let recovered_after = call.await.expect("no panic").expect("a response") - began;
            let latest = expected + TICK * (failed as u32 + 1);
            assert!(
                (expected..=latest).contains(&recovered_after),
                "{outage:?}: {recovered_after:?}, not {expected:?}"
            );
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
async fn single_lane_recovers_at_first_permitted_attempt() {
    check(Lanes::fixed(1)).await;
}

#[tokio::test(start_paused = true)]
async fn only_one_lane_retries_until_recovery() {
    check(Lanes::fixed(3)).await;
}

#[tokio::test(start_paused = true)]
async fn adaptive_lanes_recover_like_fixed_lanes() {
    check(Lanes::adaptive().floor(1).cap(3)).await;
}

/// Spawns a call that waits for a connection.
fn spawn_patient(channel: &Channel) -> JoinHandle<Result<Response<Raw>, Status>> {
    let (channel, mut options) = (channel.clone(), CallOptions::default());
    options.wait_for_ready = Some(true);
    tokio::spawn(async move { call(&channel, &options).await })
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn configured_backoff_sets_pauses() {
    let check = async |backoff: Backoff, expected: &[u128]| {
        let remote = Remote::default();
        remote.fail().await;
        let began = Instant::now();
        let builder = Channel::builder("remote:1").lanes(1).connect_backoff(backoff);
        let channel = remote.channel_of(builder.backoff_jitter(|| 1.0));
        let call = spawn_patient(&channel);
        tokio::time::sleep(ms(expected[expected.len() - 1] as u64 + 20)).await;
        call.abort();
        let found = remote.attempts_after(began);
        assert_eq!(found.len(), expected.len(), "{backoff:?}: {found:?}");
        // Each pause may be late by a timer tick.
        let is_about =
            |(found, expected): (&u128, &u128)| (0..=10).contains(&found.saturating_sub(*expected));
        assert!(found.iter().zip(expected).all(is_about), "{backoff:?}: {found:?}, not {expected:?}");
    };
    check(Backoff::default(), &[0, 1200, 1200 + 1920]).await;
    let quick = Backoff::default().base_delay(ms(50)).jitter(0.0);
    check(quick, &[0, 50, 50 + 80, 50 + 80 + 128]).await;
    let doubled = quick.multiplier(2.0).max_delay(ms(200));
    check(doubled, &[0, 50, 150, 350, 550, 750]).await;
    check(doubled.jitter(1.0), &[0, 100, 300, 700, 1100]).await;
}

/// The error names the number of failed attempts, the duration, the time of the next attempt, and the last error.
#[tokio::test(start_paused = true)]
async fn outage_is_reported_in_lane_snapshots() {
    let attempts = AtomicUsize::new(0);
    let builder = Channel::builder("remote:1").lanes(1).backoff_jitter(|| 0.0).connector(move || {
        let error = match attempts.fetch_add(1, Ordering::SeqCst) {
            0 => io::ErrorKind::ConnectionRefused,
            _ => io::ErrorKind::HostUnreachable,
        };
        std::future::ready(Err::<DuplexStream, _>(error.into()))
    });
    let channel = builder.connect_lazy().expect("a channel");
    let waiting = spawn_patient(&channel);
    let check = async |expected: &str| {
        let status = call(&channel, &CallOptions::default()).await.expect_err("nobody is there");
        let expected =
            format!("failed to connect to remote:1: {expected} [/test.Echo/Echo to remote:1, connecting]");
        assert_eq!(status.message(), expected);
    };
    tokio::time::sleep(ms(300)).await;
    check("connection refused (check that the server is running); next attempt in 0.5 s").await;
    // Attempts at 0 s, 0.8 s and 2.08 s; the next would follow at 4.13 s.
    tokio::time::sleep(ms(2800)).await;
    let unreachable = "host unreachable (check the network route)";
    check(&format!("{unreachable}; 3 attempts failed in 3.1 s, next attempt in 1.0 s")).await;
    // The pauses restart, but the outage does not.
    channel.reset_connect_backoff();
    tokio::time::sleep(ms(100)).await;
    check(&format!("{unreachable}; 4 attempts failed in 3.2 s, next attempt in 0.7 s")).await;
    waiting.abort();
}

/// Like grpc-go's `ResetConnectBackoff`: waiting calls get an attempt at once, and the pauses restart.
#[tokio::test(start_paused = true)]
async fn reset_connect_backoff_ends_pause() {
    let check = async |lanes: usize| {
        let remote = Remote::default();
        remote.fail().await;
        let began = Instant::now();
        let channel = remote.channel(Lanes::fixed(lanes));
        let waiting = spawn_patient(&channel);
        tokio::time::sleep(ms(5000)).await;
        // Attempts at 0 s, then after pauses of 0.8 s, 1.28 s and 2.05 s; the next would follow at 7.4 s.
        assert_eq!(remote.attempts_after(began).len(), 4, "{lanes} lanes");
        channel.reset_connect_backoff();
        tokio::time::sleep(ms(100)).await;
        assert_eq!(remote.attempts_after(began).len(), 5, "{lanes} lanes: at once");
        tokio::time::sleep(ms(800)).await;
        assert_eq!(remote.attempts_after(began).len(), 6, "{lanes} lanes: the first pause again");
        remote.is_removed.store(false, Ordering::SeqCst);
        assert!(!waiting.is_finished());
        channel.reset_connect_backoff();
        tokio::time::sleep(ms(10)).await;
        assert!(waiting.is_finished(), "{lanes} lanes");
        waiting.await.expect("no panic").expect("a response");
        // Without effect while connected.
        let attempts = remote.attempts_after(began).len();
        channel.reset_connect_backoff();
        tokio::time::sleep(ms(3000)).await;
        assert_eq!(remote.attempts_after(began).len(), attempts, "{lanes} lanes");
        call(&channel, &CallOptions::default()).await.expect("a response");
    };
    check(1).await;
    check(3).await;
}

/// The same for a failed lane next to a working one.
#[tokio::test(start_paused = true)]
async fn reset_connect_backoff_ends_pause_of_each_lane() {
    let (attempts, is_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let remote = Remote::default();
    let connector = {
        let (attempts, is_open, remote) = (Arc::clone(&attempts), Arc::clone(&is_open), remote.clone());
        move || {
            let is_first = attempts.fetch_add(1, Ordering::SeqCst) == 0;
            remote.is_removed.store(!is_first && !is_open.load(Ordering::SeqCst), Ordering::SeqCst);
            std::future::ready(remote.connect())
        }
    };
    let builder = Channel::builder("remote:1").lanes(2).backoff_jitter(|| 0.0);
    let channel = builder.connector(connector).connect_lazy().expect("a channel");
    let states = || channel.lanes().iter().map(|lane| lane.state).collect::<Vec<_>>();
    // The second lane's attempts come at 0 s, 0.8 s and 2.08 s; the next would follow at 4.13 s.
    for _ in 0..25 {
        call(&channel, &CallOptions::default()).await.expect("a response");
        tokio::time::sleep(ms(100)).await;
    }
    assert_eq!(states(), ["READY", "TRANSIENT_FAILURE"]);
    assert_eq!(attempts.load(Ordering::SeqCst), 4);
    is_open.store(true, Ordering::SeqCst);
    channel.reset_connect_backoff();
    call(&channel, &CallOptions::default()).await.expect("a response");
    tokio::time::sleep(ms(10)).await;
    assert_eq!(states(), ["READY", "READY"]);
}
