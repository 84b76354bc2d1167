//! What is said on the command line of a load on any method.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use thalweg_lab::size::ByteSize;
use thalweg_lab::target;
use thalweg_load::{Gate, Order, Schedule, ScheduleError, Share, Spacing};

use super::checks::AskedCheck;
use super::data::Input;
use super::label::{self, Tags};
use super::start_at;
use crate::compression::Compression;
use crate::descriptor_files::DescriptorFiles;
use crate::metadata::{self, Entry};
use crate::percent;

/// What is said of a load on any method.
#[derive(Debug, Args)]
#[command(next_help_heading = "Any method, any schedule")]
pub(crate) struct AnyArgs {
    /// A scenario in TOML in place of --call: flows of several steps, chosen by weight, with time to think, checks on
    /// the answers, and values of them that later steps send
    #[arg(long, value_name = "FILE", conflicts_with_all = ["call", "data", "check", "messages", "message_rate",
          "stream_for", "responses", "order", "input"])]
    pub(super) scenario: Option<PathBuf>,

    /// The request: JSON (or what --input says), @FILE, or @- for stdin; several messages are sent in turn. A method
    /// that takes a stream is sent all of them in each call. {{.RequestNumber}}, {{.WorkerID}}, {{.UUID}},
    /// {{.Timestamp}}, {{randomInt 1 9}}, {{randomString 8}} and their like are filled for each. May be given more than
    /// once, for messages of several files [default: one empty message]
    #[arg(short = 'd', long, value_name = "TEXT")]
    pub(super) data: Vec<String>,

    /// What requests are written in: json; csv, rows with the names of fields in the first; text, Protobuf's text
    /// format, with the byte 0x1E between two messages; binary, the bytes of one message, or of a stream as delimited;
    /// or delimited, each message with its length before it as a varint [default: json; of a file whose name ends in
    /// .csv csv]
    #[arg(short = 'I', long, value_enum, value_name = "FORMAT")]
    pub(super) input: Option<Input>,

    /// Send {{ and }} of the data as they are
    #[arg(long)]
    pub(super) no_templates: bool,

    /// Which of several messages is sent next: in-turn, random or random:SEED
    #[arg(long, value_name = "ORDER", default_value = "in-turn")]
    pub(super) order: Order,

    /// Messages that a call sends which sends a stream [default: as many as there are in the data]
    #[arg(long, value_name = "N")]
    pub(super) messages: Option<u64>,

    /// When the messages of a stream are sent: messages a second in each stream, written as for --rps [default: as fast
    /// as the server takes them]
    #[arg(long, value_name = "RATE")]
    pub(super) message_rate: Option<Schedule>,

    /// How long a stream lasts: one that sends ends then, one that only receives is cancelled, and counts as OK
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) stream_for: Option<Duration>,

    /// After so many responses a stream is cancelled, and counts as OK
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) responses: Option<u64>,

    /// What an answer has to be, such as 'status == NOT_FOUND', 'items.length > 0', 'user.name == "Ada"'; a call whose
    /// answer is something else has failed (CHECK). May be given more than once
    #[arg(long, value_name = "CONDITION")]
    pub(super) check: Vec<AskedCheck>,

    /// Metadata of each call, `name: value`; of names that end in -bin the value is Base64. May be given more than once
    #[arg(short = 'm', short_alias = 'H', long, value_name = "NAME: VALUE", value_parser = metadata::parse)]
    pub(super) metadata: Vec<Entry>,

    /// Metadata of the calls of reflection, in place of --metadata's
    #[arg(long, value_name = "NAME: VALUE", value_parser = metadata::parse)]
    pub(super) reflect_metadata: Vec<Entry>,

    /// The :authority of calls, in place of the target's
    #[arg(long, value_name = "NAME")]
    pub(super) authority: Option<String>,

    /// Compress requests
    #[arg(long, value_enum, value_name = "ENCODING")]
    pub(super) compress: Option<Compression>,

    /// Largest message accepted
    #[arg(long, visible_alias = "max-msg-sz", value_name = "SIZE", default_value = "64MiB")]
    pub(super) max_message_size: ByteSize,

    /// Another server that calls take turns at; may be given more than once
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    pub(super) also: Vec<String>,

    /// Begin calls at this rate, whatever the server does: 1000, 100..5000/60s (a ramp), 100..500+100/10s (steps),
    /// 50@10s (bursts: 50 at once, every 10 s), several with commas between, or @FILE with one a line [default: each
    /// call when one has ended]
    #[arg(short = 'r', long, short_alias = 'q', visible_alias = "rate", alias = "qps", value_name = "RATE")]
    pub(super) rps: Option<String>,

    /// How many of the -c calls in flight there are over time, without --rps: 1..100/60s and the like
    #[arg(long, value_name = "NUMBER", conflicts_with = "rps", value_parser = parse_workers)]
    pub(super) workers: Option<Schedule>,

    /// Find the highest rate that keeps to conditions, such as 'p99<10ms,errors<0.1%': rates are tried for -z each
    /// (default 5s), from --rps (default 100) on
    #[arg(long, value_name = "CONDITIONS", value_parser = parse_gates, conflicts_with_all = ["workers", "total"])]
    pub(super) find_max: Option<Gates>,

    /// With -n: stop after this long, even if fewer calls have begun
    #[arg(short = 'x', long, value_name = "DURATION", requires = "total", value_parser = humantime::parse_duration)]
    pub(super) max_duration: Option<Duration>,

    /// What becomes of calls that are under way when the time of -z or -x is up [default: they are waited for, and
    /// count with --rps or -n]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) duration_stop: Option<DurationStop>,

    /// What the result calls the run
    #[arg(long, value_name = "NAME", value_parser = label::parse_name)]
    pub(super) name: Option<String>,

    /// What the result says of the run besides, such as build=7 or '{"build": "7"}'. May be given more than once
    #[arg(long, value_name = "KEY=VALUE|JSON", value_parser = label::parse_tags)]
    pub(super) tags: Vec<Tags>,

    /// How long an interval of the result is [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) interval: Option<Duration>,

    /// Lines on stderr in place of the view of the run
    #[arg(long)]
    pub(super) no_tui: bool,

    /// Neither the view of the run nor lines on stderr while it goes on
    #[arg(long, overrides_with = "quiet")]
    pub(super) quiet: bool,

    /// How starts lie about the rate: constant or poisson
    #[arg(long, value_name = "SPACING", default_value = "constant")]
    pub(super) arrivals: Spacing,

    /// From which arrivals, and random parts of templates, are drawn
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,

    /// Make this part of a load that several machines make, counted from 0: 0/4 is the first of four. --rps and -n are
    /// those of all parts together, -c and --connections this part's own; `thalweg merge` joins the results
    #[arg(long, value_name = "PART/PARTS", conflicts_with = "find_max")]
    pub(super) share: Option<Share>,

    /// Begin to measure at this time, and to warm up before it, so that several parts begin together: as RFC 3339 has
    /// it, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = start_at::parse, conflicts_with = "find_max")]
    pub(super) start_at: Option<SystemTime>,

    /// Conditions, such as 'p99<5ms,p95<3ms,errors<0.1%,rate>10000': if one is not kept the exit code is 3
    #[arg(long, value_name = "CONDITIONS", value_parser = parse_gates)]
    pub(super) expect: Vec<Gates>,

    /// An earlier result (-O json): if this one is worse by more than --max-regression the exit code is 3
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// By how much mean, p50, p99, the share of failed calls and, of a closed loop, the rate may be worse; of the share
    /// a point of a hundred more is none
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = percent::parse, requires = "baseline")]
    pub(super) max_regression: f64,

    /// If a larger share of the calls fails the exit code is 1
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = percent::parse)]
    pub(super) max_errors: f64,

    #[command(flatten)]
    pub(super) files: DescriptorFiles,

    #[command(flatten)]
    pub(super) export: ExportArgs,
}

/// Who is told how a run goes, beside the user.
#[derive(Debug, Args)]
#[command(next_help_heading = "Monitoring")]
pub(crate) struct ExportArgs {
    /// Let Prometheus ask for the figures while the run goes on, at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) prometheus: Option<String>,

    /// Push the figures to a collector by OTLP over gRPC while the run goes on, and at its end: http://HOST:4317, or
    /// https:// with TLS
    #[arg(long, value_name = "URL", value_parser = target::parse)]
    pub(super) otlp: Option<String>,

    /// How often they are pushed
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_interval, requires = "otlp")]
    pub(super) otlp_interval: Duration,

    /// Metadata of the pushes, such as 'authorization: Bearer …'; may be given more than once
    #[arg(long, value_name = "NAME: VALUE", value_parser = metadata::parse, requires = "otlp")]
    pub(super) otlp_header: Vec<Entry>,
}

/// What becomes of calls that are under way when the time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurationStop {
    /// They are cancelled, and count as failed
    Close,
    /// They are waited for, and count
    Wait,
    /// They are cancelled, and not counted
    Ignore,
}

/// What one `--expect` has.
#[derive(Clone, Debug)]
pub(crate) struct Gates(pub(super) Vec<Gate>);

fn parse_gates(text: &str) -> Result<Gates, String> {
    Gate::parse_all(text).map(Gates).map_err(|error| error.to_string())
}

/// A number over time, written as a rate.
fn parse_workers(text: &str) -> Result<Schedule, String> {
    let workers: Schedule = text.parse().map_err(|error: ScheduleError| error.to_string())?;
    if workers.has_bursts() { Err("workers do not come in bursts".to_owned()) } else { Ok(workers) }
}

/// Not so short that nothing else would be done.
fn parse_interval(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(100);
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if interval < LEAST { Err("at least 100ms".to_owned()) } else { Ok(interval) }
}

impl AnyArgs {
    /// What calls of reflection have with them.
    pub(super) fn metadata_of_reflection(&self) -> &[Entry] {
        if self.reflect_metadata.is_empty() { &self.metadata } else { &self.reflect_metadata }
    }
}
