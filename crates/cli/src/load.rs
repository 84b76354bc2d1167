//! `thalweg load`.

mod any;
mod any_arguments;
mod arguments;
mod benchmark;
mod benchmark_arguments;
mod checks;
mod complete;
mod connecting;
mod data;
mod deadline;
mod defaults;
mod export;
mod given;
mod label;
mod live;
mod made;
mod notices;
mod output;
mod plan;
mod progress;
mod rows;
mod scenario;
mod scenario_file;
mod sides;
mod start_at;
mod steps;
mod verdict;
mod watching;

use std::process::ExitCode;

pub(crate) use self::arguments::LoadArgs;
use self::arguments::What;
use crate::failure::Failure;

/// Of any method, or of BenchmarkService.
pub(crate) fn run(args: &LoadArgs) -> Result<ExitCode, Failure> {
    driven(args).map_err(|failure| args.tls.explain(failure))
}

fn driven(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let method = match &args.call {
        What::Method(name) => Some(name),
        What::Benchmark(_) if args.any.scenario.is_some() => None,
        What::Benchmark(call) => {
            sides::check_benchmark(&args.given)?;
            return benchmark::run(args, *call);
        }
    };
    sides::check_any(&args.given, args.lanes)?;
    any::run(args, method)
}

/// The names that begin with `typed`, where `here` is what is called.
pub(crate) async fn complete(args: &LoadArgs, here: &str, typed: &str) -> Option<Vec<String>> {
    match &args.call {
        What::Method(name) if name.to_string() == here => complete::methods(args, typed).await,
        _ => None,
    }
}
