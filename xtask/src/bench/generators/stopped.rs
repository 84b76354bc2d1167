//! A server that stands still for two seconds (SIGSTOP) while a generator has a rate to keep.

use std::process::Command;
use std::thread;
use std::time::Duration;

use super::generator::{Generator, Generators};
use super::report::Report;
use crate::bench::table::{Table, median_and_range};
use crate::job::{Failure, Log};
use crate::server::Server;

const ROUNDS: usize = 4;
const FLAGS: &str = "--rps 1000 -n 4000";
/// When the server stops, and for how long.
const BEFORE: Duration = Duration::from_secs(1);
const STOPPED: Duration = Duration::from_secs(2);

const COMPARED: [(Generator, &str, &str); 2] = [
    (Generator::Thalweg, "", "`thalweg load --rps 1000`"),
    // Its own default, said here.
    (Generator::Ghz, "-c 50", "`ghz --rps 1000 -c 50`"),
];

pub(super) fn run(generators: &Generators, server: &Server, log: &Log) -> Result<Vec<Table>, Failure> {
    let mut reports: [Vec<Report>; 2] = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for index in order {
            let (generator, flags, _) = COMPARED[index];
            let flags = format!("{FLAGS} {flags}");
            let run = thread::scope(|scope| {
                let stopping = scope.spawn(|| stop_and_go_on(server.process_id()));
                let run = generators.run(generator, &flags, log);
                stopping.join().unwrap_or_else(|_| Err(Failure::failed("the server was not stopped")))?;
                run
            })?;
            reports[index].push(run.report);
        }
    }
    let title = format!(
        "1,000 calls a second for 4 s, the server stopped (SIGSTOP) for {} s of them; median of {ROUNDS} rounds, in \
         turns:",
        STOPPED.as_secs()
    );
    let heads = ["", "mean", "p50", "p90", "p99"];
    let rows = COMPARED.iter().zip(&reports).map(|((.., name), reports)| row(name, reports)).collect();
    let of_rounds = Table::of_rounds(
        "Each round of the server that stops: mean, p50, p90, p99 in ms:",
        &["round", COMPARED[0].2, COMPARED[1].2],
        (0..ROUNDS).map(|round| of_round(round, &reports)).collect(),
    );
    Ok(vec![Table::new(title, &heads, rows), of_rounds])
}

fn stop_and_go_on(process: u32) -> Result<(), Failure> {
    let signal = |name: &str| {
        let status = Command::new("kill").arg(name).arg(process.to_string()).status()?;
        if status.success() { Ok(()) } else { Err(Failure::failed(format!("kill {name}: {status}"))) }
    };
    thread::sleep(BEFORE);
    signal("-STOP")?;
    thread::sleep(STOPPED);
    signal("-CONT")
}

fn times(report: &Report) -> [Option<f64>; 4] {
    [Some(report.mean_ns), report.p50_ns, report.p90_ns, report.p99_ns]
}

fn row(name: &str, reports: &[Report]) -> Vec<String> {
    let cell = |index: usize| {
        let all: Option<Vec<f64>> = reports.iter().map(|report| times(report)[index]).collect();
        all.map_or_else(|| "–".to_owned(), |all| milliseconds(median_and_range(all).0))
    };
    [name.to_owned()].into_iter().chain((0..4).map(cell)).collect()
}

fn of_round(round: usize, reports: &[Vec<Report>; 2]) -> Vec<String> {
    let cell = |reports: &Vec<Report>| {
        let times = times(&reports[round])
            .map(|ns| ns.map_or_else(|| "–".to_owned(), |ns| format!("{:.2}", ns / 1e6)));
        times.join(", ")
    };
    [(round + 1).to_string()].into_iter().chain(reports.iter().map(cell)).collect()
}

/// `0.40 ms`, `10.9 ms`, `505 ms`, `1.61 s`.
fn milliseconds(ns: f64) -> String {
    match ns / 1e6 {
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_medians_and_rounds_have_all() {
        let report = |mean_ns: f64, p99_ns: Option<f64>| Report {
            calls: 1,
            failed: 0,
            per_s: 1.0,
            mean_ns,
            p50_ns: Some(4e5),
            p90_ns: Some(1.09e7),
            p99_ns,
            intervals: Vec::new(),
        };
        let reports = [report(5.05e8, Some(1.97e9)), report(1e6, Some(1.61e9)), report(9e8, Some(2e9))];
        assert_eq!(row("ours", &reports), ["ours", "505 ms", "0.40 ms", "10.9 ms", "1.97 s"]);
        let none = vec![report(1e6, None)];
        assert_eq!(of_round(0, &[none.clone(), none]), ["1", "1.00, 0.40, 10.90, –", "1.00, 0.40, 10.90, –"]);
    }
}
