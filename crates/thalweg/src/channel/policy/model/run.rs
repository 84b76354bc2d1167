//! Runs of the model.

use std::time::Duration;

use super::random::Random;
use super::*;
use crate::channel::policy::{Decision, Policy, PolicyConfig};

/// Cycles (each caller has had one call) of which the rate of a fixed number of lanes is taken.
const FIXED_CYCLES: u64 = 64;
/// Cycles that are simulated of a tick, if it has more: the rest would be the same.
const TICK_CYCLES: u64 = 24;

/// Calls per second with a fixed number of lanes.
pub(super) fn fixed_rate(world: World, lanes: usize) -> f64 {
    let mut model = Model::new(world, lanes);
    let calls = world.load.calls() as u64;
    model.run_calls(8 * calls, FIXED_MAX);
    model.sample();
    // Few calls are a small sample.
    model.run_calls((FIXED_CYCLES * calls).max(1_000), FIXED_MAX);
    rate(&model.sample())
}

/// The slowest are a call at a time with a round trip of 50 ms.
const FIXED_MAX: Duration = Duration::from_secs(20);

/// A channel whose lanes the policy decides about.
pub(super) struct Adaptive {
    pub(super) model: Model,
    policy: Policy,
    tick: Duration,
    pub(super) now: Duration,
    /// Standard deviation of the noise in what a tick reports, as a share.
    pub(super) noise: f64,
    random: Random,
    pub(super) knows_round_trip: bool,
    /// When lanes were opened or closed, how many there were to be, and why.
    pub(super) decisions: Vec<(Duration, isize, String)>,
    pub(super) rates: Vec<f64>,
}

impl Adaptive {
    pub(super) fn new(world: World) -> Self {
        let config = PolicyConfig::for_cores(16);
        Self {
            model: Model::new(world, 1),
            policy: Policy::new(config),
            tick: Duration::from_millis(config.tick_ms),
            now: Duration::ZERO,
            noise: 0.0,
            random: Random::new(7),
            knows_round_trip: true,
            decisions: Vec::new(),
            rates: Vec::new(),
        }
    }

    pub(super) fn run_until(&mut self, end: Duration) {
        while self.now < end {
            self.tick();
        }
    }

    /// Runs until the policy has not changed anything for `quiet`, but not for longer than `most`.
    pub(super) fn run_until_quiet(&mut self, quiet: Duration, most: Duration) {
        while self.now < most && (self.policy.is_searching() || self.now < self.last_change() + quiet) {
            self.tick();
        }
    }

    pub(super) fn last_change(&self) -> Duration {
        self.decisions.last().map_or(Duration::ZERO, |(at, ..)| *at)
    }

    /// The mean rate of the last `time`.
    pub(super) fn rate_of_last(&self, time: Duration) -> f64 {
        let ticks = (time.as_millis() / self.tick.as_millis()) as usize;
        let last = &self.rates[self.rates.len().saturating_sub(ticks)..];
        last.iter().sum::<f64>() / last.len() as f64
    }

    fn tick(&mut self) {
        let cycles = TICK_CYCLES * self.model.world().load.calls() as u64;
        self.model.run_calls(cycles.max(200), self.tick);
        let mut samples = self.model.sample();
        self.rates.push(rate(&samples));
        let scale = self.tick.as_secs_f64() / samples.interval.as_secs_f64();
        let noise = (self.noise * self.random.normal()).exp();
        samples.interval = self.tick;
        for lane in &mut samples.lanes {
            lane.completed = (lane.completed as f64 * scale * noise) as u64;
            lane.busy = lane.busy.mul_f64(scale * noise).min(self.tick);
            lane.bytes = (lane.bytes as f64 * scale * noise) as u64;
            lane.round_trip = lane.round_trip.filter(|_| self.knows_round_trip);
        }
        self.now += self.tick;
        match self.policy.decide(&samples, self.now) {
            Decision::Keep => {}
            Decision::Open { count, reason } => {
                self.model.open(count);
                self.decisions.push((self.now, count as isize, reason.to_string()));
            }
            Decision::Close { lanes, reason } => {
                for &lane in &lanes {
                    self.model.close(lane);
                }
                self.decisions.push((self.now, -(lanes.len() as isize), reason.to_string()));
            }
        }
    }
}

pub(super) fn rate(samples: &Samples) -> f64 {
    samples.lanes.iter().map(|lane| lane.completed as f64).sum::<f64>() / samples.interval.as_secs_f64()
}
