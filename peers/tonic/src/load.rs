//! `peer load`: a closed loop of workers, each with one call in flight.

mod bidi;
mod channel;
mod client_stream;
mod kernel;
mod record;
mod result;
mod run;
mod stride;
mod supervise;
mod worker;

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use tonic::{Code, Status};

use crate::address::Address;
use crate::{Failure, PAYLOAD_BYTES_MAX, runtime};
use result::LoadResult;
use worker::Call;

/// Drive a server's grpc.testing.BenchmarkService in a closed loop
#[derive(Args)]
#[command(group = ArgGroup::new("end").args(["duration", "total"]))]
pub struct LoadArgs {
    /// HOST:PORT, unix:PATH or unix-abstract:NAME
    target: Address,

    #[arg(long, value_enum, value_name = "TYPE", default_value = "unary")]
    call: CallType,

    /// Payload bytes per message
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    size: usize,

    /// Calls in flight over all connections [default: 64; streams: one per connection]
    #[arg(short = 'c', value_name = "N")]
    in_flight: Option<u32>,

    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: u32,

    /// Measure for this long [default: 10s]
    #[arg(short = 'z', value_name = "DURATION", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,

    /// Measure this many calls, or messages of streams
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    total: Option<u64>,

    /// Drive this long before measuring [default: 1s; with -n: 0s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    warmup: Option<Duration>,

    /// Timeout of connecting, of a call, and of a stream's next message
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    timeout: Duration,

    /// Not supported: there are no variants
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,

    /// Use TLS and trust this authority, in PEM; the server's name is localhost
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Number of worker threads [default: one per CPU]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Print on stdout when measuring starts and ends
    #[arg(long)]
    announce: bool,

    #[arg(short = 'O', value_enum, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// The four types of gRPC calls, and a bidi stream with one message in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CallType {
    Unary,
    ClientStream,
    ServerStream,
    BidiStream,
    PingPong,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

fn read(path: &PathBuf) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("failed to read {}: {error}", path.display()))
}

/// Settings of a run; times in ns.
#[derive(Clone, Debug)]
struct Settings {
    target: Address,
    /// The authority that TLS trusts; `None` without TLS.
    authority: Option<Vec<u8>>,
    call: CallType,
    size: usize,
    in_flight: u32,
    connections: u32,
    warmup_ns: u64,
    /// Set if time ends the run.
    duration_ns: Option<u64>,
    /// Set if a number of operations ends the run.
    total: Option<u64>,
    /// Timeout of connecting, of a call, and of a stream's next message.
    timeout: Duration,
    announce: bool,
}

impl CallType {
    fn name(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ClientStream => "client-stream",
            Self::ServerStream => "server-stream",
            Self::BidiStream => "bidi-stream",
            Self::PingPong => "ping-pong",
        }
    }

    /// Number of payloads that one operation sends and receives.
    fn payloads(self) -> (u64, u64) {
        match self {
            Self::Unary | Self::BidiStream | Self::PingPong => (1, 1),
            Self::ClientStream => (1, 0),
            Self::ServerStream => (0, 1),
        }
    }
}

impl Settings {
    /// Returns whether the measured time ends with the last response after `duration_ns`: see "client-stream" in
    /// `peers/README.md`.
    fn ends_with_responses(&self) -> bool {
        self.call == CallType::ClientStream && self.duration_ns.is_some()
    }
}

impl LoadArgs {
    fn settings(&self) -> Result<Settings, String> {
        if let Some(variant) = &self.variant {
            return Err(format!("--variant {variant}: tonic's client has no variants"));
        }
        let duration = match (self.duration, self.total) {
            (None, None) => Some(Duration::from_secs(10)),
            (duration, _) => duration,
        };
        let warmup = self.warmup.unwrap_or(Duration::from_secs(u64::from(self.total.is_none())));
        let in_flight = self.in_flight.unwrap_or(match self.call {
            CallType::Unary => 64.max(self.connections),
            _ => self.connections,
        });
        if in_flight < self.connections || self.connections == 0 {
            return Err(format!(
                "-c {in_flight} --connections {}: each connection needs a call in flight",
                self.connections
            ));
        }
        if self.size > PAYLOAD_BYTES_MAX {
            return Err(format!("--size {}: at most {PAYLOAD_BYTES_MAX}", self.size));
        }
        Ok(Settings {
            target: self.target.clone(),
            authority: self.cacert.as_ref().map(read).transpose()?,
            call: self.call,
            size: self.size,
            in_flight,
            connections: self.connections,
            warmup_ns: nanoseconds("--warmup", warmup)?,
            duration_ns: duration.map(|duration| nanoseconds("-z", duration)).transpose()?,
            total: self.total,
            timeout: self.timeout,
            announce: self.announce,
        })
    }
}

/// Allows at most a year, so that sums of times cannot overflow.
fn nanoseconds(flag: &str, duration: Duration) -> Result<u64, String> {
    match duration.as_secs() {
        ..=31_622_400 => Ok(duration.as_nanos() as u64),
        _ => Err(format!("{flag} is longer than a year")),
    }
}

pub fn run(args: LoadArgs) -> Result<ExitCode, Failure> {
    let settings = args.settings().map_err(Failure::Misuse)?;
    let runtime = runtime(args.threads)?;
    let driven = runtime.block_on(drive(&settings));
    // Open connections are irrelevant now.
    runtime.shutdown_background();
    let result = driven.map_err(Failure::Failed)?;
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&result).expect("numbers and strings")),
        Format::Text => println!("{}", result.line()),
    }
    if result.messages > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let first = result.notes.first().map_or("nothing ended within the measured time", |note| &note.text);
    Err(Failure::Failed(format!("no call succeeded: {first}")))
}

async fn drive(settings: &Settings) -> Result<LoadResult, String> {
    let before = kernel::established();
    let clients = channel::connect(settings).await?;
    let call = Call { kind: settings.call, size: settings.size };
    first_call(call, &clients[0], settings).await?;

    let mut result = supervise::supervise(settings, call, &clients).await;
    let after = kernel::established();
    result.count_connections(after.zip(before).map(|(after, before)| after.saturating_sub(before)));
    drop(clients);
    Ok(result)
}

/// Makes a unary call of the run's size, so that a missing server is an error and not a run of failures.
async fn first_call(call: Call, client: &channel::Client, settings: &Settings) -> Result<(), String> {
    let mut client = client.clone();
    let request = worker::request(call.size, call.size);
    let outcome = async {
        let response = client.unary_call(request).await?;
        worker::check_size(response.get_ref(), call.size)
    };
    let outcome = tokio::time::timeout(settings.timeout, outcome).await;
    let outcome = outcome.unwrap_or_else(|_| Err(unanswered(settings.timeout)));
    outcome.map_err(|status| {
        let (target, status) = (&settings.target, described(&status));
        format!("{target}: the first call, grpc.testing.BenchmarkService/UnaryCall, ended with {status}")
    })
}

fn unanswered(timeout: Duration) -> Status {
    Status::deadline_exceeded(format!("nothing came within {timeout:?}"))
}

/// Formats a status like `UNAVAILABLE: connection lost`.
fn described(status: &Status) -> String {
    match (record::code_name(status.code()), status.message()) {
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {}", message.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// An OK status in an error means that the wrong response came.
fn failed_code(status: &Status) -> Code {
    if status.code() == Code::Ok { Code::DataLoss } else { status.code() }
}
