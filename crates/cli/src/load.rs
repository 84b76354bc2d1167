//! `thalweg load`.

mod any;
mod arguments;
mod checks;
mod complete;
mod connecting;
mod data;
mod defaults;
mod export;
mod label;
mod live;
mod made;
mod notices;
mod output;
mod progress;
mod rows;
mod scenario;
mod scenario_file;
mod start_at;
mod steps;
mod watching;

use std::cell::Cell;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args};
use thalweg::channel::ChannelBuilder;
use thalweg_dynamic::{MethodName, MethodNameError};
use thalweg_lab::bare;
use thalweg_lab::descriptors;
use thalweg_lab::drive::{DriveError, Announcement, Patience, drive};
use thalweg_lab::echo::{EchoWork, Looks, OwnEcho, Protocol, Shape};
use thalweg_lab::interrupt::Interrupt;
use thalweg_lab::record::{
    BareRun, BareWire, CallType, Handing, LaneRule, LoadResult, LoadSettings, UnknownCallType,
};
use thalweg_lab::size::ByteSize;
use thalweg_lab::target;
use thalweg_load::Stop;

use crate::failure::{Failure, INTERRUPTED};
use crate::format::{Format, RunFormat, json};
use crate::keepalive::keepalive;
use crate::own::echoed;
use crate::request::{self, RequestBytes};
use crate::runtime::{self, RuntimeArgs};
use crate::tls::ClientTlsArgs;
use crate::{signals, text};
use arguments::AnyArgs;
use connecting::Connecting;
use defaults::{DURATION_DEFAULT, IN_FLIGHT_DEFAULT, WARM_UP_DEFAULT};
use output::Output;

const EXAMPLES: &str = "\
Examples:
  thalweg load 127.0.0.1:50051                                    empty calls, 64 in flight, for 10 s
  thalweg load 127.0.0.1:50051 -c 256 --connections 4 -z 30s      more of them, over four connections
  thalweg load unix:/run/server.sock --call bidi-stream --size 1KiB
  thalweg load localhost:50051 --cacert certs/ca.pem
  thalweg load 127.0.0.1:50051 --call shop.Orders/Get -d '{\"id\": 1}' --rps 100..5000/60s -z 2m
  thalweg load 127.0.0.1:50051 --call shop.Orders/Get --rps 2000 --expect 'p99<5ms,errors<0.1%'
  thalweg load 127.0.0.1:50051 --call shop.Orders/Get --rps 100k --share 0/4 --start-at 2026-11-26T09:30:00Z
  thalweg load 127.0.0.1:8080 --echo strings:5000x20 --protocol json-h2 --times -c 1
  thalweg load 127.0.0.1:50051 -n 100000 -O json -o result.json";

/// Measure any method of a server, by a closed loop of calls or at a given rate
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("end").args(["duration", "total"]), after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// The server's target: HOST:PORT, dns:///HOST:PORT, grpc://HOST:PORT, unix:PATH, unix-abstract:NAME …
    #[arg(value_parser = target::parse)]
    target: String,

    /// What is called: package.Service/Method of any service; or a type of grpc.testing.BenchmarkService's calls:
    /// unary, client-stream, server-stream, bidi-stream, or ping-pong, a bidi stream with one message under way
    #[arg(long, value_name = "METHOD|TYPE", default_value = "unary", value_parser = parse_called)]
    call: What,

    /// Bytes of payload in a message, such as 0, 64KiB or 1.5MB
    #[arg(long, value_name = "SIZE", default_value = "0")]
    size: ByteSize,

    /// Calls in flight over all connections, of an open loop at the most [default: 64, or 1000 with --rps; streams of
    /// BenchmarkService: one for each connection]
    #[arg(short = 'c', long = "in-flight", value_name = "N")]
    in_flight: Option<u32>,

    /// Connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,

    /// Drive by the leanest client there is, one thread over epoll that sends prepared bytes: grpc, unary calls; echo,
    /// the messages of `thalweg serve --bare-echo`
    #[arg(long, value_name = "WIRE", conflicts_with_all = ["lanes", "echo", "total", "threads", "cacert",
          "keepalive_time"])]
    bare: Option<BareWire>,

    /// With --bare: so many connections have calls, and the others are idle [default: all]
    #[arg(long, value_name = "N", requires = "bare")]
    active: Option<u32>,

    /// How a channel chooses its connections: fixed, as many as --connections; adaptive, as many as the channel finds
    /// useful; per-call, a new channel for each
    #[arg(long, value_name = "RULE", default_value = "fixed")]
    lanes: LaneRule,

    /// How messages of streams are handed over: in-place, read to one place and sent from another; or owned, each made
    /// anew
    #[arg(long, value_name = "NAME", default_value = "in-place")]
    variant: Handing,

    #[command(flatten)]
    any: AnyArgs,

    /// For the lab: this unary method by its path alone, with a request in hex
    #[arg(long, value_name = "SERVICE/METHOD", hide = true, conflicts_with = "echo")]
    method: Option<String>,

    /// The request message of that method: its bytes in hex, or @FILE
    #[arg(long, value_name = "HEX", requires = "method", hide = true, value_parser = request::parse)]
    hex: Option<RequestBytes>,

    #[command(flatten)]
    echo: EchoArgs,

    /// Measure for this long [default: 10s]
    #[arg(short = 'z', long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,

    /// Measure this many calls, or messages of streams
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    total: Option<u64>,

    /// With -n: stop after this long, even if fewer calls have begun
    #[arg(short = 'x', long, value_name = "DURATION", requires = "total", value_parser = humantime::parse_duration)]
    max_duration: Option<Duration>,

    /// Warm up for this long before measuring [default: 1s; with -n, --rps and --find-max: 0s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    warmup: Option<Duration>,

    /// Give up a call, a stream of messages as a whole; of BenchmarkService's, one whose next message takes longer
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    timeout: Duration,

    /// How long connecting, and each answer of reflection, may take [default: as --timeout]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    connect_timeout: Option<Duration>,

    /// Ask the server whether it is still there when nothing has come for so long, at least 10s; it is not if nothing
    /// comes for as long again, at most 20s [default: never]
    #[arg(long, visible_alias = "keepalive", value_name = "DURATION", value_parser = humantime::parse_duration)]
    keepalive_time: Option<Duration>,

    /// Print the lines `measuring` and `measured` on stdout when measuring begins and ends, before the result
    #[arg(long, conflicts_with = "find_max")]
    announce: bool,

    /// Format of the result; JSON has the schema thalweg.load/3, of a method or a scenario thalweg.load-run/1
    #[arg(short = 'O', long, value_enum, default_value_t = RunFormat::Text)]
    format: RunFormat,

    /// Write the result to this file, not to stdout
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    runtime: RuntimeArgs,

    #[command(flatten)]
    tls: ClientTlsArgs,
}

/// What `--call` names.
#[derive(Clone, Debug)]
enum What {
    /// A type of BenchmarkService's calls.
    Benchmark(CallType),
    /// Any method.
    Method(MethodName),
}

fn parse_called(text: &str) -> Result<What, String> {
    if text.contains(['/', '.']) {
        return text.parse().map(What::Method).map_err(|error: MethodNameError| error.to_string());
    }
    text.parse().map(What::Benchmark).map_err(|error: UnknownCallType| error.to_string())
}

pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    match &args.call {
        What::Method(name) => return args.run_any(Some(name)),
        What::Benchmark(_) if args.any.scenario.is_some() => return args.run_any(None),
        What::Benchmark(_) => {}
    }
    let settings = args.settings()?;
    let format = match args.format {
        RunFormat::Text => Format::Text,
        RunFormat::Json => Format::Json,
        RunFormat::Csv | RunFormat::Html => {
            return Err(Failure::bad_arguments(
                "the loads of BenchmarkService are written as text or json: csv and html take a method, as --call \
                 grpc.testing.BenchmarkService/UnaryCall, or a scenario",
            ));
        }
    };
    let own = args.echo.own()?;
    let output = Output::open(args.output.as_deref(), args.format)?;
    // With fewer there are fewer connections, which is said where they are opened.
    let _ = descriptors::raise();
    let patience = Patience { connect: args.connect_timeout(), call: args.timeout, ..Patience::default() };
    let interrupted = Cell::new(false);
    if settings.bare.is_some() {
        let result = args.bare_run(&settings, patience).inspect_err(|_| output.abandon())?;
        output.write(&rendered(&result, format))?;
        return verdict(&result, false);
    }
    let driven = runtime::runtime(args.runtime.threads(|_| 1)?)?.block_on(async {
        let interrupt = signals::interrupt()?;
        let interrupt = async {
            interrupt.await;
            interrupted.set(true);
        };
        let announce = |it: Announcement| args.announce(it);
        let set_up = args.set_up();
        drive(&settings, own.as_ref(), set_up, patience, interrupt, announce).await.map_err(failure)
    });
    let result = driven.inspect_err(|_| output.abandon())?;
    output.write(&rendered(&result, format))?;
    verdict(&result, interrupted.get())
}

/// The moment's line, flushed: whoever waits for it looks at both processes now.
fn say(moment: Announcement) {
    let mut stdout = io::stdout().lock();
    // Who does not read any more does not wait either; that the result cannot be written is said later.
    let _ = writeln!(stdout, "{}", moment.name()).and_then(|()| stdout.flush());
}

/// What is called in the study of gRPC against a JSON API, and how.
#[derive(Debug, Args)]
struct EchoArgs {
    /// Call thalweg.lab.v1.Echo in place of BenchmarkService: strings:COUNTxLETTERS, person, a message of the codec
    /// study, such as order, or own
    #[arg(long, value_name = "SHAPE", conflicts_with = "cacert")]
    echo: Option<Shape>,

    /// With --echo own: the file that has the type of the messages
    #[arg(long, value_name = "FILE", requires_all = ["echo", "echo_type", "echo_messages"])]
    echo_proto: Option<PathBuf>,

    /// That type, such as shop.Order
    #[arg(long, value_name = "NAME", requires = "echo_proto")]
    echo_type: Option<String>,

    /// The messages: JSON one after the other (.json, .jsonl), or binary with each one's length before it
    #[arg(long, value_name = "FILE", requires = "echo_proto")]
    echo_messages: Option<PathBuf>,

    /// How it is called: grpc, or grpc-web, connect, json or msgpack over a version of HTTP, such as json-h2
    #[arg(long, value_name = "NAME", default_value = "grpc", requires = "echo")]
    protocol: Protocol,

    /// Ask the server for the times of each call, and divide it into its stages
    #[arg(long, requires = "echo")]
    times: bool,

    /// Encode the request once, and look at the length of answers only, so that the client costs little
    #[arg(long, requires = "echo", conflicts_with = "times")]
    prepared: bool,

    /// Compress messages by gzip both ways
    #[arg(long, requires = "echo")]
    gzip: bool,
}

impl EchoArgs {
    fn own(&self) -> Result<Option<OwnEcho>, Failure> {
        match (&self.echo_proto, &self.echo_type, &self.echo_messages) {
            (Some(proto), Some(name), Some(messages)) => Ok(Some(echoed(proto, name, messages)?.0)),
            _ => Ok(None),
        }
    }

    fn work(&self) -> Option<EchoWork> {
        let looks = match (self.times, self.prepared) {
            (true, _) => Looks::Times,
            (_, true) => Looks::Bytes,
            _ => Looks::Objects,
        };
        self.echo.map(|shape| EchoWork { shape, protocol: self.protocol, looks, gzip: self.gzip })
    }
}

impl LoadArgs {
    /// The names that begin with `typed`, where `here` is what is called.
    pub(crate) async fn complete(&self, here: &str, typed: &str) -> Option<Vec<String>> {
        let What::Method(name) = &self.call else { return None };
        if name.to_string() != here {
            return None;
        }
        let set_up = self.set_up();
        let connecting = Connecting {
            targets: std::slice::from_ref(&self.target),
            connections: 1,
            is_adaptive: false,
            timeout: self.connect_timeout(),
            authority: self.any.authority.as_deref(),
            set_up: &set_up,
        };
        complete::methods(&self.any, &connecting, typed).await
    }

    /// Any method, by its descriptor, or a scenario.
    fn run_any(&self, method: Option<&MethodName>) -> Result<ExitCode, Failure> {
        let foreign = [
            (self.bare.is_some(), "--bare"),
            (self.echo.echo.is_some(), "--echo"),
            (self.method.is_some(), "--method"),
            (self.size.0 > 0, "--size"),
            (self.lanes == LaneRule::PerCall, "--lanes per-call"),
        ];
        if let Some((_, flag)) = foreign.into_iter().find(|(is_there, _)| *is_there) {
            return Err(Failure::bad_arguments(format!(
                "{flag} is for loads on grpc.testing.BenchmarkService by themselves, without a method or a scenario"
            )));
        }
        for (flag, duration) in [
            ("-z", self.duration),
            ("--max-duration", self.max_duration),
            ("--warmup", self.warmup),
            ("--timeout", Some(self.timeout)),
            ("--connect-timeout", self.connect_timeout),
        ] {
            nanoseconds(flag, duration.unwrap_or_default())?;
        }
        let stop = match (self.duration, self.total) {
            (_, Some(total)) => Some(Stop::Calls(total)),
            (duration, None) => duration.map(Stop::After),
        };
        let output = Output::open(self.output.as_deref(), self.format)?;
        let set_up = self.set_up();
        let set_up = |channel: ChannelBuilder| match self.runtime.busy_poll {
            Some(duration) => set_up(channel).busy_poll(duration),
            None => set_up(channel),
        };
        let common = any::Common {
            target: &self.target,
            in_flight: self.in_flight,
            connections: self.connections,
            is_adaptive: self.lanes == LaneRule::Adaptive,
            stop,
            max_duration: self.max_duration,
            warm_up: self.warmup,
            timeout: self.timeout,
            connect_timeout: self.connect_timeout(),
            threads: self.runtime.threads(|_| 1)?,
            set_up: &set_up,
            announce: &|moment| self.announce(moment),
        };
        any::run(&self.any, method, &common, &output).inspect_err(|_| output.abandon())
    }

    /// The type of BenchmarkService's calls.
    fn benchmark(&self) -> Result<CallType, Failure> {
        let What::Benchmark(call) = self.call else {
            return Err(Failure::bad_arguments("--call names a method, and no type of call"));
        };
        let foreign = [(self.any.has_schedule(), "--rps"), (self.max_duration.is_some(), "--max-duration")];
        let foreign = foreign.into_iter().find(|(is_there, _)| *is_there).map(|(_, flag)| flag);
        let foreign = foreign.or_else(|| self.any.foreign());
        if let Some(flag) = foreign {
            return Err(Failure::bad_arguments(format!(
                "{flag} takes a method: --call package.Service/Method, such as \
                 grpc.testing.BenchmarkService/UnaryCall"
            )));
        }
        Ok(call)
    }

    fn connect_timeout(&self) -> Duration {
        self.connect_timeout.unwrap_or(self.timeout)
    }

    /// What all connections have.
    fn set_up(&self) -> impl Fn(ChannelBuilder) -> ChannelBuilder {
        let (tls, keepalive_time) = (self.tls.config(), self.keepalive_time);
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

    fn announce(&self, moment: Announcement) {
        if self.announce {
            say(moment);
        }
    }

    /// On this thread.
    fn bare_run(&self, settings: &LoadSettings, patience: Patience) -> Result<LoadResult, Failure> {
        self.runtime.threads(|_| 1)?;
        let interrupt = Interrupt::on_signals().map_err(Failure::failed)?;
        bare::drive(settings, patience, &interrupt, |moment| self.announce(moment)).map_err(failure)
    }

    fn settings(&self) -> Result<LoadSettings, Failure> {
        let call = self.benchmark()?;
        let duration = match (self.duration, self.total) {
            (None, None) => Some(DURATION_DEFAULT),
            (duration, _) => duration,
        };
        let warmup =
            self.warmup.unwrap_or(if self.total.is_some() { Duration::ZERO } else { WARM_UP_DEFAULT });
        let in_flight = self.in_flight.unwrap_or(match call {
            CallType::Unary => IN_FLIGHT_DEFAULT.max(self.connections),
            _ => self.connections,
        });
        // HTTP/1.1 has a call at a time on each connection.
        let echo = self.echo.work();
        let is_http1 = echo.is_some_and(|work| work.protocol.is_http1());
        Ok(LoadSettings {
            target: self.target.clone(),
            call,
            size_bytes: self.size.0,
            in_flight,
            connections: if is_http1 { in_flight } else { self.connections },
            lanes: self.lanes,
            echo,
            method: self.method.as_deref().map(|method| request::call(method, self.hex.as_ref())),
            handing: self.variant,
            warmup_ns: nanoseconds("--warmup", warmup)?,
            duration_ns: duration.map(|duration| nanoseconds("-z", duration)).transpose()?,
            total: self.total,
            bare: self.bare.map(|wire| BareRun { wire, active: self.active.unwrap_or(self.connections) }),
            busy_poll_ns: self.runtime.busy_poll.map(|it| nanoseconds("--busy-poll", it)).transpose()?,
            cpus: self.runtime.cpus.clone(),
        })
    }
}

/// A year at the most, so that times can be added without a second thought.
fn nanoseconds(flag: &str, duration: Duration) -> Result<u64, Failure> {
    const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
    if duration > YEAR {
        return Err(Failure::bad_arguments(format!("{flag} is longer than a year")));
    }
    Ok(duration.as_nanos() as u64)
}

fn failure(error: DriveError) -> Failure {
    match error {
        DriveError::Settings(_) | DriveError::Method(_) | DriveError::Target(_) => {
            Failure::bad_arguments(error)
        }
        DriveError::Connect(_)
        | DriveError::Silent { .. }
        | DriveError::Bare { .. }
        | DriveError::FirstCall { .. } => Failure::failed(error),
        DriveError::Interrupted => Failure::interrupted(error),
    }
}

fn rendered(result: &LoadResult, format: Format) -> String {
    match format {
        Format::Text => text::load(result),
        Format::Json => json(result),
    }
}

/// The exit code, or what made the run a failure.
fn verdict(result: &LoadResult, interrupted: bool) -> Result<ExitCode, Failure> {
    if interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if !result.is_valid() && result.error_count() > 0 {
        let why = result.notes.iter().find(|note| note.invalidates).map(|note| note.text.as_str());
        return Err(Failure::failed(format!("the run is not valid: {}", why.unwrap_or_default())));
    }
    if result.messages > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let errors: Vec<String> = result.errors.iter().map(|(code, count)| format!("{code} {count}")).collect();
    let first = result.notes.first().map(|note| note.text.as_str()).unwrap_or_default();
    Err(Failure::failed(match errors.as_slice() {
        [] => "nothing ended within the measured time: let -z be longer".to_owned(),
        _ => format!("every call failed ({}): {first}", errors.join(", ")),
    }))
}
