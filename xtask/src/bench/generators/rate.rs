//! Whether a generator starts calls at the requested rate.

use super::generator::{Generator, Generators};
use super::report::Interval;
use crate::bench::table::{Table, grouped};
use crate::bench::turns::{Spread, fixed};
use crate::failure::Result;

const ROUNDS: usize = 3;
/// Length of a round.
const SECONDS: usize = 4;
/// The rate that is also shown per second: over the whole run, lagging and running ahead cancel out.
const RAMP: &str = "100 to 2,000/s along a line";

/// Requested rates over 4 s, as shown and as a flag, with the resulting number of calls and the generators.
const REQUESTED_RATES: &[(&str, &str, u64, &[Generator])] = &[
    ("1,000/s", "1000", 4_000, &[Generator::Thalweg, Generator::Ghz, Generator::H2load]),
    ("5,000/s", "5000", 20_000, &[Generator::Thalweg, Generator::Ghz, Generator::H2load]),
    ("50,000/s", "50000", 200_000, &[Generator::Thalweg, Generator::Ghz, Generator::H2load]),
    (RAMP, "100..2000/4s", 4_200, &[Generator::Thalweg]),
];

pub(super) fn run(generators: &Generators) -> Result<Vec<Table>> {
    let (mut rows, mut all, mut ramps) = (Vec::new(), Vec::new(), Vec::new());
    for &(what, rate, requested, by) in REQUESTED_RATES {
        for &generator in by {
            let rest = match generator {
                Generator::H2load => "-D 4 -m 1000",
                Generator::Thalweg => "-z 4s",
                _ => "-z 4s --duration-stop wait",
            };
            let report = |_| Ok(generators.run(generator, &format!("--rps {rate} {rest}"))?.report);
            let reports = (0..ROUNDS).map(report).collect::<Result<Vec<_>>>()?;
            let counts: Vec<u64> = reports.iter().map(|report| report.calls).collect();
            if what == RAMP {
                ramps.extend(reports.into_iter().map(|report| report.intervals));
            }
            let what_and_how_many = format!("{what}: {}", grouped(requested as f64));
            rows.push(
                [vec![what_and_how_many, generator.name().to_owned()], share(requested, &counts)].concat(),
            );
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            all.push(vec![what.to_owned(), generator.name().to_owned(), counts.join(", ")]);
        }
    }
    let title = format!("Calls of {ROUNDS} runs of 4 s, relative to the requested rate; median and range:");
    let of_rounds = Table::new("Each run with a rate: calls that ended:", ["asked for", "", "calls"], all);
    let shares = Table::new(title, ["asked for", "", "calls", "share"], rows);
    Ok(vec![shares, seconds(&ramps)?, of_rounds.of_rounds()])
}

/// Returns the median of the counts, and its percentage of `requested`.
fn share(requested: u64, counts: &[u64]) -> Vec<String> {
    let median: Spread = counts.iter().map(|count| *count as f64).collect();
    let shares: Spread = counts.iter().map(|count| 100.0 * *count as f64 / requested as f64).collect();
    vec![grouped(median.median), percent(&shares)]
}

fn percent(shares: &Spread) -> String {
    format!("{:.1} % ({})", shares.median, shares.range(fixed(1)))
}

/// The seconds of the ramp, over all its runs.
fn seconds(runs: &[Vec<Interval>]) -> Result<Table> {
    ensure!(
        runs.iter().all(|run| run.len() == SECONDS),
        "a ramp of {SECONDS} s does not have {SECONDS} intervals"
    );
    let row = |second: usize| {
        let of = |of: fn(&Interval) -> f64| runs.iter().map(|run| of(&run[second])).collect::<Spread>();
        vec![
            (second + 1).to_string(),
            format!("{:.1}", of(|interval| interval.scheduled).median),
            grouped(of(|interval| interval.started as f64).median),
            percent(&of(|interval| 100.0 * interval.started as f64 / interval.scheduled)),
        ]
    };
    let title = format!(
        "The ramp by seconds, as reported by `thalweg load`: scheduled and started calls, median of {ROUNDS} runs; \
         their ratio, median and range:"
    );
    let columns = ["second", "scheduled", "began", "share"];
    Ok(Table::new(title, columns, (0..SECONDS).map(row).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shares_are_relative_to_requested_calls() {
        assert_eq!(share(4000, &[3996, 4000, 3200]), ["3,996", "99.9 % (80.0–100.0)"]);
    }

    #[test]
    fn ramp_shares_are_per_second() {
        let run = |started: [u64; SECONDS]| -> Vec<Interval> {
            let scheduled = [337.5, 812.5, 1287.5, 1762.5];
            scheduled
                .into_iter()
                .zip(started)
                .map(|(scheduled, started)| Interval { scheduled, started })
                .collect()
        };
        let runs = [run([338, 812, 1288, 1762]), run([338, 780, 1320, 1762]), run([337, 813, 1287, 1763])];
        let table = seconds(&runs).unwrap_or_else(|failure| panic!("{failure:?}")).json();
        assert_eq!(table["rows"][0], json!(["1", "337.5", "338", "100.1 % (99.9–100.1)"]));
        assert_eq!(table["rows"][1], json!(["2", "812.5", "812", "99.9 % (96.0–100.1)"]));
        assert!(seconds(&[run([1; SECONDS])[1..].to_vec()]).is_err());
    }
}
