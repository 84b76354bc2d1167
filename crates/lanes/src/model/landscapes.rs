//! Channels with a given, not modelled, rate for each number of lanes. Measured rates do not always have a single peak.
//! Two lanes can do worse than one, and four better, because then neither side sleeps.
//!
//! Calls find new lanes at once, like unary calls and new streams. Streams that stay on their lane gain nothing from a
//! trial, and no search helps them.

use std::fmt::Write;

use super::random::Random;
use super::run::check_table;
use super::*;
use crate::{Decision, Policy, PolicyConfig};

const PATH: &str = "src/model/landscapes.txt";
const CHANNELS: u64 = 20;
const FOUND_BY: Duration = Duration::from_secs(5);
const END: Duration = Duration::from_secs(180);
/// Rate of one lane.
const CALLS_PER_S: f64 = 40_000.0;

struct Landscape {
    name: &'static str,
    in_flight: usize,
    cap: usize,
    /// Relative rates with 1, 2, 3 ... lanes; the last one applies to all higher numbers.
    rates: &'static [f64],
}

const LANDSCAPES: &[Landscape] = &[
    Landscape { name: "ping-pong, two cores", in_flight: 4, cap: 16, rates: &[1.0, 0.75, 0.76, 1.7] },
    Landscape { name: "unary, two cores", in_flight: 4, cap: 16, rates: &[1.0, 0.63, 1.0, 1.4] },
    Landscape { name: "ping-pong, default cap", in_flight: 4, cap: 0, rates: &[1.0, 0.75, 0.76, 1.7] },
    Landscape { name: "unary, default cap", in_flight: 4, cap: 0, rates: &[1.0, 0.63, 1.0, 1.4] },
    Landscape { name: "three are best", in_flight: 16, cap: 16, rates: &[1.0, 0.8, 1.2, 0.8] },
    Landscape {
        name: "five are best",
        in_flight: 16,
        cap: 16,
        rates: &[1.0, 0.8, 0.9, 1.1, 1.5, 1.3, 1.2, 1.1],
    },
    Landscape {
        name: "eight, behind a dip",
        in_flight: 16,
        cap: 16,
        rates: &[1.0, 0.75, 0.7, 0.76, 1.0, 1.2, 1.4, 1.7],
    },
    Landscape { name: "two hills", in_flight: 16, cap: 16, rates: &[1.0, 1.3, 1.1, 0.9, 1.0, 1.2, 1.4, 1.7] },
    Landscape { name: "ever worse", in_flight: 16, cap: 16, rates: &[1.0, 0.9, 0.8, 0.7] },
    Landscape { name: "all the same", in_flight: 16, cap: 16, rates: &[1.0] },
];

/// Result of a channel.
struct LandscapeRun {
    /// Mean rate after [`FOUND_BY`], relative to the best.
    share: f64,
    is_found: bool,
    /// Opened or closed lanes in the worst minute, after the first ten seconds.
    changes: usize,
}

impl Landscape {
    fn rate(&self, lanes: usize) -> f64 {
        self.rates[lanes.min(self.rates.len()) - 1]
    }

    fn config(&self) -> PolicyConfig {
        let two_cores = PolicyConfig::for_cores(2);
        if self.cap == 0 { two_cores } else { PolicyConfig { cap: self.cap, ..two_cores } }
    }

    fn run(&self, noise: f64, seed: u64) -> LandscapeRun {
        let config = self.config();
        let tick = Duration::from_millis(config.tick_ms);
        let mut policy = Policy::new(config);
        let mut random = Random::new(seed);
        let mut lanes: Vec<u64> = vec![0];
        let mut next = 1;
        let mut now = Duration::ZERO;
        let mut changes = Vec::new();
        let (mut rates, mut ticks) = (0.0, 0.0);
        let best = (1..=self.in_flight.min(16)).map(|lanes| self.rate(lanes)).fold(0.0, f64::max);
        let mut is_found = false;
        while now < END {
            now += tick;
            let rate = self.rate(lanes.len());
            let calls = CALLS_PER_S * rate * (noise * random.normal()).exp() * tick.as_secs_f64();
            let each = lanes.len() as f64;
            let sample = |&id| LaneSample {
                id,
                state: LaneState::Ready,
                completed: (calls / each) as u64,
                in_flight: self.in_flight / lanes.len(),
                in_flight_mean: self.in_flight as f64 / each,
                round_trip: Some(Duration::from_micros(20)),
                ..LaneSample::default()
            };
            let samples = Samples { interval: tick, lanes: lanes.iter().map(sample).collect() };
            if now > FOUND_BY {
                rates += rate / best;
                ticks += 1.0;
            } else {
                is_found = rate > best * 0.999;
            }
            match policy.decide(&samples, now) {
                Decision::Keep => continue,
                Decision::Open { count, .. } => {
                    lanes.extend(next..next + count as u64);
                    next += count as u64;
                }
                Decision::Close { lanes: closed, .. } => lanes.retain(|id| !closed.contains(id)),
            }
            changes.push(now);
        }
        let after: Vec<_> = changes.into_iter().filter(|at| *at > Duration::from_secs(10)).collect();
        let minute = |from: &Duration| {
            after.iter().filter(|at| *at >= from && **at < *from + Duration::from_secs(60)).count()
        };
        LandscapeRun { share: rates / ticks, is_found, changes: after.iter().map(minute).max().unwrap_or(0) }
    }
}

#[test]
fn best_number_beyond_a_dip_is_found() {
    let mut table = String::from(
        "Given rates for each number of lanes, and the results of 20 channels: how many have the best \
         number\nafter 5 s, their mean rate from then to 3 min as a share of the best, and how often lanes were \
         opened or closed\nin the worst minute of the worst channel, after 10 s. By the noise in a tick.\n\n\
         landscape                 in flight  cap    without noise         5 %                   20 %\n",
    );
    for landscape in LANDSCAPES {
        let Landscape { name, in_flight, .. } = landscape;
        write!(table, "{name:<25} {in_flight:>9} {:>4}", landscape.config().cap)
            .expect("writing to a String does not fail");
        for noise in [0.0, 0.05, 0.2] {
            let runs: Vec<_> = (1..=CHANNELS).map(|seed| landscape.run(noise, seed)).collect();
            let found = runs.iter().filter(|run| run.is_found).count();
            let share = runs.iter().map(|run| run.share).sum::<f64>() / runs.len() as f64;
            let changes = runs.iter().map(|run| run.changes).max().unwrap_or(0);
            // Impossible if the cap is below the best, and a matter of luck with much noise.
            let is_possible = landscape.cap > 0 && noise < 0.1;
            assert!(!is_possible || share > 0.97, "{name}, noise {noise}: {share:.3} of the best");
            assert!(noise > 0.0 || changes <= 4, "{name}: {changes} changes in a minute");
            write!(table, "    {found:>2}  {share:.3}  {changes:>2}   ")
                .expect("writing to a String does not fail");
        }
        table.truncate(table.trim_end().len());
        table.push('\n');
    }
    check_table(PATH, include_str!("landscapes.txt"), &table);
}
