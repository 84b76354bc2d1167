//! `thalweg lab`.

mod progress;
mod stacks;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use thalweg_lab::conduct::{Conducted, CutShort, Setup, conduct};
use thalweg_lab::interrupt::Interrupt;
use thalweg_lab::plan::{self, SizesOptions, Study, Transport};
use thalweg_lab::process::{ProcessExecutor, Program};
use thalweg_lab::record::CallType;
use thalweg_lab::report;
use thalweg_lab::results::{self, LabResults, ResultsDirectory, Settings};
use thalweg_lab::size::ByteSize;

use crate::failure::Failure;
use progress::Progress;
use stacks::{AgainstArgs, Stacks};

/// Measure all kinds of call over message sizes, on a server that this command starts, and write a report
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// What to study
    #[arg(value_enum, default_value_t = StudyName::Sizes)]
    study: StudyName,

    /// Fewer sizes and shorter points: within 90 seconds, or 6 minutes where stacks are compared
    #[arg(long)]
    quick: bool,

    /// Where results.json, results.csv and report.html go [default: lab-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Kinds of call, such as unary,bidi-stream [default: all four]
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    calls: Option<Vec<CallType>>,

    /// Message sizes, such as 0,1KiB,1.5MB [default: 0 to 4 MiB]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    sizes: Option<Vec<ByteSize>>,

    /// tcp, uds or tcp,uds [default: both; comparing with --quick: tcp]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    transports: Option<Vec<Transport>>,

    /// Unary calls in flight, beside those made one at a time
    #[arg(short = 'c', long = "in-flight", value_name = "N", default_value_t = 16)]
    in_flight: u32,

    /// Connections
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: u32,

    /// The whole study takes no longer than this [default: 13min, --quick 75s; comparing four stacks: 45min, --quick 315s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,

    #[command(flatten)]
    against: AgainstArgs,

    /// Measure nothing: write the report of a results.json that exists
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "calls", "sizes", "transports", "budget", "against"])]
    from: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StudyName {
    /// Calls over message sizes, TCP and Unix domain sockets
    Sizes,
}

pub(crate) fn run(mut args: LabArgs) -> Result<ExitCode, Failure> {
    let directory = args.out.take().unwrap_or_else(default_directory);
    if let Some(file) = &args.from {
        let results = results::read(file).map_err(Failure::failed)?;
        let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
        return show(&directory, &results);
    }

    let mut stacks = args.against.stacks();
    // What cannot be planned is said before anything is built or started.
    args.study(&stacks)?;
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    let (programs, mut executor) = start(&args.against, &mut stacks)?;
    let study = args.study(&stacks)?;
    let (stacks, left_out) = stacks.told(&programs);
    let settings = Settings {
        arguments: std::env::args().skip(1).collect(),
        client_cpus: executor.client_cpus().cloned(),
        server_cpus: executor.server_cpus().cloned(),
    };
    let setup = Setup { settings, stacks, left_out };
    let mut progress = Progress::new(&study);
    let Conducted { results, cut_short } = conduct(&study, setup, &mut executor, &directory, &mut progress);
    progress.end();
    drop(executor);

    let code = show(&directory, &results)?;
    match cut_short {
        None if results.has_failures() => Err(Failure::failed("some points failed: see what stands above")),
        None => Ok(code),
        Some(CutShort::Interrupted) => Err(Failure::interrupted("interrupted: the report is a partial one")),
        Some(error @ (CutShort::Failed(_) | CutShort::NotWritable(_))) => Err(Failure::failed(error)),
    }
}

impl LabArgs {
    fn study(&self, stacks: &Stacks) -> Result<Study, Failure> {
        match self.study {
            StudyName::Sizes => plan::sizes(&self.options(stacks)).map_err(Failure::bad_arguments),
        }
    }

    fn options(&self, stacks: &Stacks) -> SizesOptions {
        let study = stacks.options(self.quick);
        SizesOptions {
            sizes: self.sizes.clone().unwrap_or(study.sizes),
            calls: self.calls.clone().unwrap_or(study.calls),
            transports: self.transports.clone().unwrap_or(study.transports),
            in_flight: self.in_flight,
            connections: self.connections,
            budget: self.budget.unwrap_or(study.budget),
            comparison: study.comparison,
        }
    }
}

/// The programs of all stacks, and the executor with their servers running.
fn start(
    args: &AgainstArgs,
    stacks: &mut Stacks,
) -> Result<(BTreeMap<String, Program>, ProcessExecutor), Failure> {
    let ours = std::env::current_exe().map(Program::ours).map_err(|error| {
        Failure::failed(format!("cannot find this program to start it as a server: {error}"))
    })?;
    let programs = stacks.programs(args, ours)?;
    let interrupt = Interrupt::on_signals()
        .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
    let mut executor = ProcessExecutor::new(programs.clone(), interrupt)
        .map_err(|error| Failure::failed(format!("cannot see the processors: {error}")))?;
    stacks.serve(&mut executor)?;
    Ok((programs, executor))
}

/// `lab-2026-11-21T08-00-00` here.
fn default_directory() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    PathBuf::from(format!("lab-{}", now.trim_end_matches('Z').replace(':', "-")))
}

/// Writes the report, prints its tables and findings, and says where it is.
fn show(directory: &ResultsDirectory, results: &LabResults) -> Result<ExitCode, Failure> {
    let page = report::write(directory, results).map_err(Failure::failed)?;
    let text = format!("{}\nReport: {}\n", report::terminal(results), page.display());
    match io::stdout().write_all(text.as_bytes()) {
        // Who pipes into `head` has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}
