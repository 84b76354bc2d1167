//! Arrow Flight on `thalweg-tonic` and on tonic. arrow-flight's own round-trip benchmark has client and server in one
//! process over an in-memory pipe; streams of batches run over TCP. Both programs are built from the same sources
//! (`xtask/suites/flight`) and run alternately.

use std::path::PathBuf;

use serde_json::Value;

use super::pair::{CLIENT, SERVER};
use super::table::{Table, grouped};
use super::turns::{Spread, alternating, column, fixed, ratio};
use crate::failure::Result;
use crate::files::list;
use crate::job::Job;
use crate::peers::BuiltPeer;
use crate::server::Server;
use crate::{published, workspace};

const ROUNDS: usize = 5;
/// Length of a window over TCP, in seconds.
const WINDOW_S: u32 = 2;
/// Rows and columns of the smallest (256 KiB) and largest (4 MiB) batch of arrow-flight's benchmark.
const SHAPES: &[(u32, u32)] = &[(8192, 4), (65_536, 8)];
/// Offsets of the decoded data. arrow-flight copies data that does not start at a multiple of 64.
const OFFSETS: &[u32] = &[0, 8, 16, 32];
const METHODS: &[&str] = &["get", "put", "exchange"];
const STACKS: [&str; 2] = ["thalweg-tonic", "tonic"];

pub(super) fn run(_: &[BuiltPeer]) -> Result<Vec<Table>> {
    published::download(&["arrow-flight"], &workspace::suites().join("flight/tonic"))?;
    let programs = STACKS.into_iter().map(Programs::build).collect::<Result<Vec<_>>>()?;
    let (mut round_trips, mut tcp) = (Vec::new(), Vec::new());
    for shape in SHAPES.iter().copied().map(named) {
        let name = format!("roundtrip/fixed/{shape}");
        round_trips.push(row(&name, &alternating(ROUNDS, &programs, |it| it.round_trip(&name))?));
    }
    for method in METHODS {
        for &shape in SHAPES {
            let rounds = alternating(ROUNDS, &programs, |it| it.over_tcp(method, shape))?;
            tcp.push(row(&format!("do_{method} {}", named(shape)), &rounds));
        }
    }
    let decoding = OFFSETS.iter().map(|offset| programs[0].decoding(*offset)).collect::<Result<_>>()?;
    let columns = ["batches, MiB/s", "thalweg-tonic", "tonic", "ours ÷ theirs"];
    let title = |what: &str| format!("Arrow Flight, {what}; medians of {ROUNDS} alternating rounds:");
    let of_tcp = "16 batches per stream over TCP, client on core 0, server on core 1";
    let of_decoding = format!(
        "Decoding alone, batches of {}, by the alignment of their data; medians of {ROUNDS}:",
        named(SHAPES[1])
    );
    let decoding_columns = ["bytes after a multiple of 64", "MiB/s", "columns that are not copied"];
    Ok(vec![
        Table::new(title("arrow-flight's benchmark, on both cores"), columns, round_trips),
        Table::new(title(of_tcp), columns, tcp),
        Table::new(of_decoding, decoding_columns, decoding),
    ])
}

fn named((rows, columns): (u32, u32)) -> String {
    format!("{rows}x{columns}")
}

/// A row: the median of each stack, and the ratio with its range.
fn row(name: &str, rounds: &[Vec<f64>]) -> Vec<String> {
    let [ours, theirs] = [0, 1].map(|stack| grouped(column(rounds, stack).median));
    vec![name.to_owned(), ours, theirs, ratio(rounds, 0, 1).show(fixed(2))]
}

/// The programs built from a package of the suite.
struct Programs {
    /// Our program, which serves and drives.
    tcp: PathBuf,
    /// arrow-flight's benchmark.
    benchmark: PathBuf,
}

impl Programs {
    fn build(stack: &str) -> Result<Self> {
        let target = workspace::target().join("flight");
        let job = Job::cargo("build --release --locked --bins --benches --message-format json --target-dir");
        let job = job.arg(&target).directory(workspace::suites().join("flight").join(stack)).builds(30);
        let benchmark = job.quiet_text()?.lines().find_map(executable_of_benchmark);
        let benchmark = benchmark.ok_or_else(|| failed!("{stack}: cargo built no benchmark"))?;
        Ok(Self { tcp: target.join("release").join(format!("flight-{stack}")), benchmark })
    }

    /// Runs arrow-flight's benchmark once and returns MiB/s.
    fn round_trip(&self, name: &str) -> Result<f64> {
        let words = "--bench --exact --noplot --discard-baseline --warm-up-time 1 --measurement-time 2 \
                     --sample-size 10";
        let job = Job::new(&self.benchmark).words(words).arg(name).under("taskset -c 0,1");
        let job = job.directory(workspace::output());
        rate_of(&job.text()?).ok_or_else(|| failed!("`{job}` printed no rate"))
    }

    /// A row: cost of decoding data that starts `offset` bytes past a multiple of 64.
    fn decoding(&self, offset: u32) -> Result<Vec<String>> {
        let (rows, columns) = SHAPES[1];
        let job = Job::new(&self.tcp).words(&format!("decode {offset} {rows} {columns} 1")).under(CLIENT);
        let none = || failed!("`{job}` printed no rate");
        let run = |_| {
            let text = job.text()?;
            let (rate, kept) = text.trim().split_once(' ').ok_or_else(none)?;
            Ok((rate.parse::<f64>().map_err(|_| none())?, kept.to_owned()))
        };
        let (rates, kept): (Vec<f64>, Vec<String>) =
            (0..ROUNDS).map(run).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let rate = grouped(rates.into_iter().collect::<Spread>().median);
        Ok(vec![offset.to_string(), rate, format!("{} of {columns}", kept[0])])
    }

    /// Measures one window of streams over TCP with a new server, in MiB/s.
    fn over_tcp(&self, method: &str, (rows, columns): (u32, u32)) -> Result<f64> {
        let serve = |port| Job::new(&self.tcp).words(&format!("serve 127.0.0.1:{port}")).under(SERVER);
        let server = Server::start(serve)?;
        let words = format!("drive {method} {} {rows} {columns} {WINDOW_S}", server.address());
        let job = Job::new(&self.tcp).words(&words).under(CLIENT);
        job.text()?.trim().parse().map_err(|_| failed!("`{job}` printed no rate"))
    }
}

fn executable_of_benchmark(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_benchmark = list(&message["target"]["kind"]).iter().any(|kind| kind == "bench");
    is_benchmark.then(|| message["executable"].as_str().map(PathBuf::from))?
}

/// Returns the middle rate of `thrpt: [178.4 MiB/s 190.2 MiB/s 200.3 MiB/s]` in MiB/s.
fn rate_of(text: &str) -> Option<f64> {
    let (_, rates) = text.split_once("thrpt:")?;
    let mut words = rates.trim_start().trim_start_matches('[').split_whitespace().skip(2);
    let number: f64 = words.next()?.parse().ok()?;
    let units = [("KiB/s", 1.0 / 1024.0), ("MiB/s", 1.0), ("GiB/s", 1024.0)];
    let unit = words.next()?;
    Some(number * units.into_iter().find(|(name, _)| *name == unit)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_rate_is_read() {
        let of = |rates: &str| rate_of(&format!("x time: [1 ms 2 ms 3 ms]\n   thrpt:  [{rates}]\n"));
        assert_eq!(of("178.5 MiB/s 190.25 MiB/s 200.5 MiB/s"), Some(190.25));
        assert_eq!(of("0.9 GiB/s 1.5 GiB/s 2.0 GiB/s"), Some(1536.0));
        assert_eq!(rate_of("no rate"), None);
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let row = row("x", &[vec![30.0, 10.0], vec![40.0, 10.0], vec![90.0, 30.0]]);
        assert_eq!(row, ["x", "40", "10", "3.00 (3.00–4.00)"]);
    }
}
