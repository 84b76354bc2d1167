//! Command line of a load of any method.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use thalweg_dynamic::metadata::{self, Entry};
use thalweg_load::spec::Input;
use thalweg_load::{Condition, Order, ResponseCheck, Schedule, ScheduleError, Share, Spacing};
use thalweg_measure::size::ByteSize;
use thalweg_measure::target;

use super::label::{self, Tags};
use super::start_at;
use crate::balancing::BalancingArgs;
use crate::call_arguments::{EachCallArgs, MetadataArgs};
use crate::choice::choice;
use crate::descriptor_files::DescriptorFiles;
use crate::percent;

/// Formats of requests.
const INPUTS: [(&str, &str); 5] = [
    ("json", "ProtoJSON documents, one after the other"),
    ("csv", "CSV with field names in the first row, one request per row; default for *.csv files"),
    ("text", "Protobuf text format, messages separated by byte 0x1E"),
    ("binary", "Wire format: one message, or a delimited stream for methods that take a stream"),
    ("delimited", "Wire format, each message preceded by its length as a varint"),
];

/// Arguments of a load of any method.
#[derive(Debug, Args)]
pub(crate) struct AnyArgs {
    /// Scenario in TOML, instead of --call
    ///
    /// A scenario has flows of several steps, chosen by weight, with think times, checks on responses, and values that
    /// later steps send.
    #[arg(
        help_heading = "Requests",
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "call", "size", "data", "check", "messages", "message_rate", "stream_for", "responses", "outstanding",
            "order", "input",
        ]
    )]
    pub(super) scenario: Option<PathBuf>,

    /// Request as JSON, @FILE, or @- for stdin; repeatable [default: empty message]
    ///
    /// Several messages are sent in turn; a method that takes a stream sends all of them in each call. Templates such
    /// as {{.RequestNumber}}, {{.WorkerID}}, {{.UUID}}, {{.Timestamp}}, {{randomInt 1 9}} and {{randomString 8}} are
    /// filled in for each call.
    #[arg(help_heading = "Requests", short = 'd', long, value_name = "TEXT")]
    pub(super) data: Vec<String>,

    /// Payload bytes of BenchmarkService's messages: 0, 64KiB, 1.5MB [default: 0]
    #[arg(help_heading = "Requests", long, value_name = "SIZE", conflicts_with = "data")]
    pub(super) size: Option<ByteSize>,

    /// Format of --data [default: json; csv for *.csv]
    ///
    /// csv: field names in the first row. text: Protobuf text format, messages separated by byte 0x1E. binary: the
    /// bytes of one message, or a delimited stream. delimited: each message after its length as a varint.
    #[arg(
        help_heading = "Requests",
        short = 'I',
        long,
        value_name = "FORMAT",
        value_parser = choice::<Input, _>(INPUTS)
    )]
    pub(super) input: Option<Input>,

    /// Do not expand {{ }} in --data
    #[arg(help_heading = "Requests", long)]
    pub(super) no_templates: bool,

    /// Order of several messages: in-turn, random or random:SEED
    #[arg(help_heading = "Requests", long, value_name = "ORDER", default_value = "in-turn")]
    pub(super) order: Order,

    /// Messages to send in each stream [default: all of --data]
    #[arg(help_heading = "Streams", long, value_name = "N")]
    pub(super) messages: Option<u64>,

    /// Messages per second in each stream, as for --rps [default: unlimited]
    #[arg(help_heading = "Streams", long, value_name = "RATE")]
    pub(super) message_rate: Option<Schedule>,

    /// End each stream after this time
    ///
    /// A sending stream ends normally; a receiving stream is cancelled and counts as OK.
    #[arg(help_heading = "Streams", long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) stream_for: Option<Duration>,

    /// Cancel each stream after N responses and count it as OK
    #[arg(help_heading = "Streams", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) responses: Option<u64>,

    /// Messages of a bidi stream that may await their responses [default: unlimited]
    ///
    /// 1 sends the next message when the response to the last one is there. The call type bidi-stream has 1 MiB, at
    /// most 4096 messages.
    #[arg(help_heading = "Streams", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) outstanding: Option<u64>,

    /// Fail calls whose response breaks a condition; repeatable
    ///
    /// Examples: 'status == NOT_FOUND', 'items.length > 0', 'user.name == "Ada"'. Such calls count as CHECK errors.
    #[arg(help_heading = "Pass or fail", long, value_name = "CONDITION")]
    pub(super) check: Vec<ResponseCheck>,

    #[command(flatten, next_help_heading = "Requests")]
    pub(super) with: MetadataArgs,

    #[command(flatten)]
    pub(super) each: EachCallArgs,

    #[command(flatten)]
    pub(super) balancing: BalancingArgs,

    /// Another server, called in turn; repeatable
    #[arg(help_heading = "Connection", long, value_name = "TARGET", value_parser = target::parse)]
    pub(super) also: Vec<String>,

    /// Start calls at this rate, independent of responses
    ///
    /// A number, 100..5000/60s (ramp), 100..500+100/10s (steps), 50@10s (50 at once every 10 s), several separated by
    /// commas, or @FILE with one per line. Without it a call starts when another has ended.
    #[arg(
        help_heading = "Rate",
        short = 'r',
        long,
        short_alias = 'q',
        visible_alias = "rate",
        alias = "qps",
        value_name = "RATE"
    )]
    pub(super) rps: Option<String>,

    /// Concurrent calls over time, such as 1..100/60s
    ///
    /// For closed loops; -c is the upper limit.
    #[arg(help_heading = "Rate", long, value_name = "NUMBER", conflicts_with = "rps", value_parser = parse_workers)]
    pub(super) workers: Option<Schedule>,

    /// Find the highest rate that meets conditions, such as 'p99<10ms'
    ///
    /// Each rate is tried for -z (default 5s), starting from --rps (default 100).
    #[arg(
        help_heading = "Rate",
        long,
        value_name = "CONDITIONS",
        value_parser = parse_conditions,
        conflicts_with_all = ["workers", "total"]
    )]
    pub(super) find_max: Option<Conditions>,

    /// With -n: stop after this time
    #[arg(
        help_heading = "Rate",
        short = 'x',
        long,
        value_name = "DURATION",
        requires = "total",
        value_parser = humantime::parse_duration
    )]
    pub(super) max_duration: Option<Duration>,

    /// Treatment of unfinished calls at the end [default: wait; a closed loop with -z does not count them]
    #[arg(help_heading = "Rate", long, value_enum, value_name = "WHAT")]
    pub(super) duration_stop: Option<DurationStop>,

    /// Name of the run in the result
    #[arg(help_heading = "Run and output", long, value_name = "NAME", value_parser = label::parse_name)]
    pub(super) name: Option<String>,

    /// Tags of the run in the result; repeatable
    #[arg(help_heading = "Run and output", long, value_name = "KEY=VALUE|JSON", value_parser = label::parse_tags)]
    pub(super) tags: Vec<Tags>,

    /// Length of the result's intervals [default: 1s]
    #[arg(help_heading = "Run and output", long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) interval: Option<Duration>,

    /// Print progress lines instead of the live view
    #[arg(help_heading = "Run and output", long)]
    pub(super) no_tui: bool,

    /// Print no progress
    #[arg(help_heading = "Run and output", long, overrides_with = "quiet")]
    pub(super) quiet: bool,

    /// Arrival process: constant or poisson
    #[arg(help_heading = "Rate", long, value_name = "SPACING", default_value = "constant")]
    pub(super) arrivals: Spacing,

    /// Random seed of arrivals and templates
    #[arg(help_heading = "Rate", long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,

    /// Run this part of a distributed load, counted from 0, such as 0/4
    ///
    /// --rps and -n are those of all parts together; -c and --connections are of this part. Join the results with
    /// `thalweg merge`.
    #[arg(help_heading = "Distributed load", long, value_name = "PART/PARTS", conflicts_with = "find_max")]
    pub(super) share: Option<Share>,

    /// Start to measure at this time (RFC 3339, or seconds since 1970)
    #[arg(
        help_heading = "Distributed load",
        long,
        value_name = "TIME",
        value_parser = start_at::parse,
        conflicts_with = "find_max"
    )]
    pub(super) start_at: Option<SystemTime>,

    /// Exit with 3 if a condition fails, such as 'p99<5ms,errors<0.1%'; repeatable
    #[arg(help_heading = "Pass or fail", long, value_name = "CONDITIONS", value_parser = parse_conditions)]
    pub(super) expect: Vec<Conditions>,

    /// Exit with 3 if worse than this result (-O json)
    #[arg(help_heading = "Pass or fail", long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Largest regression against --baseline
    ///
    /// It applies to mean, p50, p99 and, in closed loops, the rate, as by `thalweg compare`: a regression counts if the
    /// confidence interval is beyond it. The failure rate may rise by 1 percentage point.
    #[arg(
        help_heading = "Pass or fail",
        long,
        value_name = "PERCENT",
        default_value = "10%",
        value_parser = percent::parse,
        requires = "baseline"
    )]
    pub(super) max_regression: f64,

    /// Exit with 1 if more calls than this fail
    #[arg(
        help_heading = "Pass or fail",
        long,
        value_name = "PERCENT",
        default_value = "1%",
        value_parser = percent::parse
    )]
    pub(super) max_errors: f64,

    #[command(flatten)]
    pub(super) files: DescriptorFiles,

    #[command(flatten)]
    pub(super) export: ExportArgs,
}

/// Export of metrics.
#[derive(Debug, Args)]
#[command(next_help_heading = "Monitoring")]
pub(crate) struct ExportArgs {
    /// Serve metrics at http://HOST:PORT/metrics during the run
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) prometheus: Option<String>,

    /// Push metrics to an OTLP collector (gRPC): http://HOST:4317
    #[arg(long, value_name = "URL", value_parser = target::parse)]
    pub(super) otlp: Option<String>,

    /// Interval of pushes
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_interval, requires = "otlp")]
    pub(super) otlp_interval: Duration,

    /// Metadata of pushes, such as 'authorization: Bearer ...'; repeatable
    #[arg(long, value_name = "NAME: VALUE", value_parser = metadata::parse, requires = "otlp")]
    pub(super) otlp_header: Vec<Entry>,
}

/// Handling of unfinished calls at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurationStop {
    /// Cancel them and count them as failed
    Close,
    /// Wait for them and count them
    Wait,
    /// Cancel them and do not count them
    Ignore,
}

/// Conditions of one `--expect`.
#[derive(Clone, Debug)]
pub(crate) struct Conditions(pub(super) Vec<Condition>);

fn parse_conditions(text: &str) -> Result<Conditions, String> {
    Condition::parse_all(text).map(Conditions).map_err(|error| error.to_string())
}

/// Parses a number over time in the syntax of rates.
fn parse_workers(text: &str) -> Result<Schedule, String> {
    let workers: Schedule = text.parse().map_err(|error: ScheduleError| error.to_string())?;
    if workers.has_bursts() { Err("bursts are not supported".to_owned()) } else { Ok(workers) }
}

/// Parses the interval of pushes, at least 100 ms to limit overhead.
fn parse_interval(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(100);
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval < LEAST { Err("at least 100ms".to_owned()) } else { Ok(interval) }
}
