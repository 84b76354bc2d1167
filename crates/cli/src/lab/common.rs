//! What the command does for every study.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::builder::RangedI64ValueParser;
use thalweg_lab::AnyResults;
use thalweg_lab::process::Program;
use thalweg_lab::report::{self, Report};
use thalweg_lab::study::{Conducted, CutShort, Execute, Plan, Results, ResultsDirectory, Study, conduct};
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;

use super::progress::Progress;
use crate::failure::Failure;
use crate::settings;
use crate::terminal::{self, Syntax};

/// How often a study may measure the same: each round is planned, so there is a bound.
pub(super) fn rounds() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=1000)
}

/// Measures the study, writes its report, and says what came of it.
pub(super) fn finish<S: Study>(
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
    let report = S::analyse(&results);
    show(directory, &report)?;
    match cut_short {
        None if results.has_failures() => Err(Failure::failed("some points failed; see above")),
        None => answered(&report),
        Some(CutShort::Interrupted) => Err(Failure::interrupted("interrupted; the report is partial")),
        Some(error @ (CutShort::Failed(_) | CutShort::NotWritable(_))) => Err(Failure::failed(error)),
    }
}

/// The report of results that exist, of whichever study.
pub(super) fn show_earlier(file: &Path, directory: PathBuf) -> Result<ExitCode, Failure> {
    let results = AnyResults::read(file).map_err(Failure::failed)?;
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    results.save(&directory).map_err(Failure::failed)?;
    let report = results.analyse();
    show(&directory, &*report)?;
    answered(&*report)
}

/// A study that has no answer has failed.
fn answered(report: &dyn Report) -> Result<ExitCode, Failure> {
    match report.unanswered() {
        Some(_) => Err(Failure::failed("the study has no answer: too many windows are not valid; see above")),
        None => Ok(ExitCode::SUCCESS),
    }
}

pub(super) fn this_program() -> Result<Program, Failure> {
    std::env::current_exe()
        .map(|path| Program::ours(path, settings::told()))
        .map_err(|error| Failure::failed(format!("cannot find this program to start it again: {error}")))
}

pub(super) fn listen_for_signals() -> Result<Interrupt, Failure> {
    Interrupt::on_signals().map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))
}

/// Client and server apart from each other, as far as there are processors.
pub(super) fn halves() -> Result<CpuAssignment, Failure> {
    CpuAssignment::halves().map_err(|error| Failure::failed(format!("cannot read the CPUs: {error}")))
}

/// `lab-2026-11-21T08-00-00` here.
pub(super) fn default_directory() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    PathBuf::from(format!("lab-{}", now.trim_end_matches('Z').replace(':', "-")))
}

/// Writes the report, prints its tables and findings, and says where it is.
pub(super) fn show(directory: &ResultsDirectory, report: &dyn Report) -> Result<(), Failure> {
    let page = report::write(directory, report).map_err(Failure::failed)?;
    let text = format!("{}\nReport: {}\n", report::terminal(report), page.display());
    terminal::print(Syntax::Text, &text)
}
