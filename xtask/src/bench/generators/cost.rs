//! What a call costs a generator: as many as one core makes.

use super::generator::{Generator, Generators, Run};
use crate::bench::table::{Table, grouped, median_and_range};
use crate::job::{Failure, Log};

const ROUNDS: usize = 6;
const IN_FLIGHT: u32 = 64;
/// So many calls each, that starting and ending are a small part.
const COMPARED: [(Generator, u64); 4] = [
    (Generator::Thalweg, 1_000_000),
    (Generator::H2load, 800_000),
    (Generator::Ghz, 60_000),
    (Generator::GhzWithTemplates, 30_000),
];

pub(super) fn run(generators: &Generators, log: &Log) -> Result<Vec<Table>, Failure> {
    let mut rounds: Vec<Vec<Run>> = Vec::new();
    for round in 0..ROUNDS {
        // There, and the next time back.
        let mut order: Vec<usize> = (0..COMPARED.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        let mut runs: Vec<(usize, Run)> = Vec::new();
        for index in order {
            let (generator, calls) = COMPARED[index];
            let in_flight = if generator == Generator::H2load { "-m" } else { "-c" };
            let run = generators.run(generator, &format!("-n {calls} {in_flight} {IN_FLIGHT}"), log)?;
            if run.report.calls != calls || run.report.failed > 0 {
                let (ended, failed) = (run.report.calls, run.report.failed);
                let name = generator.name();
                return Err(Failure::failed(format!(
                    "{name}: of {calls} calls {ended} ended, {failed} badly"
                )));
            }
            runs.push((index, run));
        }
        runs.sort_by_key(|(index, _)| *index);
        rounds.push(runs.into_iter().map(|(_, run)| run).collect());
    }
    let title = format!(
        "Empty unary calls, {IN_FLIGHT} in flight on one connection over TCP loopback, by the server's reflection; \
         `thalweg serve` on core 1, the generator on core 0; {}; median of {ROUNDS} rounds, there and back, and range. \
         Processor time is that of the generator's whole process, its start included; times of calls are what it \
         prints, and h2load prints no percentiles. ghz has `--disable-template-functions --disable-template-data`, but \
         in the last row:",
        generators.versions
    );
    let heads = [
        "",
        "calls/s",
        "processor time of a call",
        "user, kernel",
        "÷ ours, of a round",
        "mean",
        "p50",
        "p99",
    ];
    let rows = (0..COMPARED.len()).map(|index| row(index, &rounds)).collect();
    let of_rounds = Table::of_rounds(
        "Each round of these: calls a second, microseconds of a call in user space and in the kernel:",
        &["round", "`thalweg load`", "h2load", "ghz", "ghz with templates"],
        rounds.iter().enumerate().map(|(number, round)| of_round(number + 1, round)).collect(),
    );
    Ok(vec![Table::new(title, &heads, rows), of_rounds])
}

fn row(index: usize, rounds: &[Vec<Run>]) -> Vec<String> {
    let of = |value: &dyn Fn(&Run) -> f64| {
        median_and_range(rounds.iter().filter_map(|round| round.get(index)).map(value).collect())
    };
    let (rate, least, greatest) = of(&|run| run.report.per_s);
    let (cost, ..) = of(&cost_us);
    let (user, ..) = of(&|run| share_us(run, run.user.as_secs_f64()));
    let (system, ..) = of(&|run| share_us(run, run.system.as_secs_f64()));
    let times =
        median_and_range(rounds.iter().map(|round| cost_us(&round[index]) / cost_us(&round[0])).collect());
    let percentile = |value: &dyn Fn(&Run) -> Option<f64>| {
        let all: Option<Vec<f64>> = rounds.iter().map(|round| value(&round[index])).collect();
        all.map_or_else(|| "–".to_owned(), |all| microseconds(median_and_range(all).0 / 1e3))
    };
    vec![
        COMPARED[index].0.name().to_owned(),
        format!("{} ({}–{})", grouped(rate), grouped(least), grouped(greatest)),
        microseconds(cost),
        format!("{}, {}", microseconds(user), microseconds(system)),
        if index == 0 { "1".to_owned() } else { format!("{:.1} ({:.1}–{:.1})", times.0, times.1, times.2) },
        percentile(&|run| Some(run.report.mean_ns)),
        percentile(&|run| run.report.p50_ns),
        percentile(&|run| run.report.p99_ns),
    ]
}

fn of_round(number: usize, round: &[Run]) -> Vec<String> {
    let cell = |run: &Run| {
        let (user, system) = (share_us(run, run.user.as_secs_f64()), share_us(run, run.system.as_secs_f64()));
        format!("{}; {user:.2}, {system:.2}", grouped(run.report.per_s))
    };
    [number.to_string()].into_iter().chain(round.iter().map(cell)).collect()
}

fn cost_us(run: &Run) -> f64 {
    share_us(run, run.user.as_secs_f64() + run.system.as_secs_f64())
}

fn share_us(run: &Run, seconds: f64) -> f64 {
    1e6 * seconds / run.report.calls as f64
}

/// Three digits: `1.23 µs`, `160 µs`, `9.09 ms`.
fn microseconds(us: f64) -> String {
    match us {
        us if us < 9.995 => format!("{us:.2} µs"),
        us if us < 99.95 => format!("{us:.1} µs"),
        us if us < 999.5 => format!("{us:.0} µs"),
        us => format!("{:.2} ms", us / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::report::Report;
    use super::*;

    #[test]
    fn costs_are_of_a_call_and_ratios_of_a_round() {
        let run = |per_s: f64, milliseconds: u64, p50_ns: Option<f64>| Run {
            report: Report {
                calls: 1000,
                failed: 0,
                per_s,
                mean_ns: 2e6,
                p50_ns,
                p90_ns: None,
                p99_ns: Some(3e4),
                intervals: Vec::new(),
            },
            user: Duration::from_millis(milliseconds),
            system: Duration::from_millis(1),
        };
        let round = |theirs| vec![run(4000.0, 1, Some(1500.0)), run(2000.0, theirs, None)];
        let rounds = [round(3), round(5), round(7)];
        let expected = [
            "h2load",
            "2,000 (2,000–2,000)",
            "6.00 µs",
            "5.00 µs, 1.00 µs",
            "3.0 (2.0–4.0)",
            "2.00 ms",
            "–",
            "30.0 µs",
        ];
        assert_eq!(row(1, &rounds), expected);
        assert_eq!(row(0, &rounds)[4..7], ["1", "2.00 ms", "1.50 µs"]);
        assert_eq!(of_round(2, &rounds[0])[..2], ["2", "4,000; 1.00, 1.00"]);
    }
}
