//! Gain of each scheduling heuristic: the same pair with and without it, alternating, under the load that it targets.
//! The first row compares the pair with itself and shows the noise.

use std::path::PathBuf;

use super::pair::{CLIENT, Pair, SERVER};
use super::table::Table;
use super::turns::{column, fixed, forward_and_reverse, ratio};
use crate::failure::Result;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::workspace;

const ROUNDS: usize = 8;
const WINDOW: &str = "-z 500ms --warmup 150ms";
/// Environment variable read by programs with the feature `testing`.
const WITHOUT: &str = "THALWEG_WITHOUT";

struct Case {
    /// Value of [`WITHOUT`]; empty for the noise.
    heuristic: &'static str,
    load: &'static str,
    flags: &'static str,
}

const CASES: &[Case] = &[
    case("", "--call unary -c 64", ""),
    case("read-chunks", "--call unary -c 64", ""),
    case("read-chunks", "--call unary -c 16", ""),
    case("chunks-if-alone", "--call unary -c 64 --connections 4", ""),
    case("callers-first", "--call unary -c 64", "--threads 2"),
    case("yields", "--call client-stream -c 1", ""),
    case("yields", "--call client-stream -c 1 --size 100", ""),
    case("read-break", "--call server-stream -c 4 --size 1KiB", ""),
    case("read-break", "--call server-stream -c 1 --size 64KiB", ""),
    case("thread-poller", "--call unary -c 8 --connections 8", ""),
    case("thread-poller", "--call unary -c 2 --connections 2", ""),
];

const fn case(heuristic: &'static str, load: &'static str, flags: &'static str) -> Case {
    Case { heuristic, load, flags }
}

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let [ours] = peers else { bail!("this measures one stack") };
    let ours = BuiltPeer { program: with_switches()?, ..ours.clone() };
    let rows = CASES.iter().map(|case| row(&ours, case)).collect::<Result<_>>()?;
    let title = format!(
        "Heuristics of the scheduler, TCP, client on core 0, server on core 1, {ROUNDS} rounds, in alternating order; \
         messages per second with the heuristic, and that as a multiple of the rate without it:"
    );
    Ok(vec![Table::new(title, ["without", "load", "rate", "range", "gain", "range"], rows)])
}

/// Builds the command with switches for the heuristics.
fn with_switches() -> Result<PathBuf> {
    let folder = workspace::target().join("heuristics");
    let build = Job::cargo("build --release --locked --package thalweg-cli --features testing --target-dir");
    build.arg(&folder).builds(30).run()?;
    Ok(folder.join("release/thalweg"))
}

fn row(ours: &BuiltPeer, case: &Case) -> Result<Vec<String>> {
    let pairs = [case.heuristic, ""].map(|heuristic| {
        let environment = format!("env {WITHOUT}={heuristic}");
        Pair::start_under(ours, &format!("{SERVER} {environment}"), case.flags)
            .map(|pair| pair.under(format!("{CLIENT} {environment}")).with(String::new(), case.flags))
    });
    let [without, with] = pairs;
    let load = format!("{} {WINDOW}", case.load);
    let rounds = forward_and_reverse(ROUNDS, &[without?, with?], |pair| pair.rate(&load))?;
    let (rate, gain) = (column(&rounds, 1), ratio(&rounds, 1, 0));
    let name = if case.heuristic.is_empty() { "nothing" } else { case.heuristic };
    Ok(vec![
        name.to_owned(),
        format!("{} {}", case.load, case.flags).trim().to_owned(),
        fixed(0)(rate.median),
        rate.range(fixed(0)),
        fixed(2)(gain.median),
        gain.range(fixed(2)),
    ])
}
