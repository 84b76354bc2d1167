//! Command line of `thalweg load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use thalweg_dynamic::{MethodName, MethodNameError};
use thalweg_load::record::{CallType, UnknownCallType};
use thalweg_load::spec::method;

use super::any_arguments::AnyArgs;
use crate::format::RunFormat;
use crate::load_arguments::CommonArgs;
use crate::runtime::RuntimeArgs;
use crate::seconds;
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
  0    OK, even if the run is NOT VALID
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
        value_parser = parse_call_target
    )]
    pub(super) call: CallTarget,

    #[command(flatten)]
    pub(super) common: CommonArgs,

    /// Send a PING after this much silence, at least 10s [default: never]
    ///
    /// The connection is closed if the PING is not answered within the same time, at most 20s.
    #[arg(long, visible_alias = "keepalive", value_name = "DURATION", value_parser = seconds::parse)]
    pub(super) keepalive_time: Option<Duration>,

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

/// A value of `--call`.
#[derive(Clone, Debug)]
pub(crate) enum CallTarget {
    /// A call type of BenchmarkService.
    Benchmark(CallType),
    Method(MethodName),
}

impl CallTarget {
    pub(super) fn method(&self) -> MethodName {
        match self {
            Self::Benchmark(call) => method(*call),
            Self::Method(name) => name.clone(),
        }
    }
}

fn parse_call_target(text: &str) -> Result<CallTarget, String> {
    if text.contains(['/', '.']) {
        return text.parse().map(CallTarget::Method).map_err(|error: MethodNameError| error.to_string());
    }
    text.parse().map(CallTarget::Benchmark).map_err(|error: UnknownCallType| {
        format!("{error}; write a method with its service: package.Service/Method")
    })
}
