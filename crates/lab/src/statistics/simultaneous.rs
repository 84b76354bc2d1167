//! Intervals that hold their truths all at once.
//!
//! Of several intervals of 95 % each, one in twenty misses its truth, and whoever picks the largest of several ratios
//! picks such a one more often than by chance. Intervals of 1 − 5 % ÷ m, for m ratios, hold all their truths at once
//! with at least 95 % (Bonferroni): then it does not matter which of the ratios is looked at, and why.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use super::bootstrap::{CONFIDENCE, Interval, Ratio};

/// How often the search for a quantile halves its interval: enough for all digits of a double.
const HALVINGS: u32 = 60;

impl Ratio {
    /// The same ratio with an interval so wide that those of so many ratios hold all their truths with a confidence of
    /// 95 %. With 6 pairs and three ratios it reaches 3.53 ÷ 2.57 = 1.37 times as far as that of one ratio.
    pub(crate) fn for_all_of(self, ratios: usize) -> Self {
        let Some(degrees_of_freedom) = self.pairs.checked_sub(1).filter(|&df| df > 0) else { return self };
        let quantile =
            |ratios: usize| students_t((1.0 - CONFIDENCE) / ratios.max(1) as f64, degrees_of_freedom);
        let wider = quantile(ratios) / quantile(1);
        let moved = |end: f64| self.ratio * (end / self.ratio).powf(wider);
        let interval =
            self.interval.map(|Interval { low, high }| Interval { low: moved(low), high: moved(high) });
        Self { interval, ..self }
    }
}

/// What Student's t is farther from 0 than, to either side, with this probability.
fn students_t(beyond: f64, degrees_of_freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..HALVINGS {
        let angle = f64::midpoint(low, high);
        if within(angle, degrees_of_freedom) < 1.0 - beyond { low = angle } else { high = angle }
    }
    low.tan() * (degrees_of_freedom as f64).sqrt()
}

/// How probable it is that Student's t is no farther from 0 than tan(angle) · √df: Abramowitz and Stegun 26.7.3 for odd
/// degrees of freedom, 26.7.4 for even ones.
fn within(angle: f64, degrees_of_freedom: usize) -> f64 {
    let (sin, cos) = angle.sin_cos();
    let is_odd = !degrees_of_freedom.is_multiple_of(2);
    if degrees_of_freedom == 1 {
        return FRAC_2_PI * angle;
    }
    let mut term = if is_odd { cos } else { 1.0 };
    let mut sum = term;
    for n in (if is_odd { 3 } else { 2 }..degrees_of_freedom.saturating_sub(1)).step_by(2) {
        term *= (n - 1) as f64 / n as f64 * cos * cos;
        sum += term;
    }
    if is_odd { FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_meet_the_published_values() {
        let published = [
            (0.05, 1, 12.7062),
            (0.05, 2, 4.3027),
            (0.05, 3, 3.1824),
            (0.05, 9, 2.2622),
            (0.05, 120, 1.9799),
            (0.01, 4, 4.6041),
            (0.01, 5, 4.0321),
            (0.01, 30, 2.7500),
        ];
        for (beyond, df, value) in published {
            let found = students_t(beyond, df);
            assert!((found - value).abs() < 1e-4, "{beyond}, {df}: {found}");
        }
    }

    #[test]
    fn the_interval_of_one_ratio_stays_and_that_of_several_grows_around_the_ratio() {
        let ratio = Ratio::of_pairs([(2.0, 1.0), (2.2, 1.0), (1.9, 1.0), (2.1, 1.0)]).unwrap();
        let close = |a: Option<Interval>, b: Option<Interval>| {
            let (a, b) = (a.unwrap(), b.unwrap());
            (a.low - b.low).abs() < 1e-9 && (a.high - b.high).abs() < 1e-9
        };
        assert!(close(ratio.for_all_of(1).interval, ratio.interval));
        let (narrow, wide) = (ratio.interval.unwrap(), ratio.for_all_of(3).interval.unwrap());
        assert!(wide.low < narrow.low && narrow.high < wide.high, "{wide:?} {narrow:?}");
        // Of three degrees of freedom: 4.8566 ÷ 3.1824.
        let factor = wide.half_width() / narrow.half_width();
        assert!((factor - 1.5261).abs() < 1e-3, "{factor}");
    }

    #[test]
    fn without_an_interval_there_is_nothing_to_widen() {
        let ratio = Ratio { ratio: 2.0, interval: None, pairs: 1 };
        assert_eq!(ratio.for_all_of(3), ratio);
    }
}
