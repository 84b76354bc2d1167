//! Whether as many calls begin as were asked for.

use super::generator::{Generator, Generators};
use crate::bench::table::{Table, grouped, median_and_range};
use crate::job::{Failure, Log};

const ROUNDS: usize = 3;

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
    Asked {
        what: "100 to 2,000/s along a line",
        calls: 4_200,
        by: &[(Generator::Thalweg, "--rps 100..2000/4s -z 4s")],
    },
];

pub(super) fn run(generators: &Generators, log: &Log) -> Result<Vec<Table>, Failure> {
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for asked in ASKED {
        for (generator, flags) in asked.by {
            let runs = (0..ROUNDS).map(|_| Ok(generators.run(*generator, flags, log)?.report.calls));
            let counts = runs.collect::<Result<Vec<u64>, Failure>>()?;
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
    Ok(vec![Table::new(title, &heads, rows), of_rounds])
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
    use super::*;

    #[test]
    fn shares_are_of_what_was_asked_for() {
        let asked = &ASKED[0];
        assert_eq!(
            row(asked, Generator::Ghz, &[3996, 4000, 3200]),
            ["1,000/s: 4,000", "ghz", "3,996", "99.9 % (80.0–100.0)"]
        );
    }
}
