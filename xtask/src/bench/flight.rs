//! Arrow Flight on `thalweg-tonic` beside tonic: arrow-flight's own benchmark of round trips, which has client and
//! server in one process and a pipe in memory between them, and streams of batches over TCP. The two programs are built
//! from the same sources (`xtask/suites/flight`), and take turns.

use std::path::PathBuf;

use serde_json::Value;

use crate::bench::cores;
use crate::bench::table::{Table, grouped, median_and_range};
use crate::job::{Failure, Job, Log};
use crate::peers::BuiltPeer;
use crate::server::{Server, free_port};
use crate::{published, workspace};

const ROUNDS: usize = 5;
/// Of one window over TCP, in seconds.
const WINDOW_S: u32 = 2;
/// The smallest and the largest batch of arrow-flight's benchmark: 256 KiB, and 4 MiB.
const SHAPES: &[(u32, u32)] = &[(8192, 4), (65_536, 8)];
/// Where data begin that are decoded. arrow-flight copies what does not begin at a multiple of 64.
const OFFSETS: &[u32] = &[0, 8, 16, 32];
/// Calls over TCP.
const METHODS: &[&str] = &["get", "put", "exchange"];
const STACKS: [&str; 2] = ["thalweg-tonic", "tonic"];

pub(super) fn run(_: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let suite = |stack: &str| workspace::suites().join("flight").join(stack);
    published::take(&["arrow-flight"], &suite("tonic"), log)?;
    let programs = [build(STACKS[0], &suite(STACKS[0]), log)?, build(STACKS[1], &suite(STACKS[1]), log)?];
    let round_trips = SHAPES.iter().map(|&shape| {
        let name = format!("roundtrip/fixed/{}", named(shape));
        turns(&name, |program: &Programs| round_trip(program, &name, log), &programs)
    });
    let tcp = METHODS.iter().flat_map(|method| {
        let programs = &programs;
        SHAPES.iter().map(move |&shape| {
            let name = format!("do_{method} {}", named(shape));
            turns(&name, |program: &Programs| over_tcp(program, method, shape, log), programs)
        })
    });
    let decoding = OFFSETS.iter().map(|&offset| decoding(offset, &programs[0], log));
    let heads = ["batches, MiB/s", "thalweg-tonic", "tonic", "ours ÷ theirs"];
    let title = |what: &str| format!("Arrow Flight, {what}; medians of {ROUNDS} rounds in turns:");
    Ok(vec![
        Table::new(
            title("arrow-flight's benchmark, on both cores"),
            &heads,
            round_trips.collect::<Result<_, _>>()?,
        ),
        Table::new(
            title("16 batches a stream over TCP, client on core 0, server on core 1"),
            &heads,
            tcp.collect::<Result<_, _>>()?,
        ),
        Table::new(
            format!(
                "Decoding alone, batches of {}, by where their data begin; medians of {ROUNDS}:",
                named(SHAPES[1])
            ),
            &["bytes behind a multiple of 64", "MiB/s", "columns that are not copied"],
            decoding.collect::<Result<_, _>>()?,
        ),
    ])
}

/// What is built of a suite's package.
struct Programs {
    /// Ours, that serves and drives.
    tcp: PathBuf,
    /// arrow-flight's.
    benchmark: PathBuf,
}

fn build(stack: &str, suite: &std::path::Path, log: &Log) -> Result<Programs, Failure> {
    let target = workspace::target().join("flight");
    let job = Job::cargo("build --release --locked --bins --benches --message-format json --target-dir");
    let text = job.arg(&target).directory(suite).builds().minutes(30).quiet_text(log)?;
    let benchmark = text.lines().find_map(executable_of_benchmark);
    let benchmark = benchmark.ok_or_else(|| Failure::failed(format!("{stack}: cargo built no benchmark")))?;
    Ok(Programs { tcp: target.join("release").join(format!("flight-{stack}")), benchmark })
}

fn executable_of_benchmark(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_benchmark = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "bench");
    is_benchmark.then(|| message["executable"].as_str().map(PathBuf::from))?
}

fn named((rows, columns): (u32, u32)) -> String {
    format!("{rows}x{columns}")
}

/// A row: each stack's median, and the ratio with its range, of rounds in which the stacks take turns.
fn turns(
    name: &str,
    measure: impl Fn(&Programs) -> Result<f64, Failure>,
    programs: &[Programs; 2],
) -> Result<Vec<String>, Failure> {
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        // Who comes first changes.
        for index in [round % 2, 1 - round % 2] {
            rates[index].push(measure(&programs[index])?);
        }
    }
    Ok(row(name, &rates))
}

fn row(name: &str, [ours, theirs]: &[Vec<f64>; 2]) -> Vec<String> {
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
    let (ratio, least, greatest) = median_and_range(ratios.collect());
    let median = |rates: &[f64]| grouped(median_and_range(rates.to_vec()).0);
    vec![name.to_owned(), median(ours), median(theirs), format!("{ratio:.2} ({least:.2}–{greatest:.2})")]
}

/// One run of arrow-flight's benchmark; MiB/s.
fn round_trip(programs: &Programs, name: &str, log: &Log) -> Result<f64, Failure> {
    let job = Job::new(&programs.benchmark)
        .words("--bench --exact --noplot --discard-baseline --warm-up-time 1 --measurement-time 2 --sample-size 10")
        .arg(name)
        .under("taskset -c 0,1")
        .directory(workspace::output());
    let text = job.text(log)?;
    rate_of(&text).ok_or_else(|| Failure::failed(format!("`{job}` printed no rate")))
}

/// MiB/s of `thrpt: [178.4 MiB/s 190.2 MiB/s 200.3 MiB/s]`: the middle one.
fn rate_of(text: &str) -> Option<f64> {
    let (_, rates) = text.split_once("thrpt:")?;
    let words: Vec<&str> = rates.trim_start().trim_start_matches('[').split_whitespace().take(4).collect();
    let number: f64 = words.get(2)?.parse().ok()?;
    let unit = match *words.get(3)? {
        "KiB/s" => 1.0 / 1024.0,
        "MiB/s" => 1.0,
        "GiB/s" => 1024.0,
        _ => return None,
    };
    Some(number * unit)
}

/// A row: what decoding data costs that begin `offset` bytes behind a multiple of 64.
fn decoding(offset: u32, programs: &Programs, log: &Log) -> Result<Vec<String>, Failure> {
    let (rows, columns) = SHAPES[1];
    let words = format!("decode {offset} {rows} {columns} 1");
    let job = Job::new(&programs.tcp).words(&words).under(cores::CLIENT);
    let mut rates = Vec::new();
    let mut kept = String::new();
    for _ in 0..ROUNDS {
        let text = job.text(log)?;
        let (rate, columns) =
            text.trim().split_once(' ').ok_or_else(|| Failure::failed(format!("`{job}` printed no rate")))?;
        rates.push(rate.parse().map_err(|_| Failure::failed(format!("`{job}` printed no rate")))?);
        columns.clone_into(&mut kept);
    }
    Ok(vec![offset.to_string(), grouped(median_and_range(rates).0), format!("{kept} of {columns}")])
}

/// One window of streams over TCP, with a server of its own; MiB/s.
fn over_tcp(
    programs: &Programs,
    method: &str,
    (rows, columns): (u32, u32),
    log: &Log,
) -> Result<f64, Failure> {
    let port = free_port()?;
    let serve = Job::new(&programs.tcp).words(&format!("serve 127.0.0.1:{port}")).under(cores::SERVER);
    let server = Server::start(&serve, port, log)?;
    let words = format!("drive {method} 127.0.0.1:{port} {rows} {columns} {WINDOW_S}");
    let job = Job::new(&programs.tcp).words(&words).under(cores::CLIENT);
    let text = job.text(log)?;
    // Nobody handles the signal that ends it.
    server.stop()?;
    text.trim().parse().map_err(|_| Failure::failed(format!("`{job}` printed no rate")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_rate_is_read() {
        let of = |rates: &str| rate_of(&format!("x time: [1 ms 2 ms 3 ms]\n   thrpt:  [{rates}]\n"));
        assert_eq!(of("178.5 MiB/s 190.25 MiB/s 200.5 MiB/s"), Some(190.25));
        assert_eq!(of("0.9 GiB/s 1.5 GiB/s 2.0 GiB/s"), Some(1536.0));
        assert_eq!(rate_of("no rate"), None);
    }

    #[test]
    fn ratios_are_of_rounds() {
        let row = row("x", &[vec![30.0, 40.0, 90.0], vec![10.0, 10.0, 30.0]]);
        assert_eq!(row, ["x", "40", "10", "3.00 (3.00–4.00)"]);
    }
}
