//! `thalweg lab published`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use thalweg_lab::published::{
    Evidence, Extent, Publication, PublishedResults, PublishedSettings, judge, make, runs,
};
use thalweg_lab::study::ResultsDirectory;
use thalweg_measure::cpus::CpuList;
use thalweg_measure::interrupt::Interrupt;

use super::common::{PeersArgs, results_directory, show};
use crate::failure::Failure;
use crate::{runtime, signals};

/// Published measurements of gRPC, repeated (80 minutes; --quick: 15)
#[derive(Debug, Args)]
pub(super) struct PublishedArgs {
    /// Publications: qt, json, codec, channels [default: all]
    #[arg(value_name = "NAME", conflicts_with = "from")]
    names: Vec<Publication>,

    /// Fewer sizes and rounds
    #[arg(long)]
    quick: bool,

    /// Output folder [default: lab-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// CPUs to use, half for clients and half for servers [default: all]
    #[arg(long, value_name = "N")]
    cores: Option<NonZeroUsize>,

    #[command(flatten)]
    peers: PeersArgs,

    /// Judge the results in this folder again
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "cores", "peers", "out"])]
    from: Option<PathBuf>,

    /// Repeat failed and missing runs of this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["names", "quick", "cores", "out", "from"])]
    resume: Option<PathBuf>,
}

pub(super) fn run(args: &PublishedArgs) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.from {
        let (results, directory) = resume(folder)?;
        return finish(results, &directory);
    }
    let program = runtime::program()?;
    let (mut results, directory) = match &args.resume {
        Some(folder) => {
            let left = resume(folder)?;
            keep_on_cores(left.0.settings.cores)?;
            left
        }
        None => args.start()?,
    };
    let interrupt =
        Interrupt::on_signals_with_others_to_end().map_err(|error| signals::handler_failure(&error))?;
    measure(args.peers.peers.as_deref(), &program, &mut results, &directory, &interrupt)?;
    let finished = finish(results, &directory);
    if interrupt.is_requested() {
        return Err(Failure::interrupted("interrupted; the page is partial"));
    }
    finished
}

impl PublishedArgs {
    /// Returns the selected publications without duplicates, in the page's order.
    fn publications(&self) -> Vec<Publication> {
        let is_named = |it: &Publication| self.names.is_empty() || self.names.contains(it);
        Publication::ALL.into_iter().filter(is_named).collect()
    }

    /// Creates empty results and their folder.
    fn start(&self) -> Result<(PublishedResults, ResultsDirectory), Failure> {
        let cores = self.cores.map(NonZeroUsize::get);
        // Fails before a folder is created.
        keep_on_cores(cores)?;
        let directory = results_directory(self.out.as_deref())?;
        let results = PublishedResults::started(PublishedSettings {
            arguments: std::env::args().skip(1).collect(),
            publications: self.publications(),
            quick: self.quick,
            cores,
        });
        Ok((results, directory))
    }
}

/// Reads earlier results from `folder`.
fn resume(folder: &Path) -> Result<(PublishedResults, ResultsDirectory), Failure> {
    let results = PublishedResults::read(&folder.join("results.json")).map_err(Failure::failed)?;
    Ok((results, ResultsDirectory::create(folder).map_err(Failure::failed)?))
}

/// Pins this process and all that it starts to `cores` CPUs.
fn keep_on_cores(cores: Option<usize>) -> Result<(), Failure> {
    let Some(cores) = cores else { return Ok(()) };
    let seen = |error| Failure::failed(format!("failed to read the CPUs: {error}"));
    let available = CpuList::available().map_err(seen)?;
    let first = available.first(cores).ok_or_else(|| {
        let there_are = available.as_slice().len();
        Failure::bad_arguments(format!("--cores {cores} exceeds the {there_are} available CPUs"))
    })?;
    runtime::pin(&first)
}

/// Makes all missing runs in turn. Results are saved after each run.
fn measure(
    peers: Option<&Path>,
    program: &Path,
    results: &mut PublishedResults,
    directory: &ResultsDirectory,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let extent = if results.settings.quick { Extent::Quick } else { Extent::Whole };
    let of =
        |&publication: &Publication| runs(publication, extent).into_iter().map(move |run| (publication, run));
    let all: Vec<_> = results.settings.publications.iter().flat_map(of).collect();
    let total = all.len();
    for (index, (publication, mut run)) in all.into_iter().enumerate() {
        if interrupt.is_requested() {
            break;
        }
        if results.is_made(run.name, directory.path()) {
            continue;
        }
        if let Some(peers) = peers {
            run.arguments.extend(["--peers".to_owned(), peers.display().to_string()]);
        }
        crate::terminal::say(&format!("run {} of {total}, {}: {}", index + 1, run.name, run.about));
        results.ran(make(program, publication, run, directory.path(), interrupt));
        results.save(directory).map_err(Failure::failed)?;
    }
    Ok(())
}

/// Judges the results in the folder and writes the page. Fails if a run failed.
fn finish(mut results: PublishedResults, directory: &ResultsDirectory) -> Result<ExitCode, Failure> {
    let evidence = Evidence::read(directory.path(), &results.runs);
    results.answer(judge(&results.settings.publications, &evidence));
    results.save(directory).map_err(Failure::failed)?;
    show(directory, &results.report())?;
    let failed = results.runs.iter().filter(|run| run.failed.is_some());
    let failed: Vec<&str> = failed.map(|run| run.name.as_str()).collect();
    match failed.as_slice() {
        [] => Ok(ExitCode::SUCCESS),
        failed => {
            Err(Failure::failed(format!("some runs or windows failed ({}); see above", failed.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_published_run_is_a_valid_command() {
        for publication in Publication::ALL {
            for run in [Extent::Quick, Extent::Whole].into_iter().flat_map(|extent| runs(publication, extent))
            {
                let more = ["--out", "x", "--peers", "y"].map(str::to_owned);
                let words = ["thalweg".to_owned()].into_iter().chain(run.arguments).chain(more);
                let understood = Cli::try_parse_from(words);
                assert!(understood.is_ok(), "{}: {}", run.name, understood.err().unwrap());
            }
        }
    }
}
