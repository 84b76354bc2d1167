//! The command line of `thalweg load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use thalweg::channel::ChannelBuilder;
use thalweg_dynamic::{MethodName, MethodNameError};
use thalweg_lab::drive::Announcement;
use thalweg_lab::record::{CallType, LaneRule, UnknownCallType};
use thalweg_lab::target;

use super::any_arguments::AnyArgs;
use super::benchmark_arguments::BenchmarkArgs;
use super::defaults::TIMEOUT_DEFAULT;
use super::given::Given;
use crate::failure::Failure;
use crate::format::RunFormat;
use crate::keepalive::keepalive;
use crate::runtime::RuntimeArgs;
use crate::seconds;
use crate::terminal::{self, Syntax};
use crate::tls::ClientTlsArgs;

const EXAMPLES: &str = "\
Examples:
Any method, at a rate that grows, or with conditions:
  thalweg load 127.0.0.1:50051 --call shop.Orders/Get -d '{\"id\": 1}' \\
      --rps 100..5000/60s -z 2m
  thalweg load 127.0.0.1:50051 --call shop.Orders/Get --rps 2000 \\
      --expect 'p99<5ms,errors<0.1%'
One of four machines:
  thalweg load 127.0.0.1:50051 --call shop.Orders/Get --rps 100k --share 0/4 \\
      --start-at 2026-11-26T09:30:00Z
Empty calls, 64 in flight, for 10 s; and more of them, over four connections:
  thalweg load 127.0.0.1:50051
  thalweg load 127.0.0.1:50051 -c 256 --connections 4 -z 30s
Others:
  thalweg load unix:/run/server.sock --call bidi-stream --size 1KiB
  thalweg load localhost:50051 --cacert certs/ca.pem
  thalweg load 127.0.0.1:8080 --echo strings:5000x20 --protocol json-h2 -c 1
  thalweg load 127.0.0.1:50051 -n 100000 -O json -o result.json";

/// Measure any method of a server, by a closed loop of calls or at a given rate
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("end").args(["duration", "total"]), after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    // Before the others, which take what is theirs.
    #[command(flatten)]
    pub(super) given: Given,

    /// The server's target: HOST:PORT, dns:///HOST:PORT, grpc://HOST:PORT, unix:PATH, unix-abstract:NAME …
    #[arg(value_parser = target::parse)]
    pub(super) target: String,

    /// What is called: package.Service/Method of any service; or a type of grpc.testing.BenchmarkService's calls:
    /// unary, client-stream, server-stream, bidi-stream, or ping-pong, a bidi stream with one message under way
    #[arg(long, value_name = "METHOD|TYPE", default_value = "unary", value_parser = parse_called)]
    pub(super) call: What,

    /// Calls in flight over all connections, of an open loop at the most [default: 64, or 1000 with --rps; streams of
    /// BenchmarkService: one for each connection]
    #[arg(
        short = 'c',
        long = "in-flight",
        visible_alias = "concurrency",
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) in_flight: Option<u32>,

    /// Connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) connections: u32,

    /// How a channel chooses its connections: fixed, as many as --connections; adaptive, as many as the channel finds
    /// useful; per-call, a new channel for each
    #[arg(long, value_name = "RULE", default_value = "fixed")]
    pub(super) lanes: LaneRule,

    /// Measure for this long [default: 10s]
    #[arg(short = 'z', long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) duration: Option<Duration>,

    /// Measure this many calls, or messages of streams
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) total: Option<u64>,

    /// Warm up for this long before measuring [default: 1s; with -n, --rps and --find-max: 0s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) warmup: Option<Duration>,

    /// Give up a call, a stream of messages as a whole; of BenchmarkService's, one whose next message takes longer.
    /// With 0 no call of a method is given up [default: 10s, and as long as the messages of a stream take by
    /// --message-rate]
    #[arg(
        short = 't',
        long,
        alias = "max-time",
        value_name = "DURATION",
        value_parser = seconds::parse
    )]
    pub(super) timeout: Option<Duration>,

    /// How long connecting, and each answer of reflection, may take [default: as --timeout,
    /// and 10s with --timeout 0]
    #[arg(long, value_name = "DURATION", value_parser = seconds::parse)]
    pub(super) connect_timeout: Option<Duration>,

    /// Ask the server whether it is still there when nothing has come for so long, at least 10s; it is not if nothing
    /// comes for as long again, at most 20s [default: never]
    #[arg(long, visible_alias = "keepalive", value_name = "DURATION", value_parser = seconds::parse)]
    pub(super) keepalive_time: Option<Duration>,

    /// Print the lines `measuring` and `measured` on stdout when measuring begins and ends, before the result
    #[arg(long, conflicts_with = "find_max")]
    pub(super) announce: bool,

    /// Format of the result; JSON has the schema thalweg.load/3, of a method or a scenario thalweg.load-run/1
    #[arg(short = 'O', long, value_enum, default_value_t = RunFormat::Text)]
    pub(super) format: RunFormat,

    /// Write the result to this file, not to stdout
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    #[command(flatten)]
    pub(super) runtime: RuntimeArgs,

    #[command(flatten)]
    pub(super) tls: ClientTlsArgs,

    // Options under a heading of their own follow those without one.
    #[command(flatten)]
    pub(super) any: AnyArgs,

    #[command(flatten)]
    pub(super) benchmark: BenchmarkArgs,
}

/// What `--call` names.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A type of BenchmarkService's calls.
    Benchmark(CallType),
    /// Any method.
    Method(MethodName),
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

    /// Prints the announcement's line, if it is asked for.
    pub(super) fn announce(&self, announcement: Announcement) {
        if !self.announce {
            return;
        }
        // That the result cannot be written is said later.
        let _ = terminal::print(Syntax::Text, &format!("{}\n", announcement.name()));
    }
}

/// The longest time, so that times can be added without a second thought.
pub(super) const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

/// A year at the most.
pub(super) fn nanoseconds(flag: &str, duration: Duration) -> Result<u64, Failure> {
    if duration > YEAR {
        return Err(Failure::bad_arguments(format!("{flag} is longer than a year")));
    }
    Ok(duration.as_nanos() as u64)
}
