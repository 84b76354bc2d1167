//! Distribution of times over the whole run: a histogram and a percentile curve.

use serde::Serialize;
use thalweg_measure::distribution::Distribution;
use thalweg_measure::figures::short;

use super::bins::Bins;
use crate::run::LoadRun;

const BINS_OF_A_DECADE: u32 = 20;
/// Points of a curve per nine: from 90 % to 99 %, from 99 % to 99.9 %, and so on.
const STEPS_PER_NINE: u32 = 16;
/// A curve ends at 99.999 %, or where less than one time lies above.
const NINES_MAX: f64 = 5.0;

#[derive(Debug, Serialize)]
pub(super) struct Spread {
    per_decade: u32,
    /// Lowest bin, see [`Bins`].
    first: u32,
    /// Positions of the curve's points: 1 is 90 %, 2 is 99 %; the median is at 0.3.
    nines: Vec<f64>,
    lines: Vec<Line>,
}

/// One distribution.
#[derive(Debug, Serialize)]
struct Line {
    name: &'static str,
    /// Custom property of the style sheet.
    colour: &'static str,
    is_hidden: bool,
    count: u64,
    /// Share of each bin.
    shares: Vec<f64>,
    /// Time at each of the nines in ns, as far as there are enough times.
    curve: Vec<u64>,
}

/// Returns the distributions, or `None` if none can be read.
pub(super) fn spread(run: &LoadRun) -> Option<Spread> {
    let timings = [
        ("latency", "unary", false, &run.latency),
        ("service", "server-stream", false, &run.service),
        ("wait", "client-stream", false, &run.wait),
        ("first message", "bidi-stream", false, &run.first_message),
        ("reply", "peer-4", false, &run.reply),
        ("flow", "peer-5", true, &run.flow),
        ("failed calls", "warn", run.latency.is_some(), &run.failed_latency),
    ];
    let read: Vec<_> = timings
        .into_iter()
        .filter_map(|(name, colour, is_hidden, timing)| {
            let timing = timing.as_ref()?;
            Some((name, colour, is_hidden, timing, timing.distribution()?))
        })
        .collect();
    let shortest_ns = read.iter().map(|(.., timing, _)| timing.ns.min).min()?;
    let longest_ns = read.iter().map(|(.., timing, _)| timing.ns.max).max()?;
    let bins = Bins::between(shortest_ns, longest_ns, BINS_OF_A_DECADE);
    let nines = nines(read.iter().map(|(.., all)| all.len()).max()?);
    let lines = read.iter().map(|(name, colour, is_hidden, _, all)| Line {
        name,
        colour,
        is_hidden: *is_hidden,
        count: all.len(),
        shares: bins.counts(all).iter().map(|count| short(*count as f64 / all.len() as f64)).collect(),
        curve: nines.iter().filter(|nines| **nines <= last(all.len())).map(|nines| at(all, *nines)).collect(),
    });
    Some(Spread { per_decade: bins.per_decade, first: bins.first, lines: lines.collect(), nines })
}

/// Returns the points of a curve, starting at the median.
fn nines(count: u64) -> Vec<f64> {
    let last = last(count);
    let steps = (1..).map(|step| f64::from(step) / f64::from(STEPS_PER_NINE));
    let median = 2_f64.log10();
    let behind = steps.skip_while(|nines| *nines <= median).take_while(|nines| *nines <= last);
    [median].into_iter().chain(behind).collect()
}

/// Returns the end of a curve of `count` times, at least the median.
fn last(count: u64) -> f64 {
    // The logarithm of 1000 may be slightly below 3.
    ((count as f64).log10() + 1e-9).clamp(2_f64.log10(), NINES_MAX)
}

fn at(all: &Distribution, nines: f64) -> u64 {
    short(all.value_at(1.0 - 10_f64.powf(-nines)) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_curve_spans_median_to_maximum() {
        assert_eq!(nines(1).len(), 1);
        for (count, expected) in [(1, 2_f64.log10()), (10, 1.0), (1000, 3.0), (1_000_000_000, NINES_MAX)] {
            let (first, last) = (nines(count)[0], *nines(count).last().unwrap());
            assert!(
                (first - 2_f64.log10()).abs() < 1e-9 && (last - expected).abs() < 1e-9,
                "{count}: {last}"
            );
        }
        let mut all = Distribution::new();
        (1..=1000).for_each(|us| all.record(us * 1000));
        for (nines, expected) in [(2_f64.log10(), 500_000.0), (1.0, 900_000.0), (3.0, 999_000.0)] {
            assert!((at(&all, nines) as f64 / expected - 1.0).abs() < 0.002, "{nines}");
        }
    }
}
