//! Picks in proportion to weights, by a stride over the turns of calls.

#[cfg(test)]
mod tests;

use crate::policy::{Pick, PickArgs, Picker};

/// Endpoints as segments of a circle, as long as their weights. Each turn is one stride further along the circle.
///
/// The stride is the golden ratio of the circle: any number of consecutive turns is spread as evenly as is possible
/// without a common counter. 10⁶ turns visit a segment its share of times, ±10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stride {
    /// Ends of the segments; the last one is the length of the circle.
    ends: Vec<u64>,
    /// Position of each segment's endpoint.
    positions: Vec<usize>,
}

/// 2⁶⁴ divided by the golden ratio.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Weight of the heaviest endpoint, as in gRPC's static stride scheduler.
const WEIGHT_MAX: f64 = u16::MAX as f64;

/// A weight counts as at most 10 times and at least 0.01 times the mean, as in gRPC's static stride scheduler.
const RATIO_MAX: f64 = 10.0;
const RATIO_MIN: f64 = 0.01;

impl Stride {
    /// Creates the schedule of endpoints at these positions. Without a weight an endpoint counts as average.
    ///
    /// Returns `None` if fewer than two have a weight, or all weights are equal.
    pub(super) fn new(positions: &[usize], weights: &[Option<f64>]) -> Option<Self> {
        let scaled = scale(weights)?;
        if scaled.iter().all(|&weight| weight == scaled[0]) {
            return None;
        }
        let ends = scaled.iter().scan(0, |end, &weight| {
            *end += u64::from(weight);
            Some(*end)
        });
        Some(Self { ends: ends.collect(), positions: positions.to_vec() })
    }
}

impl Picker for Stride {
    fn pick(&self, call: &PickArgs<'_>) -> Pick {
        let length = self.ends[self.ends.len() - 1];
        let fraction = u128::from(call.turn.wrapping_mul(STRIDE));
        let point = ((fraction * u128::from(length)) >> 64) as u64;
        Pick::Endpoint(self.positions[self.ends.partition_point(|&end| end <= point)])
    }
}

/// Scales weights to 16 bits, none of them zero. `None` if fewer than two are known.
fn scale(weights: &[Option<f64>]) -> Option<Vec<u16>> {
    let known = || weights.iter().flatten();
    let count = known().count();
    if count < 2 {
        return None;
    }
    // Relative to the largest, so that no sum overflows.
    let max = known().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mean = known().map(|weight| weight / max).sum::<f64>() / count as f64;
    let scale = WEIGHT_MAX / (mean * RATIO_MAX).min(1.0);
    let min = (mean * scale * RATIO_MIN).ceil();
    let scaled = |weight: Option<f64>| {
        let relative = weight.map_or(mean, |weight| weight / max);
        (relative * scale).round().clamp(min, WEIGHT_MAX) as u16
    };
    Some(weights.iter().copied().map(scaled).collect())
}
