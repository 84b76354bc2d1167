//! Calls several servers over one balanced channel, and prints one line of JSON: what its calls experienced. For
//! `cargo xtask bench fleet`, which compares it with the command `fleet` of the peers.
//!
//! ```text
//! cargo run --release -p thalweg-load --example fleet -- 127.0.0.1:1,127.0.0.1:2,127.0.0.1:3 --seconds 3
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use thalweg::channel::EndpointList;
use thalweg::{Channel, Code, Keepalive, Request};
use thalweg_load::services::proto::SimpleRequest;
use thalweg_load::services::proto::benchmark_service_client::BenchmarkServiceClient;
use thalweg_measure::distribution::LATENCY_NS_MAX;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

const DEADLINE: Duration = Duration::from_secs(20);
const SLOW: Duration = Duration::from_secs(1);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Calls grpc.testing.BenchmarkService of several servers
#[derive(Debug, Parser)]
struct Args {
    /// The servers, separated by commas; with --name: one HOST:PORT that resolves to them
    servers: String,

    /// Look the servers up by DNS
    #[arg(long)]
    name: bool,

    /// Time of calling; SIGTERM ends it earlier
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,

    /// Callers, each with one call at a time
    #[arg(short = 'c', default_value_t = 16)]
    callers: u32,

    /// Pause of a caller between two calls
    #[arg(long, default_value = "1ms", value_parser = humantime::parse_duration)]
    pause: Duration,

    /// Policy of the channel, and retries
    #[arg(long, default_value = r#"{"loadBalancingConfig":[{"round_robin":{}}]}"#)]
    service_config: String,

    /// PING a server after this much silence, at least 10s, and close the connection 2 s later without an answer
    #[arg(long, value_parser = humantime::parse_duration)]
    keepalive: Option<Duration>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let client = BenchmarkServiceClient::new(args.channel()?);
    let (stop, stopped) = watch::channel(());
    let mut callers = JoinSet::new();
    for _ in 0..args.callers {
        callers.spawn(call_until(client.clone(), args.pause, stopped.clone()));
    }
    let mut terminate = signal(SignalKind::terminate())?;
    // A timeout is the normal end.
    let _ = tokio::time::timeout(Duration::from_secs_f64(args.seconds), terminate.recv()).await;
    drop(stop);
    let mut calls = Calls::new();
    for others in callers.join_all().await {
        calls.merge(others);
    }
    println!("{}", calls.json());
    Ok(())
}

impl Args {
    fn channel(&self) -> Result<Channel, Box<dyn Error>> {
        let mut builder = if self.name {
            Channel::builder(format!("dns:///{}", self.servers))
        } else {
            let servers = self.servers.split(',').map(str::parse).collect::<Result<Vec<SocketAddr>, _>>()?;
            Channel::builder("fleet").resolver(EndpointList::new(servers))
        };
        if let Some(interval) = self.keepalive {
            builder = builder.keepalive(Keepalive::every(interval).timeout(KEEPALIVE_TIMEOUT));
        }
        Ok(builder.service_config(&*self.service_config).connect_lazy()?)
    }
}

/// Makes calls until the sender of `stopped` is dropped.
async fn call_until(client: BenchmarkServiceClient, pause: Duration, stopped: watch::Receiver<()>) -> Calls {
    let mut calls = Calls::new();
    while stopped.has_changed().is_ok() {
        let mut request = Request::new(SimpleRequest::default());
        request.set_timeout(DEADLINE);
        let start = Instant::now();
        let outcome = client.unary_call(request).await;
        let failure = outcome.err().map(|status| (status.code(), status.message().to_owned()));
        calls.record(start.elapsed(), failure);
        tokio::time::sleep(pause).await;
    }
    calls
}

/// Calls that have ended.
struct Calls {
    ok: u64,
    /// Number of failed calls and the message of the first, by code.
    failed: BTreeMap<i32, (u64, String)>,
    slow: u64,
    /// Times of all calls, failed ones too.
    times_ns: Histogram<u64>,
}

impl Calls {
    fn new() -> Self {
        let times_ns = Histogram::new_with_max(LATENCY_NS_MAX, 3).expect("constant bounds are valid");
        Self { ok: 0, failed: BTreeMap::new(), slow: 0, times_ns }
    }

    fn record(&mut self, took: Duration, failure: Option<(Code, String)>) {
        self.times_ns.saturating_record(took.as_nanos() as u64);
        self.slow += u64::from(took > SLOW);
        match failure {
            None => self.ok += 1,
            Some((code, message)) => self.failed.entry(code as i32).or_insert((0, message)).0 += 1,
        }
    }

    fn merge(&mut self, other: Self) {
        self.ok += other.ok;
        self.slow += other.slow;
        self.times_ns += &other.times_ns;
        for (code, (count, message)) in other.failed {
            self.failed.entry(code).or_insert((0, message)).0 += count;
        }
    }

    fn json(&self) -> Value {
        let us = |ns: u64| ns as f64 / 1e3;
        let failure = |(code, (count, message)): (&i32, &(u64, String))| {
            let code = format!("{:?}", Code::from_i32(*code));
            json!({ "code": code, "count": count, "example": message })
        };
        json!({
            "ok": self.ok,
            "failed": self.failed.values().map(|(count, _)| count).sum::<u64>(),
            "failures": self.failed.iter().map(failure).collect::<Vec<_>>(),
            "slow": self.slow,
            "p50_us": us(self.times_ns.value_at_quantile(0.5)),
            "p99_us": us(self.times_ns.value_at_quantile(0.99)),
            "max_us": us(self.times_ns.max()),
        })
    }
}
