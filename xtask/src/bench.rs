//! `cargo xtask bench`: what the stack costs, ours beside other people's in the same run.

mod alignment;
mod allocations;
mod beside;
mod idle;
mod instructions;
mod memory;
mod open_files;
mod polling;
pub(crate) mod spin;
pub(crate) mod table;
mod valgrind;

use std::process::ExitCode;

use crate::Ended;
use crate::arguments::{Arguments, Misuse};
use crate::job::{Failure, Log};
use crate::peers::{self, BuiltPeer};

/// One core a side: where both share two, the scheduler decides who waits.
const CLIENT_CORE: &str = "taskset -c 0";
const SERVER_CORE: &str = "taskset -c 1";

/// A benchmark: takes the stacks to compare, prints its table.
struct Bench {
    name: &'static str,
    run: fn(&[BuiltPeer], &Log) -> Result<(), Failure>,
    /// The stacks it compares unless told otherwise.
    peers: &'static [&'static str],
}

const BENCHES: &[Bench] = &[
    Bench { name: "instructions", run: instructions::run, peers: &["thalweg", "tonic"] },
    Bench { name: "allocations", run: allocations::run, peers: &["thalweg", "tonic"] },
    Bench { name: "memory", run: memory::run, peers: &["thalweg", "tonic"] },
    Bench { name: "idle", run: idle::run, peers: &["thalweg"] },
    Bench { name: "beside", run: beside::run, peers: &["thalweg"] },
    Bench { name: "alignment", run: alignment::run, peers: &[] },
    Bench { name: "polling", run: polling::run, peers: &["thalweg", "tonic", "grpc-cpp"] },
];

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let peers = arguments.value("--peers")?;
    let name = arguments.next_word();
    arguments.finish()?;
    let bench = BENCHES.iter().find(|bench| Some(bench.name) == name.as_deref());
    let Some(bench) = bench else {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        return Err(Misuse(format!("bench wants one of {}", known.join(", "))).into());
    };
    let names: Vec<&str> =
        peers.as_deref().map_or_else(|| bench.peers.to_vec(), |list| list.split(',').collect());

    let log = Log::create(&format!("bench-{}", bench.name))?;
    let built: Result<Vec<_>, _> = peers::named(&names)?.into_iter().map(|peer| peer.build(&log)).collect();
    (bench.run)(&built?, &log)?;
    Ok(ExitCode::SUCCESS)
}
