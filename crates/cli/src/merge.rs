//! `thalweg merge`: results of one load that came from several machines, as one.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use thalweg_load::LoadRun;

use crate::failure::Failure;
use crate::format::RunFormat;
use crate::results::read_result;

const EXAMPLES: &str = "\
Examples:
  thalweg merge worker-0.json worker-1.json
  thalweg merge results/*.json -O json -o all.json";

/// Join results of `thalweg load --call METHOD -O json`: histograms are added, not percentiles averaged
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Results, of the schema thalweg.load-run/1
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Format of the result
    #[arg(short = 'O', long, value_enum, default_value_t = RunFormat::Text)]
    format: RunFormat,

    /// Write the result to this file, not to stdout
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &MergeArgs) -> Result<ExitCode, Failure> {
    let runs = args.files.iter().map(|file| read_result(file)).collect::<Result<Vec<LoadRun>, Failure>>()?;
    let merged = LoadRun::merged(&runs).map_err(|error| {
        let names: Vec<String> = (1..)
            .zip(&args.files)
            .map(|(number, file)| format!("run {number} is {}", file.display()))
            .collect();
        Failure::failed(format!("{error} ({})", names.join(", ")))
    })?;
    let text = args.format.rendered(&merged);
    match &args.output {
        Some(path) => fs::write(path, text)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?,
        None => print!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}
