//! `cargo xtask bench`: what the stack costs, ours beside other people's in the same run.

mod alignment;
mod allocations;
mod attacks;
mod beside;
mod cores;
mod drop_in;
mod flight;
mod generators;
mod idle;
mod instructions;
mod memory;
mod open_files;
mod polling;
mod same;
mod slowed;
pub(crate) mod spin;
pub(crate) mod table;
mod tls;
mod turns;
mod valgrind;

use std::process::ExitCode;

use crate::arguments::{Arguments, Misuse};
use crate::bench::table::Table;
use crate::ended::Ended;
use crate::job::{Failure, Log};
use crate::peers::{self, BuiltPeer, Peer};

/// A benchmark: takes the stacks to compare, gives its tables.
struct Bench {
    name: &'static str,
    run: fn(&[BuiltPeer], &Log) -> Result<Vec<Table>, Failure>,
    /// The stacks it compares unless told otherwise.
    peers: &'static [&'static str],
}

const BENCHES: &[Bench] = &[
    Bench { name: "instructions", run: instructions::run, peers: &["thalweg", "tonic"] },
    Bench { name: "allocations", run: allocations::run, peers: &["thalweg", "tonic"] },
    Bench { name: "memory", run: memory::run, peers: &["thalweg", "tonic"] },
    Bench { name: "idle", run: idle::run, peers: &["thalweg"] },
    Bench { name: "beside", run: beside::run, peers: &["thalweg"] },
    Bench { name: "attacks", run: attacks::run, peers: &["thalweg", "tonic", "grpc-go", "grpc-cpp"] },
    Bench { name: "hoards", run: attacks::run_hoards, peers: &["thalweg"] },
    Bench { name: "alignment", run: alignment::run, peers: &[] },
    Bench { name: "same", run: same::run, peers: &["thalweg"] },
    Bench { name: "slowed", run: slowed::run, peers: &["thalweg"] },
    Bench { name: "tls", run: tls::run, peers: tls::PEERS },
    Bench { name: "drop-in", run: drop_in::run, peers: drop_in::PEERS },
    Bench { name: "flight", run: flight::run, peers: &[] },
    Bench { name: "generators", run: generators::run, peers: &["thalweg"] },
    Bench { name: "polling", run: polling::run, peers: &["thalweg", "tonic", "grpc-cpp"] },
];

/// `cargo xtask attacks`.
pub(crate) fn attacks(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let (peers, classes) = (arguments.value("--peers")?, arguments.value("--classes")?);
    arguments.finish()?;
    let Some(classes) = classes else {
        run_named(Some("attacks"), peers.as_deref())?;
        return run_named(Some("hoards"), None);
    };
    let log = Log::create("bench-attacks")?;
    let peers = peers::named(&peers.as_deref().unwrap_or("thalweg").split(',').collect::<Vec<_>>())?;
    let built = peers.iter().map(|peer| peer.build(&log)).collect::<Result<Vec<_>, _>>()?;
    print(&attacks::run_classes(&built, &classes.split(',').collect::<Vec<_>>(), &log)?);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let peers = arguments.value("--peers")?;
    let name = arguments.next_word();
    arguments.finish()?;
    run_named(name.as_deref(), peers.as_deref())
}

fn run_named(name: Option<&str>, peers: Option<&str>) -> Result<ExitCode, Ended> {
    let bench = BENCHES.iter().find(|bench| Some(bench.name) == name);
    let Some(bench) = bench else {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        return Err(Misuse(format!("bench wants one of {}", known.join(", "))).into());
    };
    let names: Vec<&str> = peers.map_or_else(|| bench.peers.to_vec(), |list| list.split(',').collect());
    let log = Log::create(&format!("bench-{}", bench.name))?;
    // A benchmark that compares none of them builds none.
    let peers = if names.is_empty() { Vec::new() } else { peers::named(&names)? };
    bench.tables(&peers, &log)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the benchmark of this name with these stacks, prints its tables and returns them.
pub(crate) fn tables(name: &str, peers: &str, log: &Log) -> Result<Vec<Table>, Failure> {
    let bench = BENCHES.iter().find(|bench| bench.name == name);
    let bench = bench.ok_or_else(|| Failure::failed(format!("there is no benchmark `{name}`")))?;
    if peers.is_empty() {
        return bench.tables(&[], log);
    }
    let names: Vec<&str> = peers.split(',').collect();
    bench.tables(&peers::named(&names).map_err(|misuse| Failure::failed(misuse.0))?, log)
}

impl Bench {
    fn tables(&self, peers: &[Peer], log: &Log) -> Result<Vec<Table>, Failure> {
        let built: Result<Vec<_>, _> = peers.iter().map(|peer| peer.build(log)).collect();
        let tables = (self.run)(&built?, log)?;
        print(&tables);
        Ok(tables)
    }
}

fn print(tables: &[Table]) {
    for (index, table) in tables.iter().enumerate() {
        if index > 0 {
            println!();
        }
        table.print();
    }
}
