//! Runs of the model.

use std::time::Duration;

use super::random::Random;
use super::*;
use crate::{Decision, Policy, PolicyConfig};

/// Cycles of a run with a fixed number of lanes. In a cycle each caller has one call.
const FIXED_CYCLES: u64 = 32;
/// Minimum calls of such a run, because few calls are a small sample.
const FIXED_CALLS_MIN: u64 = 2_000;
/// Longer messages get proportionally fewer calls.
const FIXED_CALL_BYTES: u64 = 128 << 10;
/// Maximum simulated cycles of a tick, because the rest would be similar.
const TICK_CYCLES: u64 = 24;
/// Minimum simulated calls of a tick, or the whole tick.
const TICK_CALLS_MIN: u64 = 1_000;

/// Returns the calls per second with a fixed number of lanes, and a call's duration in seconds. Averages several runs,
/// because lanes may fall into step in one and not in another.
pub(super) fn run_fixed(world: World, lanes: usize) -> (f64, f64) {
    let runs: Vec<_> = (1..=FIXED_RUNS).map(|seed| run_fixed_seed(world, lanes, seed)).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    (mean(|run| run.0), mean(|run| run.1))
}

fn run_fixed_seed(world: World, lanes: usize, seed: u64) -> (f64, f64) {
    let mut model = Model::seeded(world, lanes, seed);
    let calls = world.load.calls() as u64;
    model.run_calls(8 * calls, FIXED_MAX);
    model.sample();
    // Calls of long messages consist of this many batches.
    let batches = (world.costs.call_bytes / FIXED_CALL_BYTES).max(1);
    model.run_calls((FIXED_CYCLES * calls).max(FIXED_CALLS_MIN) / batches, FIXED_MAX);
    let samples = model.sample();
    let rate = rate(&samples);
    let in_flight: f64 = samples.lanes.iter().map(|lane| lane.in_flight_mean).sum();
    (rate, in_flight / rate)
}

const FIXED_RUNS: u64 = 3;
/// Enough for the slowest case: one call at a time with a round trip of 50 ms.
const FIXED_MAX: Duration = Duration::from_secs(20);

/// A channel whose lanes the policy controls.
pub(super) struct Adaptive {
    pub(super) model: Model,
    policy: Policy,
    tick: Duration,
    pub(super) now: Duration,
    /// Relative standard deviation of the noise in a tick's figures.
    pub(super) noise: f64,
    random: Random,
    pub(super) knows_round_trip: bool,
    pub(super) tick_cycles: u64,
    pub(super) tick_calls_min: u64,
    /// When lanes were opened or closed, the number opened (negative if closed), and the reason.
    pub(super) decisions: Vec<(Duration, isize, String)>,
    pub(super) rates: Vec<f64>,
}

impl Adaptive {
    pub(super) fn new(world: World) -> Self {
        let config = PolicyConfig::for_cores(LANES_MAX);
        Self {
            model: Model::new(world, 1),
            policy: Policy::new(config),
            tick: Duration::from_millis(config.tick_ms),
            now: Duration::ZERO,
            noise: 0.0,
            random: Random::new(7),
            knows_round_trip: true,
            tick_cycles: TICK_CYCLES,
            tick_calls_min: TICK_CALLS_MIN,
            decisions: Vec::new(),
            rates: Vec::new(),
        }
    }

    pub(super) fn run_until(&mut self, end: Duration) {
        while self.now < end {
            self.tick();
        }
    }

    /// Runs until the policy has changed nothing for `quiet`, but at most for `most`.
    pub(super) fn run_until_quiet(&mut self, quiet: Duration, most: Duration) {
        while self.now < most && (self.policy.is_searching() || self.now < self.last_change() + quiet) {
            self.tick();
        }
    }

    pub(super) fn last_change(&self) -> Duration {
        self.decisions.last().map_or(Duration::ZERO, |(at, ..)| *at)
    }

    /// Returns the mean rate of the last `time`.
    pub(super) fn rate_of_last(&self, time: Duration) -> f64 {
        let ticks = (time.as_millis() / self.tick.as_millis()) as usize;
        let last = &self.rates[self.rates.len().saturating_sub(ticks)..];
        last.iter().sum::<f64>() / last.len() as f64
    }

    fn tick(&mut self) {
        let cycles = self.tick_cycles * self.model.world().load.calls() as u64;
        self.model.run_calls(cycles.max(self.tick_calls_min), self.tick);
        let mut samples = self.model.sample();
        self.rates.push(rate(&samples));
        let scale = self.tick.as_secs_f64() / samples.interval.as_secs_f64();
        let noise = (self.noise * self.random.normal()).exp();
        samples.interval = self.tick;
        for lane in &mut samples.lanes {
            lane.completed = (lane.completed as f64 * scale * noise) as u64;
            lane.busy = lane.busy.mul_f64(scale * noise).min(self.tick);
            lane.round_trip = lane.round_trip.filter(|_| self.knows_round_trip);
        }
        self.now += self.tick;
        match self.policy.decide(&samples, self.now) {
            Decision::Keep => {}
            Decision::Open { count, reason } => {
                self.model.open(count);
                self.decisions.push((self.now, count.cast_signed(), reason.to_string()));
            }
            Decision::Close { lanes, reason } => {
                for &lane in &lanes {
                    self.model.close(lane);
                }
                self.decisions.push((self.now, -lanes.len().cast_signed(), reason.to_string()));
            }
        }
    }
}

/// The best fixed number of lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    /// The fewest lanes within [`BEST_TOLERANCE`] of the highest rate. In an open loop, where the rate soon no longer
    /// depends on lanes, it must also be within [`LATENCY_TOLERANCE`] of the shortest latency.
    pub(super) lanes: usize,
    pub(super) calls_per_s: f64,
    pub(super) one_lane_calls_per_s: f64,
}

/// Relative difference of rates up to which fewer lanes are considered better.
pub(super) const BEST_TOLERANCE: f64 = 0.02;
/// Equivalent to 3 % of rate.
const LATENCY_TOLERANCE: f64 = 0.18;

pub(super) fn best_fixed(world: World) -> Best {
    let most = match world.load {
        Load::Closed { in_flight } => in_flight.min(LANES_MAX),
        Load::Open { .. } => LANES_MAX,
    };
    let all: Vec<(f64, f64)> = (1..=most).map(|lanes| run_fixed(world, lanes)).collect();
    let calls_per_s = all.iter().map(|&(rate, _)| rate).fold(0.0, f64::max);
    let latency_s = all.iter().map(|&(_, latency)| latency).fold(f64::INFINITY, f64::min);
    let is_open = matches!(world.load, Load::Open { .. });
    let is_enough = |&(rate, latency): &(f64, f64)| {
        rate >= calls_per_s * (1.0 - BEST_TOLERANCE)
            && (!is_open || latency <= latency_s * (1.0 + LATENCY_TOLERANCE))
    };
    let lanes = 1 + all.iter().position(is_enough).unwrap_or(most - 1);
    Best { lanes, calls_per_s, one_lane_calls_per_s: all[0].0 }
}

/// Cap of a machine with 16 cores or more. Also used for smaller ones here: the policy must find the limit itself.
pub(super) const LANES_MAX: usize = 16;

/// Compares `table` with the committed one at `path` in the crate, or overwrites that if `THALWEG_RECORD` is set.
pub(super) fn check_table(path: &str, committed: &str, table: &str) {
    if std::env::var_os("THALWEG_RECORD").is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        std::fs::write(&path, table).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    for (line, (committed, now)) in (1..).zip(committed.lines().zip(table.lines())) {
        assert_eq!(
            committed, now,
            "{path}:{line} differs; if that is intended, run THALWEG_RECORD=1 cargo test -p thalweg"
        );
    }
    assert_eq!(committed.lines().count(), table.lines().count(), "{path} has a different number of lines");
}

pub(super) fn rate(samples: &Samples) -> f64 {
    samples.lanes.iter().map(|lane| lane.completed as f64).sum::<f64>() / samples.interval.as_secs_f64()
}
