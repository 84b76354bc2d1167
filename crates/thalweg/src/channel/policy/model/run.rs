//! Runs of the model.

use std::time::Duration;

use super::random::Random;
use super::*;
use crate::channel::policy::{Decision, Policy, PolicyConfig};

/// How much of a tick is simulated: enough for some cycles of the slowest batch; the rest would be the same.
pub(super) fn window(world: &World, tick: Duration) -> Duration {
    (8 * cycle(world)).min(tick)
}

/// About the time from one batch of a lane to the next.
fn cycle(world: &World) -> Duration {
    let calls = match world.load {
        Load::Closed { in_flight } => in_flight as u64,
        Load::Open { .. } => 256,
    };
    let costs = &world.costs;
    let call_ns = costs.caller_ns + costs.client_send_ns + costs.client_receive_ns + costs.server_ns;
    world.round_trip + Duration::from_nanos(calls * call_ns + 40_000)
}

/// Calls per second with a fixed number of lanes.
pub(super) fn fixed_rate(world: World, lanes: usize) -> f64 {
    let mut model = Model::new(world, lanes);
    let cycle = cycle(&world);
    model.run_for(8 * cycle);
    model.sample();
    model.run_for(64 * cycle);
    rate(&model.sample())
}

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

    fn tick(&mut self) {
        let window = window(self.model.world(), self.tick);
        self.model.run_for(window);
        let mut samples = self.model.sample();
        self.rates.push(rate(&samples));
        let scale = self.tick.as_secs_f64() / window.as_secs_f64();
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
