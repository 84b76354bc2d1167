//! The command line of `thalweg load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use thalweg::channel::ChannelBuilder;
use thalweg_dynamic::{MethodName, MethodNameError};
use thalweg_load::peer::Announcement;
use thalweg_load::record::{CallType, LaneRule, UnknownCallType};
use thalweg_load::spec::{TIMEOUT_DEFAULT, YEAR, method};
use thalweg_measure::target;

use super::any_arguments::AnyArgs;
use crate::failure::Failure;
use crate::format::RunFormat;
use crate::keepalive::keepalive;
use crate::runtime::RuntimeArgs;
use crate::seconds;
use crate::terminal::{self, Syntax};
use crate::tls::ClientTlsArgs;

const EXAMPLES: &str = "\
Examples:
  thalweg load localhost:50051 --call shop.Orders/Get -d '{\"id\": 1}' -c 32
  thalweg load localhost:50051 --call shop.Orders/Get --rps 100..5000/60s -z 2m
  thalweg load localhost:50051 --call shop.Orders/Get --find-max 'p99<10ms'
  thalweg load localhost:50051 --call shop.Orders/Get --expect 'p99<5ms'
  thalweg load localhost:50051 --call shop.Orders/Get --cacert ca.pem -n 100000
  thalweg load localhost:50051 --call shop.Orders/Get -O html -o report.html
  thalweg load unix:/run/server.sock --call bidi-stream --size 1KiB

Exit codes:
  0    OK, also if the run is NOT VALID
  1    more calls failed than --max-errors, none finished, or the server is
       unreachable
  2    invalid arguments
  3    a condition failed
  130  interrupted";

/// Load-test a gRPC server
///
/// By default -c calls are always in flight (closed loop). With --rps calls start at a fixed rate (open loop).
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("end").args(["duration", "total"]), after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// Server to load: HOST:PORT, https://HOST or unix:PATH
    ///
    /// Also dns:///HOST:PORT, ipv4:, ipv6:, grpc://, grpcs:// and unix-abstract:NAME.
    #[arg(value_parser = target::parse)]
    pub(super) target: String,

    /// package.Service/Method, or a call type of `thalweg serve` [default: unary]
    ///
    /// Your own server needs a method. The default calls grpc.testing.BenchmarkService, which `thalweg serve` offers.
    /// Its call types are unary, client-stream, server-stream, bidi-stream, and ping-pong: a bidi stream with one
    /// message in flight.
    #[arg(
        long,
        value_name = "METHOD|TYPE",
        default_value = "unary",
        hide_default_value = true,
        value_parser = parse_called
    )]
    pub(super) call: What,

    /// Concurrent calls; with --rps the upper limit [default: 64; 1000 with --rps]
    ///
    /// Streams of the call types: one for each connection by default.
    #[arg(
        short = 'c',
        long = "in-flight",
        visible_alias = "concurrency",
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) in_flight: Option<u32>,

    /// Number of connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) connections: u32,

    /// Number of connections: fixed, adaptive, or one per call (per-call)
    ///
    /// fixed: as many as --connections. adaptive: the channel opens more while they raise throughput or lower latency.
    /// per-call: one channel for each call.
    #[arg(long, value_name = "RULE", default_value = "fixed")]
    pub(super) lanes: LaneRule,

    /// Duration of the measurement [default: 10s]
    #[arg(short = 'z', long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) duration: Option<Duration>,

    /// Stop after N calls; with a call type of streams, after N messages
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) total: Option<u64>,

    /// Run this long before measuring [default: 1s; 0s with -n, --rps, --find-max]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) warmup: Option<Duration>,

    /// Deadline of each call; 0 for none [default: 10s]
    ///
    /// It covers a whole stream. --stream-for is added to it, and to the default the time that messages take by
    /// --message-rate.
    #[arg(
        short = 't',
        long,
        alias = "max-time",
        value_name = "DURATION",
        value_parser = seconds::parse
    )]
    pub(super) timeout: Option<Duration>,

    /// Time limit to connect and to read reflection [default: --timeout, or 10s]
    #[arg(long, value_name = "DURATION", value_parser = seconds::parse)]
    pub(super) connect_timeout: Option<Duration>,

    /// Send a PING after this much silence, at least 10s [default: never]
    ///
    /// The connection is closed if the PING is not answered within the same time, at most 20s.
    #[arg(long, visible_alias = "keepalive", value_name = "DURATION", value_parser = seconds::parse)]
    pub(super) keepalive_time: Option<Duration>,

    /// Print `measuring` and `measured` when measuring starts and ends
    #[arg(long, hide = true, conflicts_with = "find_max")]
    pub(super) announce: bool,

    /// Output format
    ///
    /// JSON has the schema thalweg.load-run/2.
    #[arg(short = 'O', long, value_enum, default_value_t = RunFormat::Text)]
    pub(super) format: RunFormat,

    /// Write the result to a file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) runtime: RuntimeArgs,

    #[command(flatten)]
    pub(super) tls: ClientTlsArgs,

    // Options under a heading of their own follow those without one.
    #[command(flatten)]
    pub(super) any: AnyArgs,
}

/// What `--call` names.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A type of BenchmarkService's calls.
    Benchmark(CallType),
    /// Any method.
    Method(MethodName),
}

impl What {
    pub(super) fn method(&self) -> MethodName {
        match self {
            Self::Benchmark(call) => method(*call),
            Self::Method(name) => name.clone(),
        }
    }
}

fn parse_called(text: &str) -> Result<What, String> {
    if text.contains(['/', '.']) {
        return text.parse().map(What::Method).map_err(|error: MethodNameError| error.to_string());
    }
    text.parse().map(What::Benchmark).map_err(|error: UnknownCallType| {
        format!("{error}; a method is written with its service: package.Service/Method")
    })
}

impl LoadArgs {
    pub(super) fn connect_timeout(&self) -> Duration {
        let of_calls = self.timeout.filter(|timeout| !timeout.is_zero());
        self.connect_timeout.or(of_calls).unwrap_or(TIMEOUT_DEFAULT)
    }

    /// What all connections have.
    pub(super) fn set_up(&self) -> impl Fn(ChannelBuilder) -> ChannelBuilder {
        let (tls, keepalive_time) = (self.tls.config(&self.target), self.keepalive_time);
        move |channel| {
            let channel = match keepalive_time {
                Some(time) => channel.keepalive(keepalive(time)),
                None => channel,
            };
            match &tls {
                Some(tls) => channel.tls(tls.clone()),
                None => channel,
            }
        }
    }
}

/// Prints the announcement's line, if it is asked for.
pub(crate) fn announce(is_asked: bool, announcement: Announcement) {
    if is_asked {
        // That the result cannot be written is said later.
        let _ = terminal::print(Syntax::Text, &format!("{}\n", announcement.name()));
    }
}

/// A year at the most.
pub(crate) fn nanoseconds(flag: &str, duration: Duration) -> Result<u64, Failure> {
    if duration > YEAR {
        return Err(Failure::bad_arguments(format!("{flag} is longer than a year")));
    }
    Ok(duration.as_nanos() as u64)
}
