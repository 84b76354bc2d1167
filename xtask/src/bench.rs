//! `cargo xtask bench`: costs of the stack, measured together with other stacks in the same run.

mod alignment;
mod attacks;
mod drop_in;
mod fleet;
mod flight;
mod generators;
mod heuristics;
mod idle;
mod memory;
mod pair;
mod polling;
mod programs;
mod python;
mod same;
mod saved;
mod shared_connection;
mod slowed;
pub(crate) mod spin;
pub(crate) mod table;
mod tls;
pub(crate) mod turns;
mod valgrind;

use std::process::ExitCode;

use crate::arguments::{Arguments, are_known};
use crate::bench::table::Table;
use crate::failure::Result;
use crate::log;
use crate::peers::{self, BuiltPeer};

/// Compares the given stacks and returns its tables.
type Run = fn(&[BuiltPeer]) -> Result<Vec<Table>>;

/// The benchmarks, each with its default stacks.
const BENCHES: &[(&str, Run, &[&str])] = &[
    ("instructions", valgrind::instructions, &["thalweg", "tonic"]),
    ("allocations", valgrind::allocations, &["thalweg", "tonic"]),
    ("memory", memory::run, &["thalweg", "tonic"]),
    ("idle", idle::run, &["thalweg"]),
    ("beside", shared_connection::run, &["thalweg"]),
    ("attacks", attacks::run, &["thalweg", "tonic", "grpc-go", "grpc-cpp"]),
    ("hoards", attacks::run_memory_attacks, &["thalweg"]),
    ("alignment", alignment::run, &[]),
    ("same", same::run, &["thalweg"]),
    ("slowed", slowed::run, &["thalweg"]),
    ("tls", tls::run, tls::PEERS),
    ("drop-in", drop_in::run, drop_in::PEERS),
    ("fleet", fleet::run, fleet::PEERS),
    ("flight", flight::run, &[]),
    ("programs", programs::run, &[]),
    ("python", python::run, &[]),
    ("generators", generators::run, &["thalweg"]),
    ("saved", saved::run, &["thalweg", "tonic"]),
    ("heuristics", heuristics::run, &["thalweg"]),
    ("polling", polling::run, &["thalweg", "tonic", "grpc-cpp"]),
];

/// `cargo xtask attacks`.
pub(crate) fn attacks(mut arguments: Arguments) -> Result<ExitCode> {
    let (peers, classes) = (arguments.value("--peers")?, arguments.value("--classes")?);
    arguments.finish()?;
    let Some(classes) = classes else {
        run_named("attacks", peers.as_deref())?;
        return run_named("hoards", None);
    };
    log::start("bench-attacks")?;
    let peers = build_peers(&peers.as_deref().unwrap_or("thalweg").split(',').collect::<Vec<_>>())?;
    print(&attacks::run_classes(&peers, &classes.split(',').collect::<Vec<_>>())?);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let peers = arguments.value("--peers")?;
    let name = arguments.next_word();
    arguments.finish()?;
    run_named(name.as_deref().unwrap_or_default(), peers.as_deref())
}

fn run_named(name: &str, peers: Option<&str>) -> Result<ExitCode> {
    log::start(&format!("bench-{name}"))?;
    tables(name, peers)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a benchmark with the given stacks, or with its default ones, prints its tables and returns them.
pub(crate) fn tables(name: &str, peers: Option<&str>) -> Result<Vec<Table>> {
    are_known("benchmark", &[name], &BENCHES.iter().map(|(name, ..)| *name).collect::<Vec<_>>())?;
    let (_, run, own) = BENCHES.iter().find(|(known, ..)| *known == name).expect("a known benchmark");
    let names: Vec<&str> = peers.map_or_else(|| own.to_vec(), |list| list.split(',').collect());
    let tables = run(&build_peers(&names)?)?;
    print(&tables);
    Ok(tables)
}

/// Builds the stacks with these names.
fn build_peers(names: &[&str]) -> Result<Vec<BuiltPeer>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    peers::named(names)?.into_iter().map(peers::Peer::build).collect()
}

fn print(tables: &[Table]) {
    for (index, table) in tables.iter().enumerate() {
        if index > 0 {
            println!();
        }
        table.print();
    }
}
