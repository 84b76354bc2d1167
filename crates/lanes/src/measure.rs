//! Measures rate and latency over ticks, and compares them.

use std::collections::VecDeque;

/// Calls of a channel in one tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) seconds: f64,
    pub(super) calls: f64,
    pub(super) in_flight: f64,
}

/// Ticks with one number of lanes, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticks {
    last: VecDeque<Tick>,
    rate_spread: Spread,
    in_flight_spread: Spread,
}

/// Random variation between consecutive ticks, for any number of lanes. It is estimated from many more ticks than a
/// trial has, because three similar ticks do not prove that all are.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    variance: f64,
    count: f64,
}

/// Pairs of ticks over which a spread is averaged.
const SPREAD_PAIRS: f64 = 24.0;

/// Calls per tick below which calls may be slow.
const SLOW_CALLS_MAX: f64 = 32.0;
/// Calls that take this many ticks are slow, and are observed for at least this many times their duration.
const SLOW_TICKS_MIN: f64 = 3.0;
const SLOW_PERIODS_MIN: f64 = 3.0;

impl Spread {
    /// Adds the logarithm of a tick's ratio to the previous tick. A change of load is not random, so it is limited to
    /// three standard deviations.
    fn add(&mut self, step: f64, min: f64) {
        let squared = step * step / 2.0;
        let known = self.variance.max(min * min);
        let squared = if self.count < 4.0 { squared.min(0.04) } else { squared.min(9.0 * known) };
        self.count = (self.count + 1.0).min(SPREAD_PAIRS);
        self.variance += (squared - self.variance) / self.count;
    }
}

/// Rate and calls in flight over some ticks, with their errors. Latency follows from them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measurement {
    pub(super) calls_per_s: f64,
    pub(super) in_flight: f64,
    /// Relative standard errors.
    pub(super) rate_error: f64,
    pub(super) in_flight_error: f64,
}

impl Ticks {
    /// Adds a tick, and keeps the last `max`. Assumes a spread of at least `spread_min`.
    pub(super) fn push(&mut self, tick: Tick, max: usize, spread_min: f64) {
        if let Some(last) = self.last.back()
            && last.calls > 0.0
            && tick.calls > 0.0
        {
            let change = tick.calls / tick.seconds * last.seconds / last.calls;
            self.rate_spread.add(change.ln(), spread_min);
            let in_flight = tick.in_flight.max(0.1) / last.in_flight.max(0.1);
            self.in_flight_spread.add(in_flight.ln(), spread_min);
        }
        if self.last.len() == max {
            self.last.pop_front();
        }
        self.last.push_back(tick);
    }

    pub(super) fn len(&self) -> usize {
        self.last.len()
    }

    /// Removes all ticks, but keeps the known spread.
    pub(super) fn clear(&mut self) {
        self.last.clear();
    }

    pub(super) fn measure(&self, spread_min: f64) -> Option<Measurement> {
        self.measure_last(self.last.len(), spread_min)
    }

    /// Measures the last `count` ticks, or returns `None` if no calls ended in them.
    pub(super) fn measure_last(&self, count: usize, spread_min: f64) -> Option<Measurement> {
        let ticks = || self.last.iter().skip(self.last.len().saturating_sub(count));
        let seconds: f64 = ticks().map(|tick| tick.seconds).sum();
        let calls: f64 = ticks().map(|tick| tick.calls).sum();
        if calls <= 0.0 || seconds <= 0.0 {
            return None;
        }
        let count = ticks().count() as f64;
        let in_flight = ticks().map(|tick| tick.in_flight).sum::<f64>() / count;
        let calls_per_s = calls / seconds;
        let squared = |x: f64| x * x;
        let variance = |of: &dyn Fn(&Tick) -> f64| {
            ticks().map(|tick| squared(of(tick))).sum::<f64>() / (count - 1.0).max(1.0)
        };
        let change = variance(&|tick| tick.calls / tick.seconds / calls_per_s - 1.0);
        let rate_variance = match slow_variance(ticks(), count, slow_ticks(in_flight, calls / count)) {
            Some(slow) => slow,
            None => change.max(self.rate_spread.variance),
        };
        let in_flight_variance =
            variance(&|tick| tick.in_flight / in_flight.max(0.1) - 1.0).max(self.in_flight_spread.variance);
        // All calls in flight may end together: the ticks contain one such batch more or less.
        let batch = 0.5 * (in_flight / calls).min(1.0);
        let rate_error = (rate_variance.max(squared(spread_min)) / count + squared(batch)).sqrt();
        let in_flight_error = (in_flight_variance / count).sqrt();
        Some(Measurement { calls_per_s, in_flight, rate_error, in_flight_error })
    }
}

impl Measurement {
    /// Returns the duration of a call, by Little's law.
    pub(super) fn latency_s(&self) -> f64 {
        self.in_flight / self.calls_per_s
    }

    /// Returns how many ticks a call takes, if calls are slow and few end per tick; otherwise 0.
    pub(super) fn slow_ticks(&self, tick_s: f64) -> f64 {
        slow_ticks(self.in_flight, self.calls_per_s * tick_s)
    }

    /// Returns the gains in rate and in latency, as logarithms. Positive means a higher rate or a shorter latency.
    pub(super) fn gains_over(&self, before: &Self) -> (f64, f64) {
        let rate = (self.calls_per_s / before.calls_per_s).ln();
        (rate, rate - (self.in_flight.max(0.1) / before.in_flight.max(0.1)).ln())
    }

    /// Returns the combined gain in rate and latency, as a logarithm, and its standard error.
    pub(super) fn gain_over(&self, before: &Self, latency_weight: f64) -> (f64, f64) {
        let (rate, latency) = self.gains_over(before);
        let error =
            |of: &Self| ((1.0 + latency_weight) * of.rate_error).hypot(latency_weight * of.in_flight_error);
        (rate + latency_weight * latency, error(self).hypot(error(before)))
    }
}

/// Returns how many ticks a call takes if few end per tick, so that each tick says little. Returns 0 if many end: calls
/// in a backlog take long, too, but end evenly.
fn slow_ticks(in_flight: f64, calls_a_tick: f64) -> f64 {
    if calls_a_tick < SLOW_CALLS_MAX { in_flight / calls_a_tick } else { 0.0 }
}

/// Returns the variance per tick for calls that take several ticks. They end in a few of the ticks, which says nothing
/// about the next calls. Ticks are therefore grouped by a call's duration, and the variance is that of one tick with
/// the same effect.
fn slow_variance<'a>(ticks: impl Iterator<Item = &'a Tick>, count: f64, latency_ticks: f64) -> Option<f64> {
    let group_len = latency_ticks.ceil();
    let periods = (count / group_len).floor();
    if latency_ticks < SLOW_TICKS_MIN || periods < SLOW_PERIODS_MIN {
        return None;
    }
    let mut sums = vec![0.0; periods as usize];
    for (index, tick) in ticks.enumerate() {
        if let Some(sum) = sums.get_mut(index / group_len as usize) {
            *sum += tick.calls;
        }
    }
    let mean = sums.iter().sum::<f64>() / periods;
    let squares: f64 = sums.iter().map(|sum| (sum / mean.max(1e-9) - 1.0).powi(2)).sum();
    Some(squares / (periods - 1.0) * group_len)
}
