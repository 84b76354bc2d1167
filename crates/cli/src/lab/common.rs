//! Parts that all studies share.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use clap::builder::RangedI64ValueParser;
use serde::Serialize;
use thalweg_lab::AnyResults;
use thalweg_lab::peers::PeersDirectory;
use thalweg_lab::process::Program;
use thalweg_lab::report::{self, Report};
use thalweg_lab::study::{
    Analyse, Conducted, CutShort, Execute, Plan, ResultsDirectory, StudyResults, StudyTables, conduct,
};
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;

use super::progress::Progress;
use crate::failure::Failure;
use crate::output::OutputFile;
use crate::{report_text, runtime, signals};

/// Options of all studies.
#[derive(Debug, Args)]
pub(super) struct StudyArgs {
    /// Fewer and shorter measurements
    #[arg(long)]
    pub(super) quick: bool,

    /// Output folder [default: lab-DATE-TIME]
    ///
    /// It gets results.json, results.csv and report.html.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Time limit of the whole study
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) budget: Option<Duration>,

    /// Write the report of an existing results.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "budget"])]
    from: Option<PathBuf>,
}

impl StudyArgs {
    /// Creates the output folder.
    pub(super) fn directory(&self) -> Result<ResultsDirectory, Failure> {
        results_directory(self.out.as_deref())
    }

    /// Reports existing results, if `--from` is given.
    pub(super) fn report_from_results(&self) -> Option<Result<ExitCode, Failure>> {
        let show = |file: &PathBuf| {
            let results = AnyResults::read(file).map_err(Failure::failed)?;
            let directory = self.directory()?;
            results.save(&directory).map_err(Failure::failed)?;
            let report = results.analyse();
            show(&directory, &report)?;
            check_answer(&report)
        };
        self.from.as_ref().map(show)
    }
}

/// Folder of other stacks' programs.
#[derive(Clone, Debug, Args)]
pub(super) struct PeersArgs {
    /// Folder of other stacks, each as NAME/peer [default: target/peers, built in a clone]
    #[arg(long, value_name = "DIR")]
    pub(super) peers: Option<PathBuf>,
}

impl PeersArgs {
    pub(super) fn directory(&self) -> Option<PeersDirectory> {
        PeersDirectory::named_or_found(self.peers.as_deref())
    }
}

/// Parses a number of rounds. Bounded, because each round is planned.
pub(super) fn rounds() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=1000)
}

/// Measures the study, writes its report and returns the outcome.
pub(super) fn finish<S: Serialize, T: StudyTables>(
    plan: &Plan<T::Window>,
    about: &str,
    results: StudyResults<S, T>,
    mut executor: impl Execute<Window = T::Window, Measurement = T::Measurement>,
    directory: &ResultsDirectory,
) -> Result<ExitCode, Failure>
where
    StudyResults<S, T>: Analyse,
{
    let mut progress = Progress::new(plan, about);
    let Conducted { results, cut_short } = conduct(plan, results, &mut executor, directory, &mut progress);
    progress.end();
    drop(executor);

    if let (Some(CutShort::Failed(reason)), true) = (&cut_short, results.is_empty()) {
        return Err(Failure::failed(reason));
    }
    let report = results.analyse();
    show(directory, &report)?;
    match cut_short {
        None if results.has_failures() => Err(Failure::failed("some points failed; see above")),
        None => check_answer(&report),
        Some(CutShort::Interrupted) => Err(Failure::interrupted("interrupted; the report is partial")),
        Some(error @ (CutShort::Failed(_) | CutShort::NotWritable(_))) => Err(Failure::failed(error)),
    }
}

/// Fails if the study has no answer.
fn check_answer(report: &Report) -> Result<ExitCode, Failure> {
    match report.unanswered {
        Some(_) => {
            Err(Failure::failed("the study is inconclusive: too many windows are not valid; see above"))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

pub(super) fn this_program() -> Result<Program, Failure> {
    runtime::program().map(Program::ours)
}

pub(super) fn listen_for_signals() -> Result<Interrupt, Failure> {
    Interrupt::on_signals().map_err(|error| signals::handler_failure(&error))
}

/// Assigns separate CPUs to client and server, if there are enough.
pub(super) fn halves() -> Result<CpuAssignment, Failure> {
    CpuAssignment::halves().map_err(|error| Failure::failed(format!("failed to read the CPUs: {error}")))
}

/// Creates the output folder, by default `lab-2026-11-21T08-00-00` in the current one.
pub(super) fn results_directory(named: Option<&Path>) -> Result<ResultsDirectory, Failure> {
    let default = || {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        PathBuf::from(format!("lab-{}", now.trim_end_matches('Z').replace(':', "-")))
    };
    ResultsDirectory::create(named.map_or_else(default, Path::to_owned)).map_err(Failure::failed)
}

/// Writes the report and prints its tables, findings and path.
pub(super) fn show(directory: &ResultsDirectory, report: &Report) -> Result<(), Failure> {
    let page = report::write(directory, report).map_err(Failure::failed)?;
    let text = format!("{}\nReport: {}\n", report::terminal(report), page.display());
    report_text::write(&OutputFile::Stdout, &text)
}
