//! `thalweg lab`.

mod channels;
mod codec;
mod progress;
mod sizes;
mod stacks;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand};
use thalweg_lab::conduct::{Conducted, CutShort, Setup, conduct};
use thalweg_lab::execute::Execute;
use thalweg_lab::interrupt::Interrupt;
use thalweg_lab::plan::Study;
use thalweg_lab::process::{Places, ProcessExecutor, Program, TargetExecutor};
use thalweg_lab::record::MethodCall;
use thalweg_lab::report;
use thalweg_lab::results::{self, LabResults, ResultsDirectory, Settings, StackInfo};
use thalweg_lab::stack::Stack;

use crate::failure::Failure;
use channels::ChannelsArgs;
use codec::CodecArgs;
use progress::Progress;
use sizes::SizesArgs;
use stacks::{AgainstArgs, Stacks};

/// Measure calls on servers that this command starts, and write a report: over message sizes, unless another study is named
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    study: Option<StudyArgs>,

    #[command(flatten)]
    sizes: SizesArgs,
}

#[derive(Debug, Subcommand)]
enum StudyArgs {
    Sizes(Box<SizesArgs>),
    Channels(Box<ChannelsArgs>),
    Codec(Box<CodecArgs>),
}

/// How often a study may measure the same: each round is planned, so there is a bound.
fn rounds() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=1000)
}

/// What every study understands.
#[derive(Debug, Args)]
struct CommonArgs {
    /// Fewer points, and shorter ones
    #[arg(long)]
    quick: bool,

    /// Where results.json, results.csv and report.html go [default: lab-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// The whole study takes no longer than this
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,

    #[command(flatten)]
    against: AgainstArgs,

    /// Measure nothing: write the report of a results.json that exists
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "budget", "against"])]
    from: Option<PathBuf>,
}

pub(crate) fn run(args: LabArgs) -> Result<ExitCode, Failure> {
    match args.study {
        None => study(&args.sizes),
        Some(StudyArgs::Sizes(sizes)) => study(&*sizes),
        Some(StudyArgs::Channels(channels)) => study(&*channels),
        Some(StudyArgs::Codec(args)) => codec::run(&args),
    }
}

/// What differs from study to study.
trait Plan {
    fn common(&self) -> &CommonArgs;

    /// Where clients and servers run.
    fn places(&self) -> Result<Places, Failure>;

    /// The windows, for these stacks. Before the programs are there, of a peer nothing but its name is known.
    fn plan(&self, stacks: &Stacks, programs: &BTreeMap<String, Program>) -> Result<Study, Failure>;

    /// Somebody else's server, if that is what is to be measured.
    fn aim(&self) -> Result<Option<Aim>, Failure> {
        Ok(None)
    }
}

fn study(args: &impl Plan) -> Result<ExitCode, Failure> {
    let common = args.common();
    let directory = common.out.clone().unwrap_or_else(default_directory);
    if let Some(file) = &common.from {
        let results = results::read(file).map_err(Failure::failed)?;
        let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
        return show(&directory, &results);
    }

    let places = args.places()?;
    if let Some(aim) = args.aim()? {
        return at_target(args, aim, places, directory);
    }
    let mut stacks = common.against.stacks();
    // What cannot be planned is said before anything is built or started.
    args.plan(&stacks, &BTreeMap::new())?;
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    let (programs, executor) = start(&common.against, &mut stacks, places.clone())?;
    let study = args.plan(&stacks, &programs)?;
    let (stacks, left_out) = stacks.told(&programs);
    let settings = Settings {
        arguments: std::env::args().skip(1).collect(),
        client_cpus: places.client_cpus,
        server_cpus: places.server_cpus,
        client_threads: places.client_threads,
        server_threads: places.server_threads,
        target: None,
    };
    let setup = Setup { settings, stacks, left_out };
    finish(&study, setup, executor, &directory)
}

/// Somebody else's server, what is called there, and the windows.
struct Aim {
    target: String,
    method: MethodCall,
    study: Study,
}

/// Our client at somebody else's server.
fn at_target(args: &impl Plan, aim: Aim, places: Places, directory: PathBuf) -> Result<ExitCode, Failure> {
    if args.common().against.compares() {
        return Err(Failure::bad_arguments("--target is for our own client: leave --against out"));
    }
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    let settings = Settings {
        arguments: std::env::args().skip(1).collect(),
        client_cpus: places.client_cpus.clone(),
        client_threads: places.client_threads,
        target: Some(aim.target.clone()),
        ..Settings::default()
    };
    let (ours, interrupt) = (this_program()?, listen_for_signals()?);
    let stacks = vec![StackInfo { stack: Stack::ours(), version: ours.version.clone() }];
    let executor = TargetExecutor::new(ours, aim.target, aim.method, places, interrupt);
    finish(&aim.study, Setup { settings, stacks, left_out: Vec::new() }, executor, &directory)
}

/// Measures the study, writes its report, and says what came of it.
fn finish(
    study: &Study,
    setup: Setup,
    mut executor: impl Execute,
    directory: &ResultsDirectory,
) -> Result<ExitCode, Failure> {
    let mut progress = Progress::new(study);
    let Conducted { results, cut_short } = conduct(study, setup, &mut executor, directory, &mut progress);
    progress.end();
    drop(executor);

    if let (Some(CutShort::Failed(reason)), true) = (&cut_short, results.points.is_empty()) {
        return Err(Failure::failed(reason));
    }
    let code = show(directory, &results)?;
    match cut_short {
        None if results.has_failures() => Err(Failure::failed("some points failed: see what stands above")),
        None => Ok(code),
        Some(CutShort::Interrupted) => Err(Failure::interrupted("interrupted: the report is a partial one")),
        Some(error @ (CutShort::Failed(_) | CutShort::NotWritable(_))) => Err(Failure::failed(error)),
    }
}

/// The programs of all stacks, and the executor with their servers running.
fn start(
    args: &AgainstArgs,
    stacks: &mut Stacks,
    places: Places,
) -> Result<(BTreeMap<String, Program>, ProcessExecutor), Failure> {
    let programs = stacks.programs(args, this_program()?)?;
    let mut executor = ProcessExecutor::new(programs.clone(), places, listen_for_signals()?);
    stacks.serve(&mut executor)?;
    Ok((programs, executor))
}

fn this_program() -> Result<Program, Failure> {
    std::env::current_exe()
        .map(Program::ours)
        .map_err(|error| Failure::failed(format!("cannot find this program to start it once more: {error}")))
}

fn listen_for_signals() -> Result<Interrupt, Failure> {
    Interrupt::on_signals().map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))
}

/// Client and server apart from each other, as far as there are processors.
fn halves() -> Result<Places, Failure> {
    Places::halves().map_err(|error| Failure::failed(format!("cannot see the processors: {error}")))
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
