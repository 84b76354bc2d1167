//! A server stopped for two seconds (SIGSTOP) while a generator has a rate to keep.

use std::process::Command;
use std::thread;
use std::time::Duration;

use super::generator::{Generator, Generators};
use super::report::Report;
use crate::bench::table::{Table, three_digits};
use crate::bench::turns::{Spread, alternating};
use crate::failure::Result;
use crate::server::Server;

const ROUNDS: usize = 4;
/// When the server stops, and for how long.
const BEFORE: Duration = Duration::from_secs(1);
const STOPPED: Duration = Duration::from_secs(2);

const COMPARED: [(Generator, &str, &str); 2] = [
    (Generator::Thalweg, "--rps 1000 -n 4000", "`thalweg load --rps 1000`"),
    // The default of ghz for -c, written out.
    (Generator::Ghz, "--rps 1000 -n 4000 -c 50", "`ghz --rps 1000 -c 50`"),
];

pub(super) fn run(generators: &Generators, server: &Server) -> Result<Vec<Table>> {
    let rounds = alternating(ROUNDS, &COMPARED, |&(generator, flags, _)| {
        thread::scope(|scope| {
            let stopping = scope.spawn(|| stop_and_continue(server.process_id()));
            let run = generators.run(generator, flags);
            stopping.join().unwrap_or_else(|_| Err(failed!("the server was not stopped")))?;
            Ok(run?.report)
        })
    })?;
    let title = format!(
        "1,000 calls per second for 4 s, of which the server was stopped (SIGSTOP) for {} s; median of {ROUNDS} \
         alternating rounds:",
        STOPPED.as_secs()
    );
    let rows = (0..COMPARED.len()).map(|index| row(index, &rounds)).collect();
    let of_rounds = Table::new(
        "Single rounds with the stopped server: mean, p50, p90, p99 in ms:",
        ["round", COMPARED[0].2, COMPARED[1].2],
        rounds.iter().enumerate().map(|(number, round)| of_round(number + 1, round)).collect(),
    );
    Ok(vec![Table::new(title, ["", "mean", "p50", "p90", "p99"], rows), of_rounds.of_rounds()])
}

fn stop_and_continue(process: u32) -> Result<()> {
    let signal = |name: &str| {
        let status = Command::new("kill").arg(name).arg(process.to_string()).status()?;
        ensure!(status.success(), "kill {name}: {status}");
        Ok(())
    };
    thread::sleep(BEFORE);
    signal("-STOP")?;
    thread::sleep(STOPPED);
    signal("-CONT")
}

fn times(report: &Report) -> impl Iterator<Item = Option<f64>> {
    [Some(report.mean_ns)].into_iter().chain(report.percentiles_ns)
}

fn row(index: usize, rounds: &[Vec<Report>]) -> Vec<String> {
    let cell = |time: usize| {
        let all: Option<Spread> = rounds.iter().map(|round| times(&round[index]).nth(time)?).collect();
        all.map_or_else(|| "–".to_owned(), |all| milliseconds(all.median))
    };
    [COMPARED[index].2.to_owned()].into_iter().chain((0..4).map(cell)).collect()
}

fn of_round(number: usize, round: &[Report]) -> Vec<String> {
    let cell = |report: &Report| {
        let time = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), |ns| format!("{:.2}", ns / 1e6));
        times(report).map(time).collect::<Vec<_>>().join(", ")
    };
    [number.to_string()].into_iter().chain(round.iter().map(cell)).collect()
}

fn milliseconds(ns: f64) -> String {
    match ns / 1e6 {
        ms if ms < 999.5 => format!("{} ms", three_digits(ms)),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_medians_and_rounds_all_values() {
        let report = |mean_ns: f64, p99_ns: Option<f64>| {
            let percentiles_ns = [Some(4e5), Some(1.09e7), p99_ns];
            vec![Report { mean_ns, percentiles_ns, ..Report::default() }]
        };
        let rounds = [report(5.05e8, Some(1.97e9)), report(1e6, Some(1.61e9)), report(9e8, Some(2e9))];
        assert_eq!(row(0, &rounds)[1..], ["505 ms", "0.40 ms", "10.9 ms", "1.97 s"]);
        assert_eq!(of_round(1, &report(1e6, None)), ["1", "1.00, 0.40, 10.90, –"]);
    }
}
