//! `cargo xtask`: automation for this workspace.
//!
//! It runs on Linux and finds the programs it needs by name. [`tools`] installs those for the external test suites at
//! pinned versions under `target/tools`.

#[macro_use]
mod failure;

mod api;
mod arguments;
mod bench;
mod certificates;
mod costs;
mod debian;
mod dist;
mod etcd;
mod figures;
mod files;
mod job;
mod lab;
mod log;
mod metadata;
mod peers;
mod proc;
mod programs;
mod protos;
mod published;
mod python;
mod server;
mod test;
#[cfg(test)]
mod tests;
mod tools;
mod workspace;

use std::process::ExitCode;

use arguments::Arguments;
use failure::{Failure, Result};

const USAGE: &str = "\
Tasks for developing this workspace.

Usage: cargo xtask COMMAND

Commands:
  test [--tier TIER,... | --all | --only STEP,...] [--list] [--allow-missing]
                          Run the steps of a tier: push (the default: formatting, lints, all unit and integration
                          tests), pull (suites of other projects), nightly, release (what people download).
                          A tier does not contain the others; --all runs all four. --list names their steps
  peers [--list] [NAME]...
                          Build the other stacks that we measure against, and try each
  bench instructions|allocations|memory|polling|alignment|idle|beside|tls|drop-in|flight|programs [--peers NAME,...]
                          Measure the cost of a call, ours and others'
  bench generators        Measure the cost of a call for `thalweg load`, ghz and h2load, and whether they keep a rate
  bench python            Measure the Python package, grpcio and grpclib
  attacks [--peers NAME,...] [--classes NAME,...]
                          Attack servers with many kinds of hostile clients, ours and others'
  bench same|slowed       Measure our stack against itself with the lab
  costs [--record]        Count the instructions and allocations of the main calls; write them to xtask/costs.json,
                          with which the test step `costs` compares
  protos [TREE]...        Compare our reading of published .proto files with protoc's: descriptors, positions of errors
  protos --record         Record protoc's results for the corpus in crates/protobuf/tests/protos
  tonic-surface           Check that crates/tonic has all public items of the tonic in Cargo.lock
  api                     Write the lists of public items that the test step `api` compares with
  dist                    Build release artifacts in target/dist: a tarball of the command with its
                          manual, completions and licences, a Debian package, a bill of materials, their sums
  figures [--check | --list | --measure [NAME]...]
                          Write the documents' tables of figures anew from docs/results; compare only; list the
                          measurements; measure all, or those named, and then write
";

fn main() -> ExitCode {
    match run(Arguments::from_env()) {
        Ok(code) => code,
        Err(Failure::Misuse(why)) => {
            eprintln!("error: {why}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Arguments) -> Result<ExitCode> {
    match arguments.next_word().as_deref() {
        Some("test") => test::run(arguments),
        Some("peers") => peers::run(arguments),
        Some("bench") => bench::run(arguments),
        // Internal: `bench polling` runs it, one process per side.
        Some("spin") => bench::spin::run(arguments),
        Some("attacks") => bench::attacks(arguments),
        Some("costs") => costs::run(arguments),
        Some("api") => api::run(arguments),
        Some("dist") => dist::run(arguments),
        Some("protos") => protos::run(arguments),
        Some("tonic-surface") => test::surface::run(arguments),
        Some("figures") => figures::run(arguments),
        Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        Some(other) => Err(misuse!("unknown command `{other}`")),
        None => Err(misuse!("missing command")),
    }
}
