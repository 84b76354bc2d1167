//! Rate and latency of some ticks, and whether they differ from those of others.

use std::collections::VecDeque;

/// What a channel did in one tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) seconds: f64,
    pub(super) calls: f64,
    pub(super) in_flight: f64,
}

/// Ticks with one number of lanes, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticks {
    last: VecDeque<Tick>,
    rate_spread: Spread,
    in_flight_spread: Spread,
}

/// How much a tick differs from the next by chance, whatever the number of lanes: known from many more ticks than a
/// trial has. Three ticks that happen to be alike are no proof that all are.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    variance: f64,
    count: f64,
}

/// Pairs of ticks over which a spread is averaged.
const SPREAD_PAIRS: f64 = 24.0;

/// Calls of which fewer end in a tick may be slow ones.
const SLOW_CALLS_MAX: f64 = 32.0;
/// Those that take so many ticks are, and they are looked at for so many times of one at least.
const SLOW_TICKS_MIN: f64 = 3.0;
const SLOW_PERIODS_MIN: f64 = 3.0;

impl Spread {
    /// Takes note of the logarithm of a tick over that of the one before. Where the load has changed, that is no
    /// chance: beyond three standard deviations it counts as three.
    fn note(&mut self, step: f64, min: f64) {
        let square = step * step / 2.0;
        let known = self.variance.max(min * min);
        let square = if self.count < 4.0 { square.min(0.04) } else { square.min(9.0 * known) };
        self.count = (self.count + 1.0).min(SPREAD_PAIRS);
        self.variance += (square - self.variance) / self.count;
    }
}

/// Rate, calls in flight and latency over some ticks, and how sure the first and the last are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) calls_per_s: f64,
    pub(super) in_flight: f64,
    /// Standard errors, relative.
    pub(super) rate_error: f64,
    pub(super) in_flight_error: f64,
}

impl Ticks {
    /// Keeps the last `max`. Their spread is thought to be `spread_min` at least.
    pub(super) fn push(&mut self, tick: Tick, max: usize, spread_min: f64) {
        if let Some(last) = self.last.back()
            && last.calls > 0.0
            && tick.calls > 0.0
        {
            let rates = tick.calls / tick.seconds * last.seconds / last.calls;
            self.rate_spread.note(rates.ln(), spread_min);
            let in_flight = tick.in_flight.max(0.1) / last.in_flight.max(0.1);
            self.in_flight_spread.note(in_flight.ln(), spread_min);
        }
        if self.last.len() == max {
            self.last.pop_front();
        }
        self.last.push_back(tick);
    }

    pub(super) fn len(&self) -> usize {
        self.last.len()
    }

    /// What is known of their spread stays.
    pub(super) fn clear(&mut self) {
        self.last.clear();
    }

    pub(super) fn measured(&self, spread_min: f64) -> Option<Measured> {
        self.measured_last(self.last.len(), spread_min)
    }

    /// Of the last `count` ticks; nothing unless calls ended in them.
    pub(super) fn measured_last(&self, count: usize, spread_min: f64) -> Option<Measured> {
        let ticks = || self.last.iter().skip(self.last.len().saturating_sub(count));
        let seconds: f64 = ticks().map(|tick| tick.seconds).sum();
        let calls: f64 = ticks().map(|tick| tick.calls).sum();
        if calls <= 0.0 || seconds <= 0.0 {
            return None;
        }
        let count = ticks().count() as f64;
        let in_flight = ticks().map(|tick| tick.in_flight).sum::<f64>() / count;
        let calls_per_s = calls / seconds;
        let square = |x: f64| x * x;
        let variance = |of: &dyn Fn(&Tick) -> f64| {
            ticks().map(|tick| square(of(tick))).sum::<f64>() / (count - 1.0).max(1.0)
        };
        let rates = variance(&|tick| tick.calls / tick.seconds / calls_per_s - 1.0);
        let rate_variance = match slow_variance(ticks(), count, slow_ticks(in_flight, calls / count)) {
            Some(slow) => slow,
            None => rates.max(self.rate_spread.variance),
        };
        let in_flight_variance =
            variance(&|tick| tick.in_flight / in_flight.max(0.1) - 1.0).max(self.in_flight_spread.variance);
        // All calls in flight may end together: the ticks hold one such batch more or less.
        let batch = 0.5 * (in_flight / calls).min(1.0);
        let rate_error = (rate_variance.max(square(spread_min)) / count + square(batch)).sqrt();
        let in_flight_error = (in_flight_variance / count).sqrt();
        Some(Measured { calls_per_s, in_flight, rate_error, in_flight_error })
    }
}

impl Measured {
    /// From a call's beginning to its end, by Little's law.
    pub(super) fn latency_s(&self) -> f64 {
        self.in_flight / self.calls_per_s
    }

    /// In how many ticks a call ends, if those are slow ones of which few end in a tick.
    pub(super) fn slow_ticks(&self, tick_s: f64) -> f64 {
        slow_ticks(self.in_flight, self.calls_per_s * tick_s)
    }

    /// The logarithms of how many times higher the rate is, and shorter the latency.
    pub(super) fn gains_over(&self, before: &Self) -> (f64, f64) {
        let rate = (self.calls_per_s / before.calls_per_s).ln();
        (rate, rate - (self.in_flight.max(0.1) / before.in_flight.max(0.1)).ln())
    }

    /// How much better this is, rate and latency in one, as a logarithm; and the standard error of that.
    pub(super) fn gain_over(&self, before: &Self, latency_weight: f64) -> (f64, f64) {
        let (rate, latency) = self.gains_over(before);
        let error =
            |of: &Self| ((1.0 + latency_weight) * of.rate_error).hypot(latency_weight * of.in_flight_error);
        (rate + latency_weight * latency, error(self).hypot(error(before)))
    }
}

/// In how many ticks a call ends, if few end in a tick and that says little therefore; nothing if many do: calls that
/// have piled up take long as well, and end evenly.
fn slow_ticks(in_flight: f64, calls_a_tick: f64) -> f64 {
    if calls_a_tick < SLOW_CALLS_MAX { in_flight / calls_a_tick } else { 0.0 }
}

/// Of calls that take several ticks: they end in a few of the ticks, which says nothing about the next calls. So
/// the ticks are taken together, as many as a call takes. What is returned is the variance of one tick that has the
/// same effect.
fn slow_variance<'a>(ticks: impl Iterator<Item = &'a Tick>, count: f64, latency_ticks: f64) -> Option<f64> {
    let each = latency_ticks.ceil();
    let periods = (count / each).floor();
    if latency_ticks < SLOW_TICKS_MIN || periods < SLOW_PERIODS_MIN {
        return None;
    }
    let mut sums = vec![0.0; periods as usize];
    for (index, tick) in ticks.enumerate() {
        if let Some(sum) = sums.get_mut(index / each as usize) {
            *sum += tick.calls;
        }
    }
    let mean = sums.iter().sum::<f64>() / periods;
    let squares: f64 = sums.iter().map(|sum| (sum / mean.max(1e-9) - 1.0).powi(2)).sum();
    Some(squares / (periods - 1.0) * each)
}
