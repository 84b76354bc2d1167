//! `peer fleet`: calls several servers over one balanced channel, and prints what the calls experienced.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::proto::SimpleRequest;
use crate::proto::benchmark_service_client::BenchmarkServiceClient;
use crate::{Failure, runtime};

const DEADLINE: Duration = Duration::from_secs(20);
const SLOW: Duration = Duration::from_secs(1);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// One hour in ns: longer times are counted as this value.
const TIME_NS_MAX: u64 = 3_600_000_000_000;

/// Call grpc.testing.BenchmarkService of several servers
#[derive(Args)]
pub struct FleetArgs {
    /// The servers, separated by commas; with --name: one HOST:PORT that resolves to them
    servers: String,

    /// Look the servers up by DNS
    #[arg(long)]
    name: bool,

    /// Time of calling; SIGTERM ends it earlier
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,

    /// Callers, each with one call at a time
    #[arg(short = 'c', value_name = "N", default_value_t = 16)]
    callers: u32,

    /// Pause of a caller between two calls
    #[arg(long, value_name = "DURATION", default_value = "1ms", value_parser = humantime::parse_duration)]
    pause: Duration,

    /// PING a server after this much silence, and close the connection 2 s later without an answer
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    keepalive: Option<Duration>,

    /// Policy of the channel, and retries; by default it balances as tonic does
    #[cfg(feature = "thalweg")]
    #[arg(long, value_name = "JSON")]
    service_config: Option<String>,
}

pub fn run(args: FleetArgs) -> Result<ExitCode, Failure> {
    let seconds = Duration::try_from_secs_f64(args.seconds);
    let seconds = seconds.map_err(|error| Failure::Misuse(format!("--seconds: {error}")))?;
    let runtime = runtime(std::num::NonZeroUsize::new(1))?;
    let channel = {
        let _context = runtime.enter();
        args.channel().map_err(Failure::Misuse)?
    };
    let calls = runtime.block_on(call(&args, seconds, channel)).map_err(Failure::Failed)?;
    println!("{}", calls.json());
    Ok(ExitCode::SUCCESS)
}

impl FleetArgs {
    fn channel(&self) -> Result<Channel, String> {
        #[cfg(feature = "thalweg")]
        if let Some(config) = &self.service_config {
            return self.configured(config);
        }
        let endpoints = self.servers.split(',').map(|server| self.endpoint(server));
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>()?;
        Ok(match endpoints.as_slice() {
            [name] if self.name => name.connect_lazy(),
            _ => Channel::balance_list(endpoints.into_iter()),
        })
    }

    /// Creates a channel that balances by a service config.
    #[cfg(feature = "thalweg")]
    fn configured(&self, config: &str) -> Result<Channel, String> {
        use tonic::transport::channel::{EndpointExt, EndpointList};

        let endpoint = if self.name {
            self.endpoint(&self.servers)?
        } else {
            let servers = self.servers.split(',').map(str::parse::<std::net::SocketAddr>);
            let servers = servers.collect::<Result<Vec<_>, _>>();
            let servers = servers.map_err(|error| format!("`{}`: {error}", self.servers))?;
            self.endpoint("fleet")?.resolver(EndpointList::new(servers))
        };
        Ok(endpoint.service_config(config).connect_lazy())
    }

    fn endpoint(&self, server: &str) -> Result<Endpoint, String> {
        let endpoint = Endpoint::from_shared(format!("http://{server}"))
            .map_err(|error| format!("`{server}`: {error}"))?;
        Ok(match self.keepalive {
            None => endpoint,
            Some(interval) => {
                endpoint.http2_keep_alive_interval(interval).keep_alive_timeout(KEEPALIVE_TIMEOUT)
            }
        })
    }
}

async fn call(args: &FleetArgs, seconds: Duration, channel: Channel) -> Result<Calls, String> {
    let client = BenchmarkServiceClient::new(channel);
    let (stop, stopped) = watch::channel(());
    let mut callers = JoinSet::new();
    for _ in 0..args.callers {
        callers.spawn(call_until(client.clone(), args.pause, stopped.clone()));
    }
    let mut terminate =
        signal(SignalKind::terminate()).map_err(|error| format!("failed to handle signals: {error}"))?;
    // A timeout is the normal end.
    let _ = tokio::time::timeout(seconds, terminate.recv()).await;
    drop(stop);
    let mut calls = Calls::new();
    for others in callers.join_all().await {
        calls.merge(others);
    }
    Ok(calls)
}

/// Makes calls until the sender of `stopped` is dropped.
async fn call_until(
    mut client: BenchmarkServiceClient<Channel>,
    pause: Duration,
    stopped: watch::Receiver<()>,
) -> Calls {
    let mut calls = Calls::new();
    while stopped.has_changed().is_ok() {
        let mut request = Request::new(SimpleRequest::default());
        request.set_timeout(DEADLINE);
        let start = Instant::now();
        let outcome = client.unary_call(request).await;
        calls.record(start.elapsed(), outcome.err());
        tokio::time::sleep(pause).await;
    }
    calls
}

/// Calls that have ended.
struct Calls {
    ok: u64,
    /// Number of failed calls and the text of the first, by code.
    failed: BTreeMap<i32, (u64, String)>,
    slow: u64,
    /// Times of all calls, failed ones too.
    times_ns: Histogram<u64>,
}

impl Calls {
    fn new() -> Self {
        let times_ns = Histogram::new_with_max(TIME_NS_MAX, 3).expect("constant bounds are valid");
        Self { ok: 0, failed: BTreeMap::new(), slow: 0, times_ns }
    }

    fn record(&mut self, took: Duration, failure: Option<Status>) {
        self.times_ns.saturating_record(took.as_nanos() as u64);
        self.slow += u64::from(took > SLOW);
        match failure {
            None => self.ok += 1,
            Some(status) => {
                self.failed.entry(status.code() as i32).or_insert_with(|| (0, causes(&status))).0 += 1
            }
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

/// Returns the message of a status with the causes that it does not contain.
fn causes(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let of_cause = error.to_string();
        if !text.contains(&of_cause) && !of_cause.contains(status.message()) {
            text = format!("{text}: {of_cause}");
        }
        cause = error.source();
    }
    text
}
