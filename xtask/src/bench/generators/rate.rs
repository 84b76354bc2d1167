//! Whether as many calls begin as were asked for.

use super::generator::{Generator, Generators};
use super::report::Interval;
use crate::bench::table::{Table, grouped, median_and_range};
use crate::job::{Failure, Log};

const ROUNDS: usize = 3;
/// How long each is.
const SECONDS: usize = 4;
/// The one whose seconds are told, too: over the whole of it a rate that lags and one that runs ahead are the same.
const RAMP: &str = "100 to 2,000/s along a line";

struct Asked {
    what: &'static str,
    calls: u64,
    /// Each generator that can be asked so, with its flags.
    by: &'static [(Generator, &'static str)],
}

/// For 4 s each.
const ASKED: &[Asked] = &[
    Asked {
        what: "1,000/s",
        calls: 4_000,
        by: &[
            (Generator::Thalweg, "--rps 1000 -z 4s"),
            (Generator::Ghz, "--rps 1000 -z 4s --duration-stop wait"),
            (Generator::H2load, "--rps 1000 -D 4 -m 1000"),
        ],
    },
    Asked {
        what: "5,000/s",
        calls: 20_000,
        by: &[
            (Generator::Thalweg, "--rps 5000 -z 4s"),
            (Generator::Ghz, "--rps 5000 -z 4s --duration-stop wait"),
            (Generator::H2load, "--rps 5000 -D 4 -m 1000"),
        ],
    },
    Asked {
        what: "50,000/s",
        calls: 200_000,
        by: &[
            (Generator::Thalweg, "--rps 50000 -z 4s"),
            (Generator::Ghz, "--rps 50000 -z 4s --duration-stop wait"),
            (Generator::H2load, "--rps 50000 -D 4 -m 1000"),
        ],
    },
    Asked { what: RAMP, calls: 4_200, by: &[(Generator::Thalweg, "--rps 100..2000/4s -z 4s")] },
];

pub(super) fn run(generators: &Generators, log: &Log) -> Result<Vec<Table>, Failure> {
    let (mut rows, mut all, mut ramps) = (Vec::new(), Vec::new(), Vec::new());
    for asked in ASKED {
        for (generator, flags) in asked.by {
            let reports = (0..ROUNDS).map(|_| Ok(generators.run(*generator, flags, log)?.report));
            let reports = reports.collect::<Result<Vec<_>, Failure>>()?;
            let counts: Vec<u64> = reports.iter().map(|report| report.calls).collect();
            if asked.what == RAMP {
                ramps.extend(reports.into_iter().map(|report| report.intervals));
            }
            rows.push(row(asked, *generator, &counts));
            let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
            all.push(vec![asked.what.to_owned(), generator.name().to_owned(), counts.join(", ")]);
        }
    }
    let title = format!(
        "Calls of {ROUNDS} runs of 4 s beside those that were asked for; of a share the median, and the range:"
    );
    let heads = ["asked for", "", "calls", "share"];
    let of_rounds =
        Table::of_rounds("Each run with a rate: calls that ended:", &["asked for", "", "calls"], all);
    Ok(vec![Table::new(title, &heads, rows), seconds(&ramps)?, of_rounds])
}

/// Each second of the ramp, over all runs of it.
fn seconds(runs: &[Vec<Interval>]) -> Result<Table, Failure> {
    if runs.iter().any(|run| run.len() != SECONDS) {
        return Err(Failure::failed(format!(
            "a ramp of {SECONDS} s was told by others than {SECONDS} intervals"
        )));
    }
    let row = |second: usize| {
        let median =
            |of: fn(&Interval) -> f64| median_and_range(runs.iter().map(|run| of(&run[second])).collect());
        let (scheduled, ..) = median(|interval| interval.scheduled);
        let (begun, ..) = median(|interval| interval.begun as f64);
        let (share, least, greatest) = median(|interval| 100.0 * interval.begun as f64 / interval.scheduled);
        vec![
            (second + 1).to_string(),
            format!("{scheduled:.1}"),
            grouped(begun),
            format!("{share:.1} % ({least:.1}–{greatest:.1})"),
        ]
    };
    let title = format!(
        "The ramp by its seconds, as `thalweg load` tells them: calls that the schedule had in each and calls that \
         began in it, median of {ROUNDS} runs; of a share the median, and the range:"
    );
    let heads = ["second", "scheduled", "began", "share"];
    Ok(Table::new(title, &heads, (0..SECONDS).map(row).collect()))
}

fn row(asked: &Asked, generator: Generator, counts: &[u64]) -> Vec<String> {
    let (median, least, greatest) = median_and_range(counts.iter().map(|count| *count as f64).collect());
    let share = |count: f64| 100.0 * count / asked.calls as f64;
    vec![
        format!("{}: {}", asked.what, grouped(asked.calls as f64)),
        generator.name().to_owned(),
        grouped(median),
        format!("{:.1} % ({:.1}–{:.1})", share(median), share(least), share(greatest)),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shares_are_of_what_was_asked_for() {
        let asked = &ASKED[0];
        assert_eq!(
            row(asked, Generator::Ghz, &[3996, 4000, 3200]),
            ["1,000/s: 4,000", "ghz", "3,996", "99.9 % (80.0–100.0)"]
        );
    }

    #[test]
    fn each_second_of_a_ramp_has_its_share() {
        let run = |begun: [u64; SECONDS]| -> Vec<Interval> {
            let scheduled = [337.5, 812.5, 1287.5, 1762.5];
            scheduled.into_iter().zip(begun).map(|(scheduled, begun)| Interval { scheduled, begun }).collect()
        };
        let runs = [run([338, 812, 1288, 1762]), run([338, 780, 1320, 1762]), run([337, 813, 1287, 1763])];
        let table = seconds(&runs).unwrap_or_else(|failure| panic!("{failure:?}")).json();
        assert_eq!(table["rows"][0], json!(["1", "337.5", "338", "100.1 % (99.9–100.1)"]));
        assert_eq!(table["rows"][1], json!(["2", "812.5", "812", "99.9 % (96.0–100.1)"]));
        assert!(seconds(&[run([1; SECONDS])[1..].to_vec()]).is_err());
    }
}
