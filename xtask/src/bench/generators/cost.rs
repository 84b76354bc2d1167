//! Cost of a call to a generator, at the highest rate of one core.

use super::generator::{Generator, Generators, Run};
use crate::bench::table::{Table, grouped};
use crate::bench::turns::{Spread, alternating, fixed};
use crate::failure::Result;
use crate::figures::numbers::time;

const ROUNDS: usize = 6;
const IN_FLIGHT: u32 = 64;
/// Enough calls that starting and stopping hardly count.
const COMPARED: [(Generator, u64); 4] = [
    (Generator::Thalweg, 1_000_000),
    (Generator::H2load, 800_000),
    (Generator::Ghz, 60_000),
    (Generator::GhzWithTemplates, 30_000),
];

pub(super) fn run(generators: &Generators) -> Result<Vec<Table>> {
    let rounds = alternating(ROUNDS, &COMPARED, |&(generator, calls)| {
        let in_flight = if generator == Generator::H2load { "-m" } else { "-c" };
        let run = generators.run(generator, &format!("-n {calls} {in_flight} {IN_FLIGHT}"))?;
        let (ended, failed) = (run.report.calls, run.report.failed);
        let name = generator.name();
        ensure!((ended, failed) == (calls, 0), "{name}: of {calls} calls {ended} ended, {failed} badly");
        Ok(run)
    })?;
    let title = format!(
        "Empty unary calls, {IN_FLIGHT} in flight on one connection over TCP loopback, by the server's reflection; \
         `thalweg serve` on core 1, the generator on core 0; {}; median of {ROUNDS} rounds, in alternating order, and \
         range. Processor time is that of the generator's whole process, including its start; times of calls are what \
         it prints, and h2load prints no percentiles. ghz has `--disable-template-functions --disable-template-data`, \
         but in the last row:",
        generators.versions
    );
    let columns = [
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
    let of_rounds = Table::new(
        "Single rounds: calls per second, and microseconds per call in user space and in the kernel:",
        ["round", "`thalweg load`", "h2load", "ghz", "ghz with templates"],
        rounds.iter().enumerate().map(|(number, round)| row_of_round(number + 1, round)).collect(),
    );
    Ok(vec![Table::new(title, columns, rows), of_rounds.of_rounds()])
}

fn row(index: usize, rounds: &[Vec<Run>]) -> Vec<String> {
    let of =
        |value: &dyn Fn(&Run) -> f64| rounds.iter().map(|round| value(&round[index])).collect::<Spread>();
    let each = |value: &dyn Fn(&Run) -> f64| time(1e3 * of(value).median);
    let times: Spread = rounds.iter().map(|round| cost_us(&round[index]) / cost_us(&round[0])).collect();
    let median_of = |value: &dyn Fn(&Run) -> Option<f64>| {
        let all: Option<Spread> = rounds.iter().map(|round| value(&round[index])).collect();
        all.map_or_else(|| "–".to_owned(), |all| time(all.median))
    };
    let user_and_kernel = [0, 1].map(|part| each(&|run| share_us(run, run.cpu_s[part])));
    vec![
        COMPARED[index].0.name().to_owned(),
        of(&|run| run.report.per_s).show(grouped),
        each(&cost_us),
        user_and_kernel.join(", "),
        if index == 0 { "1".to_owned() } else { times.show(fixed(1)) },
        median_of(&|run| Some(run.report.mean_ns)),
        median_of(&|run| run.report.percentiles_ns[0]),
        median_of(&|run| run.report.percentiles_ns[2]),
    ]
}

fn row_of_round(number: usize, round: &[Run]) -> Vec<String> {
    let cell = |run: &Run| {
        let [user, system] = run.cpu_s.map(|seconds| share_us(run, seconds));
        format!("{}; {user:.2}, {system:.2}", grouped(run.report.per_s))
    };
    [number.to_string()].into_iter().chain(round.iter().map(cell)).collect()
}

fn cost_us(run: &Run) -> f64 {
    share_us(run, run.cpu_s.iter().sum())
}

fn share_us(run: &Run, seconds: f64) -> f64 {
    1e6 * seconds / run.report.calls as f64
}

#[cfg(test)]
mod tests {
    use super::super::report::Report;
    use super::*;

    #[test]
    fn costs_are_per_call_and_ratios_per_round() {
        let run = |per_s: f64, milliseconds: f64, p50_ns: Option<f64>| Run {
            report: Report {
                calls: 1000,
                per_s,
                mean_ns: 2e6,
                percentiles_ns: [p50_ns, None, Some(3e4)],
                ..Report::default()
            },
            cpu_s: [milliseconds / 1e3, 0.001],
        };
        let round = |theirs| vec![run(4000.0, 1.0, Some(1500.0)), run(2000.0, theirs, None)];
        let rounds = [round(3.0), round(5.0), round(7.0)];
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
        assert_eq!(row_of_round(2, &rounds[0])[..2], ["2", "4,000; 1.00, 1.00"]);
    }
}
