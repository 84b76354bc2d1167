//! `cargo xtask bench`: what the stack costs, ours beside other people's in the same run.

mod alignment;
mod attacks;
mod beside;
mod drop_in;
mod flight;
mod generators;
mod idle;
mod memory;
mod pair;
mod polling;
mod same;
mod saved;
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

/// A benchmark: takes the stacks to compare, gives its tables.
struct Bench {
    name: &'static str,
    run: fn(&[BuiltPeer]) -> Result<Vec<Table>>,
    /// The stacks it compares unless told otherwise.
    peers: &'static [&'static str],
}

const BENCHES: &[Bench] = &[
    bench("instructions", valgrind::instructions, &["thalweg", "tonic"]),
    bench("allocations", valgrind::allocations, &["thalweg", "tonic"]),
    bench("memory", memory::run, &["thalweg", "tonic"]),
    bench("idle", idle::run, &["thalweg"]),
    bench("beside", beside::run, &["thalweg"]),
    bench("attacks", attacks::run, &["thalweg", "tonic", "grpc-go", "grpc-cpp"]),
    bench("hoards", attacks::run_hoards, &["thalweg"]),
    bench("alignment", alignment::run, &[]),
    bench("same", same::run, &["thalweg"]),
    bench("slowed", slowed::run, &["thalweg"]),
    bench("tls", tls::run, tls::PEERS),
    bench("drop-in", drop_in::run, drop_in::PEERS),
    bench("flight", flight::run, &[]),
    bench("generators", generators::run, &["thalweg"]),
    bench("saved", saved::run, &["thalweg", "tonic"]),
    bench("polling", polling::run, &["thalweg", "tonic", "grpc-cpp"]),
];

const fn bench(
    name: &'static str,
    run: fn(&[BuiltPeer]) -> Result<Vec<Table>>,
    peers: &'static [&'static str],
) -> Bench {
    Bench { name, run, peers }
}

/// `cargo xtask attacks`.
pub(crate) fn attacks(mut arguments: Arguments) -> Result<ExitCode> {
    let (peers, classes) = (arguments.value("--peers")?, arguments.value("--classes")?);
    arguments.finish()?;
    let Some(classes) = classes else {
        run_named("attacks", peers.as_deref())?;
        return run_named("hoards", None);
    };
    log::start("bench-attacks")?;
    let peers = built(&peers.as_deref().unwrap_or("thalweg").split(',').collect::<Vec<_>>())?;
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

/// Runs the benchmark of this name with these stacks, or its own, prints its tables and returns them.
pub(crate) fn tables(name: &str, peers: Option<&str>) -> Result<Vec<Table>> {
    are_known("benchmark", &[name], &BENCHES.iter().map(|bench| bench.name).collect::<Vec<_>>())?;
    let bench = BENCHES.iter().find(|bench| bench.name == name).expect("it is known");
    let names: Vec<&str> = peers.map_or_else(|| bench.peers.to_vec(), |list| list.split(',').collect());
    let tables = (bench.run)(&built(&names)?)?;
    print(&tables);
    Ok(tables)
}

/// The stacks of these names, none for none.
fn built(names: &[&str]) -> Result<Vec<BuiltPeer>> {
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
