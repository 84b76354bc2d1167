//! `thalweg merge`: merges the results of a distributed load.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thalweg_load::{LoadRun, ResultsToAwait, gather};

use crate::failure::Failure;
use crate::format::RunFormat;
use crate::output::OutputFile;

const EXAMPLES: &str = "\
Examples:
  thalweg load HOST:50051 --call shop.Orders/Get --rps 1000 \\
    --share 0/2 -O json -o worker-0.json      # on the other machine 1/2
  thalweg merge worker-0.json worker-1.json
  thalweg merge results -O json -o all.json
  thalweg merge results --wait-for 8 --timeout 10m";

/// Merge results of a distributed load
///
/// It reads results of `thalweg load --call METHOD -O json`, adds their histograms, and computes percentiles of
/// the sum.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Results of `thalweg load -O json`, or folders of them
    #[arg(value_name = "FILE|FOLDER", required = true)]
    files: Vec<PathBuf>,

    /// Wait for N complete results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    wait_for: Option<u32>,

    /// Stop waiting after this time, with exit code 1
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = humantime::parse_duration,
          requires = "wait_for")]
    timeout: Duration,

    /// Output format
    #[arg(short = 'O', long, value_enum, default_value_t = RunFormat::Text)]
    format: RunFormat,

    /// Write the result to a file
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &MergeArgs) -> Result<ExitCode, Failure> {
    let output = OutputFile::open(args.output.as_deref())?;
    let merged = merged(args)?;
    args.format.write(&output, &args.format.rendered(&merged))?;
    Ok(ExitCode::SUCCESS)
}

fn merged(args: &MergeArgs) -> Result<LoadRun, Failure> {
    let awaited = args.wait_for.map(|count| ResultsToAwait { count: count as usize, patience: args.timeout });
    // The output file is excluded from the inputs.
    let results = gather(&args.files, args.output.as_deref(), awaited).map_err(Failure::failed)?;
    let (files, runs): (Vec<PathBuf>, Vec<LoadRun>) = results.into_iter().unzip();
    if runs.is_empty() {
        let names: Vec<String> = args.files.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::failed(format!("no results in {}", names.join(", "))));
    }
    LoadRun::merged(&runs).map_err(|error| {
        let names: Vec<String> =
            (1..).zip(&files).map(|(number, file)| format!("run {number} is {}", file.display())).collect();
        Failure::failed(format!("{error} ({})", names.join(", ")))
    })
}
