//! `thalweg lab`.

mod channels;
mod codec;
mod progress;
mod sizes;
mod stacks;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand};
use thalweg_lab::AnyResults;
use thalweg_lab::cpus::CpuAssignment;
use thalweg_lab::interrupt::Interrupt;
use thalweg_lab::load::{Found, LabResults, Settings, Setup, StackInfo, StudyKind, Window};
use thalweg_lab::process::{ProcessExecutor, Program, TargetExecutor};
use thalweg_lab::record::MethodCall;
use thalweg_lab::report::{self, Report};
use thalweg_lab::stack::Stack;
use thalweg_lab::study::{Conducted, CutShort, Execute, Plan, Results, ResultsDirectory, Study, conduct};

use crate::failure::Failure;
use channels::ChannelsArgs;
use codec::CodecArgs;
use progress::Progress;
use sizes::SizesArgs;
use stacks::{AgainstArgs, Stacks};

/// Measure calls on servers that this command starts, and write a report: over message sizes, unless another study is
/// named
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

    /// Directory for results.json, results.csv and report.html [default: lab-DATE-TIME]
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
        None => calls(&args.sizes),
        Some(StudyArgs::Sizes(sizes)) => calls(&*sizes),
        Some(StudyArgs::Channels(channels)) => calls(&*channels),
        Some(StudyArgs::Codec(args)) => codec::run(&args),
    }
}

/// A study of calls, as it was asked for.
trait CallsStudy {
    /// How what it finds is analysed.
    type Study: Study<Window = Window, Found = Found, Results = LabResults>;

    /// Which study it is.
    const KIND: StudyKind;

    fn common(&self) -> &CommonArgs;

    /// Which processors clients and servers run on.
    fn cpus(&self) -> Result<CpuAssignment, Failure>;

    /// The windows, for these stacks. Before the programs are there, of a peer nothing but its name is known.
    fn plan(&self, stacks: &Stacks, programs: &BTreeMap<String, Program>) -> Result<Plan<Window>, Failure>;

    /// Somebody else's server, if that is what is to be measured.
    fn aim(&self) -> Result<Option<Aim>, Failure> {
        Ok(None)
    }
}

fn calls<C: CallsStudy>(args: &C) -> Result<ExitCode, Failure> {
    let common = args.common();
    let directory = common.out.clone().unwrap_or_else(default_directory);
    if let Some(file) = &common.from {
        return show_earlier(file, directory);
    }

    let cpus = args.cpus()?;
    if let Some(aim) = args.aim()? {
        return at_target(args, aim, cpus, directory);
    }
    let mut stacks = common.against.stacks();
    // What cannot be planned is said before anything is built or started.
    args.plan(&stacks, &BTreeMap::new())?;
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    let (programs, executor) = start(&common.against, &mut stacks, cpus.clone())?;
    let plan = args.plan(&stacks, &programs)?;
    let (stacks, left_out) = stacks.told(&programs);
    let settings = Settings {
        arguments: std::env::args().skip(1).collect(),
        client_cpus: cpus.client_cpus,
        server_cpus: cpus.server_cpus,
        client_threads: cpus.client_threads,
        server_threads: cpus.server_threads,
        target: None,
    };
    let results = LabResults::begun(C::KIND, &plan, Setup { settings, stacks, left_out });
    finish::<C::Study>(&plan, "", results, executor, &directory)
}

/// Somebody else's server, what is called there, and the windows.
struct Aim {
    target: String,
    method: MethodCall,
    plan: Plan<Window>,
}

/// Our client at somebody else's server.
fn at_target<C: CallsStudy>(
    args: &C,
    aim: Aim,
    cpus: CpuAssignment,
    directory: PathBuf,
) -> Result<ExitCode, Failure> {
    if args.common().against.compares() {
        return Err(Failure::bad_arguments("--target is for our own client: leave --against out"));
    }
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    let settings = Settings {
        arguments: std::env::args().skip(1).collect(),
        client_cpus: cpus.client_cpus.clone(),
        client_threads: cpus.client_threads,
        target: Some(aim.target.clone()),
        ..Settings::default()
    };
    let (ours, interrupt) = (this_program()?, listen_for_signals()?);
    let stacks = vec![StackInfo { stack: Stack::ours(), version: ours.version.clone() }];
    let executor = TargetExecutor::new(ours, aim.target, aim.method, cpus, interrupt);
    let results = LabResults::begun(C::KIND, &aim.plan, Setup { settings, stacks, left_out: Vec::new() });
    finish::<C::Study>(&aim.plan, "", results, executor, &directory)
}

/// Measures the study, writes its report, and says what came of it.
fn finish<S: Study>(
    plan: &Plan<S::Window>,
    about: &str,
    results: S::Results,
    mut executor: impl Execute<Window = S::Window, Found = S::Found>,
    directory: &ResultsDirectory,
) -> Result<ExitCode, Failure> {
    let mut progress = Progress::new(plan, about);
    let Conducted { results, cut_short } = conduct(plan, results, &mut executor, directory, &mut progress);
    progress.end();
    drop(executor);

    if let (Some(CutShort::Failed(reason)), true) = (&cut_short, results.is_empty()) {
        return Err(Failure::failed(reason));
    }
    let code = show(directory, &S::analyse(&results))?;
    match cut_short {
        None if results.has_failures() => Err(Failure::failed("some points failed: see what stands above")),
        None => Ok(code),
        Some(CutShort::Interrupted) => Err(Failure::interrupted("interrupted: the report is a partial one")),
        Some(error @ (CutShort::Failed(_) | CutShort::NotWritable(_))) => Err(Failure::failed(error)),
    }
}

/// The report of results that exist, of whichever study.
fn show_earlier(file: &Path, directory: PathBuf) -> Result<ExitCode, Failure> {
    let results = AnyResults::read(file).map_err(Failure::failed)?;
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    results.save(&directory).map_err(Failure::failed)?;
    show(&directory, &*results.analyse())
}

/// The programs of all stacks, and the executor with their servers running.
fn start(
    args: &AgainstArgs,
    stacks: &mut Stacks,
    cpus: CpuAssignment,
) -> Result<(BTreeMap<String, Program>, ProcessExecutor), Failure> {
    let programs = stacks.programs(args, this_program()?)?;
    let mut executor = ProcessExecutor::new(programs.clone(), cpus, listen_for_signals()?);
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
fn halves() -> Result<CpuAssignment, Failure> {
    CpuAssignment::halves().map_err(|error| Failure::failed(format!("cannot see the processors: {error}")))
}

/// `lab-2026-11-21T08-00-00` here.
fn default_directory() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    PathBuf::from(format!("lab-{}", now.trim_end_matches('Z').replace(':', "-")))
}

/// Writes the report, prints its tables and findings, and says where it is.
fn show(directory: &ResultsDirectory, report: &dyn Report) -> Result<ExitCode, Failure> {
    let page = report::write(directory, report).map_err(Failure::failed)?;
    let text = format!("{}\nReport: {}\n", report::terminal(report), page.display());
    match io::stdout().write_all(text.as_bytes()) {
        // Who pipes into `head` has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}
