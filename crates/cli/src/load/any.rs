//! `thalweg load` of any method, in a closed loop or by a schedule.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use thalweg::channel::{ChannelBuilder, Lanes};
use thalweg::{CallOptions, Channel, Method};
use thalweg_dynamic::{Catalogue, MethodName, Reflection};
use thalweg_lab::drive::shares;
use thalweg_lab::figures::time;
use thalweg_lab::{Established, descriptors};
use thalweg_load::{
    CallKind, Callee, Gate, Interval, LoadRun, Order, Pace, Plan, Requests, Schedule, Spacing, Stop, drive,
};

use super::defaults::{IN_FLIGHT_DEFAULT, WARM_UP_DEFAULT};
use super::made::{JsonTemplates, PLACE, call_metadata};
use crate::called::{self, Called};
use crate::compression::Compression;
use crate::descriptor_files::DescriptorFiles;
use crate::documents::Documents;
use crate::failure::{Failure, INTERRUPTED};
use crate::metadata::{self, Entry};
use crate::results::read_result;
use crate::runtime;
use crate::signals;
use crate::target;

/// A condition of `--expect` was not kept.
const BREACHED: u8 = 3;
/// Calls in flight at the most, where a schedule says when they begin.
const IN_FLIGHT_MAX_DEFAULT: u32 = 1000;
/// How long an interval is.
const INTERVAL: Duration = Duration::from_secs(1);

/// What is said of a load on any method.
#[derive(Debug, Args)]
#[command(next_help_heading = "Any method, any schedule")]
pub(crate) struct AnyArgs {
    /// The request: JSON, @FILE, or @- for stdin; several messages are sent in turn. A method that takes a stream is
    /// sent all of them in each call. {{.RequestNumber}}, {{.WorkerID}}, {{.UUID}}, {{.Timestamp}}, {{randomInt 1 9}},
    /// {{randomString 8}} and their like are filled for each [default: one empty message]
    #[arg(short = 'd', long, value_name = "JSON")]
    data: Option<String>,

    /// What requests are written in: json, or binary: the bytes of one message
    #[arg(short = 'I', long, value_enum, value_name = "FORMAT", default_value_t = Input::Json)]
    input: Input,

    /// Send {{ and }} of the data as they are
    #[arg(long)]
    no_templates: bool,

    /// Which of several messages is sent next: in-turn, random or random:SEED
    #[arg(long, value_name = "ORDER", default_value = "in-turn")]
    order: Order,

    /// Messages that a call sends which sends a stream [default: as many as there are in the data]
    #[arg(long, value_name = "N")]
    messages: Option<u64>,

    /// Metadata of each call, `name: value`; of names that end in -bin the value is Base64. May be given more than once
    #[arg(short = 'm', short_alias = 'H', long, value_name = "NAME: VALUE", value_parser = metadata::parse)]
    metadata: Vec<Entry>,

    /// The :authority of calls, in place of the target's
    #[arg(long, value_name = "NAME")]
    authority: Option<String>,

    /// Compress requests
    #[arg(long, value_enum, value_name = "ENCODING")]
    compress: Option<Compression>,

    /// Another server that calls take turns at; may be given more than once
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    also: Vec<String>,

    /// Begin calls at this rate, whatever the server does: 1000, 100..5000/60s (a ramp), 100..500+100/10s (steps),
    /// several with commas between, or @FILE with one a line [default: each call when one has ended]
    #[arg(long, visible_alias = "rate", alias = "qps", value_name = "RATE")]
    rps: Option<String>,

    /// How starts lie about the rate: constant or poisson
    #[arg(long, value_name = "SPACING", default_value = "constant", requires = "rps")]
    arrivals: Spacing,

    /// From which arrivals, and random parts of templates, are drawn
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Conditions, such as 'p99<5ms,errors<0.1%,rate>10000': if one is not kept the exit code is 3
    #[arg(long, value_name = "CONDITIONS", value_parser = parse_gates)]
    expect: Vec<Gates>,

    /// An earlier result (-O json): if this one is worse by more than --max-regression the exit code is 3
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// By how much mean, p50, p99, the share of failed calls and, of a closed loop, the rate may be worse
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = parse_share, requires = "baseline")]
    max_regression: f64,

    /// If a larger share of the calls fails the exit code is 1
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse_share)]
    max_errors: f64,

    #[command(flatten)]
    files: DescriptorFiles,
}

/// What one `--expect` has.
#[derive(Clone, Debug)]
pub(crate) struct Gates(Vec<Gate>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Input {
    /// ProtoJSON, one document behind the other
    Json,
    /// As on the wire
    Binary,
}

fn parse_gates(text: &str) -> Result<Gates, String> {
    Gate::parse_all(text).map(Gates).map_err(|error| error.to_string())
}

/// `1%` or `0.01`.
fn parse_share(text: &str) -> Result<f64, String> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|number| number / divisor);
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("`{text}` is no share: 1% or 0.01"))
}

/// What `load` is told that holds of all loads.
pub(crate) struct Common<'a> {
    pub(crate) target: &'a str,
    pub(crate) in_flight: Option<u32>,
    pub(crate) connections: u32,
    pub(crate) is_adaptive: bool,
    pub(crate) stop: Stop,
    pub(crate) warm_up: Option<Duration>,
    pub(crate) timeout: Duration,
    pub(crate) threads: usize,
    pub(crate) set_up: &'a dyn Fn(ChannelBuilder) -> ChannelBuilder,
}

impl AnyArgs {
    /// Whether a schedule is asked for.
    pub(crate) fn has_schedule(&self) -> bool {
        self.rps.is_some()
    }

    /// A flag that says something only of a load on any method.
    pub(crate) fn foreign(&self) -> Option<&'static str> {
        let flags = [
            (self.data.is_some(), "--data"),
            (self.input != Input::Json, "--input"),
            (self.order != Order::InTurn, "--order"),
            (self.messages.is_some(), "--messages"),
            (!self.metadata.is_empty(), "--metadata"),
            (self.authority.is_some(), "--authority"),
            (self.compress.is_some(), "--compress"),
            (!self.also.is_empty(), "--also"),
            (!self.expect.is_empty(), "--expect"),
            (self.baseline.is_some(), "--baseline"),
        ];
        flags.into_iter().find(|(is_there, _)| *is_there).map(|(_, flag)| flag)
    }

    fn pace(&self) -> Result<Pace, Failure> {
        let Some(text) = &self.rps else { return Ok(Pace::Closed) };
        let text = match text.strip_prefix('@') {
            Some(path) => fs::read_to_string(path)
                .map_err(|error| Failure::failed(format!("cannot read {path}: {error}")))?,
            None => text.clone(),
        };
        let schedule: Schedule =
            text.parse().map_err(|error| Failure::bad_arguments(format!("--rps: {error}")))?;
        Ok(Pace::Open { schedule, spacing: self.arrivals, seed: self.seed })
    }

    fn plan(&self, common: &Common<'_>) -> Result<Plan, Failure> {
        let pace = self.pace()?;
        let is_open = pace != Pace::Closed;
        let in_flight_default = if is_open { IN_FLIGHT_MAX_DEFAULT } else { IN_FLIGHT_DEFAULT };
        let in_flight = common.in_flight.unwrap_or(in_flight_default.max(common.connections));
        if common.connections > in_flight {
            return Err(Failure::bad_arguments(
                "more connections than calls in flight: some would stay idle",
            ));
        }
        // A schedule begins as it was written.
        let is_warm = !is_open && matches!(common.stop, Stop::After(_));
        let warm_up_default = if is_warm { WARM_UP_DEFAULT } else { Duration::ZERO };
        Ok(Plan {
            pace,
            in_flight,
            stop: common.stop,
            warm_up: common.warm_up.unwrap_or(warm_up_default),
            interval: INTERVAL,
        })
    }
}

/// Drives the method.
pub(crate) fn run(
    args: &AnyArgs,
    name: &MethodName,
    common: &Common<'_>,
    output: impl FnOnce(&LoadRun) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let plan = args.plan(common)?;
    let files = args.files.read()?;
    let baseline = args.baseline.as_deref().map(read_result).transpose()?;
    // With fewer there are fewer connections, which the result says.
    let _ = descriptors::raise();
    let (run, was_interrupted) = runtime::runtime(common.threads)?.block_on(async {
        let interrupt = signals::interrupt()?;
        let mut interrupt = std::pin::pin!(interrupt);
        let ready = prepare(args, name, common, files);
        let (callee, before) = tokio::select! {
            ready = ready => ready?,
            () = &mut interrupt => return Err(Failure::interrupted("interrupted before the run began")),
        };
        // Held until its connections have been counted.
        let channels = callee.channels.clone();
        let mut was_interrupted = false;
        let told = async {
            interrupt.await;
            was_interrupted = true;
        };
        let mut progress = Progress::new(&plan);
        let driven = drive(&plan, callee, told, |interval| progress.tell(interval)).await;
        let mut run = driven.map_err(Failure::bad_arguments)?;
        run.connections_established = Established::now().since(before);
        drop(channels);
        Ok((run, was_interrupted))
    })?;
    let mut run = run;
    let against = match &baseline {
        Some(baseline) => {
            Gate::against(baseline, &run, args.max_regression).map_err(Failure::bad_arguments)?
        }
        None => Vec::new(),
    };
    let gates = args.expect.iter().flat_map(|Gates(gates)| gates).chain(&against);
    run.gates = gates.map(|gate| gate.judge(&run)).collect();
    output(&run)?;
    verdict(&run, args.max_errors, was_interrupted)
}

/// Connects, and looks the method up.
async fn prepare(
    args: &AnyArgs,
    name: &MethodName,
    common: &Common<'_>,
    files: Option<Catalogue>,
) -> Result<(Callee, Established), Failure> {
    let builder = |target: &str| {
        let builder = Channel::builder(target).connect_timeout(common.timeout);
        let builder = match &args.authority {
            Some(authority) => builder.authority(authority),
            None => builder,
        };
        (common.set_up)(builder)
    };
    // Before anything is connected to: the connection of reflection is gone when they are counted.
    let before = Established::now();
    let called = if let Some(mut files) = files {
        called::look_up(&mut files, name).await?
    } else {
        let channel = connect(builder(common.target).lanes(Lanes::fixed(1))).await?;
        let reflection = Reflection::new(channel, metadata::map(&args.metadata), common.timeout);
        called::look_up(&mut Catalogue::Server(Box::new(reflection)), name).await?
    };
    let requests = requests(args, &called)?;
    let targets: Vec<String> = std::iter::once(common.target)
        .chain(args.also.iter().map(String::as_str))
        .map(str::to_owned)
        .collect();
    let connections = common.connections * targets.len() as u32;
    let mut channels = Vec::new();
    for target in &targets {
        for lanes in shares(common.connections) {
            let lanes = if common.is_adaptive { Lanes::adaptive() } else { Lanes::fixed(lanes as usize) };
            channels.push(connect(builder(target).lanes(lanes)).await?);
        }
    }
    let mut options = CallOptions::default();
    options.timeout = Some(common.timeout);
    options.max_decoding_message_size = usize::MAX;
    options.send_compressed = args.compress.map(Into::into);
    let method = Method::from_path(&called.path).map_err(Failure::bad_arguments)?;
    let kind = CallKind::of(called.is_client_streaming, called.is_server_streaming);
    let metadata = call_metadata(&args.metadata, args.seed)?;
    Ok((Callee { targets, connections, channels, method, kind, metadata, options, requests }, before))
}

async fn connect(builder: ChannelBuilder) -> Result<Channel, Failure> {
    builder.connect().await.map_err(|error| match &error {
        thalweg::channel::ConnectError::Unavailable(_) => Failure::failed(error),
        _ => Failure::bad_arguments(error),
    })
}

fn requests(args: &AnyArgs, called: &Called) -> Result<Requests, Failure> {
    let Some(data) = &args.data else {
        return Ok(Requests::new(Vec::new(), args.order, args.messages.or(Some(1))));
    };
    let data = read(data)?;
    if args.input == Input::Binary {
        return Ok(Requests::new(vec![data.into()], args.order, args.messages));
    }
    let texts = documents(&data);
    if !args.no_templates && texts.iter().any(|text| String::from_utf8_lossy(text).contains(PLACE)) {
        let make = JsonTemplates::read(called, &texts, args.order)?;
        return Ok(Requests::made(make, args.seed, args.messages.unwrap_or(texts.len() as u64)));
    }
    let messages = encoded(&texts, called)?;
    Ok(Requests::new(messages.into_iter().map(Into::into).collect(), args.order, args.messages))
}

fn read(data: &str) -> Result<Vec<u8>, Failure> {
    let Some(path) = data.strip_prefix('@') else { return Ok(data.as_bytes().to_vec()) };
    if matches!(path, "" | "-") {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|error| Failure::failed(format!("cannot read stdin: {error}")));
    }
    fs::read(path).map_err(|error| Failure::failed(format!("cannot read {path}: {error}")))
}

fn documents(data: &[u8]) -> Vec<Vec<u8>> {
    let mut documents = Documents::default();
    documents.push(data);
    let mut texts: Vec<Vec<u8>> = std::iter::from_fn(|| documents.next()).collect();
    texts.extend(documents.rest());
    texts
}

fn encoded(texts: &[Vec<u8>], called: &Called) -> Result<Vec<Vec<u8>>, Failure> {
    let wire = |(number, text): (usize, &Vec<u8>)| {
        called.encoded(text, false).map_err(|why| {
            Failure::bad_arguments(format!("request {number} is no {}: {why}", called.request_type))
        })
    };
    (1..).zip(texts).map(wire).collect()
}

/// Lines on stderr while a run goes on, for whoever sits before it.
struct Progress {
    is_on: bool,
    is_open: bool,
}

impl Progress {
    fn new(plan: &Plan) -> Self {
        Self { is_on: io::stderr().is_terminal(), is_open: plan.pace != Pace::Closed }
    }

    fn tell(&mut self, interval: &Interval) {
        if !self.is_on {
            return;
        }
        let at = Duration::from_nanos(interval.at_ns).as_secs();
        let scheduled = if self.is_open { format!(" of {:.0}", interval.scheduled) } else { String::new() };
        let latency = interval.latency_ns.map_or(String::new(), |latency| {
            format!(
                "  p50 {:>8}  p99 {:>8}  max {:>8}",
                time(latency.p50 as f64),
                time(latency.p99 as f64),
                time(latency.max as f64)
            )
        });
        let failed =
            if interval.failed > 0 { format!("  {} failed", interval.failed) } else { String::new() };
        // Who does not read stderr any more does not miss it.
        let _ = writeln!(
            io::stderr(),
            "{at:>5} s  {:>9} ok{scheduled}{latency}  {} in flight{failed}",
            interval.ok,
            interval.in_flight
        );
    }
}

/// The exit code, or what made the run a failure.
fn verdict(run: &LoadRun, max_errors: f64, was_interrupted: bool) -> Result<ExitCode, Failure> {
    if was_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let breached: Vec<String> = run
        .gates
        .iter()
        .filter(|gate| !gate.is_kept)
        .map(|gate| format!("{} is {}", gate.gate, gate.figure))
        .collect();
    if !breached.is_empty() {
        return Err(Failure { message: format!("not kept: {}", breached.join(", ")), code: BREACHED });
    }
    if run.calls() == 0 {
        return Err(Failure::failed("no call ended within the measured time: let -z be longer"));
    }
    if run.failed_share() > max_errors {
        let note = run.notes.first().map(|note| note.text.as_str()).unwrap_or_default();
        return Err(Failure::failed(format!(
            "{} of {} calls failed, more than --max-errors has: {note}",
            run.failed,
            run.calls()
        )));
    }
    Ok(ExitCode::SUCCESS)
}
