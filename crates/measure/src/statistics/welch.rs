//! Ratios of unpaired measurements, with confidence intervals.
//!
//! If the two sides were not measured alternately, there are no pairs. This module compares the means of the logs of
//! each side's values by Welch's t test, which allows unequal variances. The degrees of freedom follow Welch and
//! Satterthwaite (B. L. Welch, "The generalization of Student's problem when several different population variances are
//! involved", Biometrika 34, 1947). A slowdown of the machine during one side's measurement does not cancel out.

use super::bootstrap::{CONFIDENCE, Interval, PAIRS_MIN, Ratio, log_ratios, mean, standard_error};
use super::students_t::quantile_between;

/// A mean of logs with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean of the logs.
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
    /// Degrees of freedom of the standard error, usually fractional.
    pub df: f64,
}

/// Returns the ratio of the geometric mean of `of` to that of `to`, for values that were not measured in pairs.
///
/// Skips values that are not finite or not above zero. Returns `None` if a side has no values left. The interval needs
/// at least [`PAIRS_MIN`] values per side. [`Ratio::pairs`] is the smaller number of values.
pub fn unpaired_ratio(of: &[f64], to: &[f64]) -> Option<Ratio> {
    let (of, to) = (logs(of), logs(to));
    if of.is_empty() || to.is_empty() {
        return None;
    }
    let pairs = of.len().min(to.len());
    let ratio = (mean(&of) - mean(&to)).exp();
    let is_sure = pairs >= PAIRS_MIN;
    let interval = is_sure.then(|| Some(Estimate::of(&of)?.minus(Estimate::of(&to)?).interval())).flatten();
    Some(Ratio { ratio, interval, pairs })
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().filter(|&&value| value > 0.0 && value.is_finite()).map(|value| value.ln()).collect()
}

impl Estimate {
    /// Returns the mean of `logs` with its error. `None` if there are fewer than two, because the error is then
    /// unknown.
    pub fn of(logs: &[f64]) -> Option<Self> {
        let df = logs.len().checked_sub(1).filter(|&df| df > 0)? as f64;
        Some(Self { mean: mean(logs), error: standard_error(logs), df })
    }

    /// Returns the mean log ratio of the pairs that [`Ratio::of_pairs`] uses: both values are finite and above zero.
    pub fn of_pairs(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        Self::of(&log_ratios(pairs))
    }

    /// Returns the log ratio of unpaired values, with the rules of [`unpaired_ratio`]. `None` if a side has fewer than
    /// two values.
    pub fn of_unpaired(of: &[f64], to: &[f64]) -> Option<Self> {
        Some(Self::of(&logs(of))?.minus(Self::of(&logs(to))?))
    }

    /// Returns the difference from an independent estimate.
    pub fn minus(self, other: Self) -> Self {
        Self::sum([self, Self { mean: -other.mean, ..other }])
    }

    /// Returns the mean of independent estimates. `None` if there are none.
    pub fn mean(estimates: &[Self]) -> Option<Self> {
        let all = Self::sum(estimates.iter().copied());
        let count = estimates.len() as f64;
        (count > 0.0).then_some(Self { mean: all.mean / count, error: all.error / count, df: all.df })
    }

    /// Returns the sum of independent estimates. Their variances add up.
    ///
    /// The sum v₁ + v₂ + … has (v₁ + v₂ + …)² ÷ (v₁²/df₁ + v₂²/df₂ + …) degrees of freedom. This number lies between
    /// the smallest dfᵢ and the sum of all.
    fn sum(estimates: impl IntoIterator<Item = Self>) -> Self {
        let (mut mean, mut variance, mut weighed) = (0.0, 0.0, 0.0);
        for estimate in estimates {
            let square = estimate.error.powi(2);
            mean += estimate.mean;
            variance += square;
            weighed += square.powi(2) / estimate.df;
        }
        Self { mean, error: variance.sqrt(), df: variance.powi(2) / weighed }
    }

    /// Returns the 95 % confidence interval of the ratio whose log this estimates.
    pub fn interval(self) -> Interval {
        self.interval_corrected_for(1)
    }

    /// Returns the [`interval`](Self::interval), widened for one of `comparisons` ratios as by
    /// [`Ratio::corrected_for`].
    pub fn interval_corrected_for(self, comparisons: usize) -> Interval {
        let Interval { low, high } = self.mean_corrected_for(comparisons);
        Interval { low: low.exp(), high: high.exp() }
    }

    /// Returns the confidence interval of the mean itself, widened for one of `comparisons` means: 95 % for all of them
    /// together.
    pub fn mean_corrected_for(self, comparisons: usize) -> Interval {
        // Equal values have no error, and their degrees of freedom are 0 ÷ 0. `quantile_between` accepts NaN.
        let missed = (1.0 - CONFIDENCE) / comparisons.max(1) as f64;
        let reach = quantile_between(missed, self.df) * self.error;
        Interval { low: self.mean - reach, high: self.mean + reach }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::SplitMix64;
    use super::*;

    /// Uses two samples of 15 from normal distributions with different variances. Computed by hand: means 20.82 and
    /// 22.98667, sample variances 7.86743 and 3.81267.
    #[test]
    fn welch_interval_matches_manual_computation() {
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4];
        let difference = Estimate::of(&a).unwrap().minus(Estimate::of(&b).unwrap());
        let close = |value: f64, expected: f64, within: f64| {
            assert!((value - expected).abs() < within, "got {value}, expected {expected}");
        };
        close(difference.mean, 20.82 - 22.986_667, 1e-6);
        close(difference.mean / difference.error, -2.46, 0.01);
        close(difference.df, 24.99, 0.01);
        // The 97.5th percentile of t with 24.99 degrees of freedom is 2.0596. Error: √(7.86743/15 + 3.81267/15) =
        // 0.88242.
        let Interval { low, high } = difference.interval();
        close(low.ln(), -2.166_667 - 2.0596 * 0.88242, 0.001);
        close(high.ln(), -2.166_667 + 2.0596 * 0.88242, 0.001);
    }

    #[test]
    fn intervals_cover_truth_at_nominal_rate() {
        const STUDIES: usize = 1000;
        const TRUTH: f64 = 2.0;
        for (rounds, deviations) in
            [((3, 3), (0.05, 0.05)), ((3, 10), (0.02, 0.1)), ((10, 5), (0.02, 0.1)), ((10, 10), (0.01, 0.1))]
        {
            let mut random = SplitMix64(3);
            let mut side = |rounds: usize, truth: f64, deviation: f64| -> Vec<f64> {
                (0..rounds).map(|_| truth * (deviation * random.normal()).exp()).collect()
            };
            let mut covered = 0;
            for _ in 0..STUDIES {
                let (of, to) =
                    (side(rounds.0, 100.0 * TRUTH, deviations.0), side(rounds.1, 100.0, deviations.1));
                covered += usize::from(unpaired_ratio(&of, &to).unwrap().interval.unwrap().contains(TRUTH));
            }
            let covered = covered as f64 / STUDIES as f64;
            // With 1,000 studies and 95 % coverage, two standard deviations are 1.4 %. Welch's interval is slightly
            // wide for few values.
            assert!((0.93..=0.98).contains(&covered), "{rounds:?}, {deviations:?}: {covered}");
        }
    }

    /// Student's test pools both variances and is wrong if the smaller sample varies more.
    #[test]
    fn degrees_of_freedom_follow_the_sample_with_larger_variance() {
        let (steady, wide) = ([100.0, 101.0, 99.0, 100.5, 99.5, 100.0], [80.0, 100.0, 125.0]);
        let estimate = Estimate::of_unpaired(&wide, &steady).unwrap();
        // The three values cause nearly all of the error, so they determine the degrees of freedom.
        assert!((2.0..2.1).contains(&estimate.df), "{}", estimate.df);
    }

    #[test]
    fn two_values_have_no_interval_and_equal_values_have_zero_width() {
        assert_eq!(unpaired_ratio(&[], &[1.0]), None);
        assert_eq!(unpaired_ratio(&[0.0, f64::NAN], &[1.0]), None);
        let few = unpaired_ratio(&[2.0, 8.0], &[1.0, 1.0, 1.0]).unwrap();
        assert!((few.ratio - 4.0).abs() < 1e-12 && few.interval.is_none() && few.pairs == 2, "{few:?}");
        let equal = unpaired_ratio(&[2.0; 3], &[1.0; 4]).unwrap().interval.unwrap();
        assert!((equal.low - 2.0).abs() < 1e-9 && (equal.high - 2.0).abs() < 1e-9, "{equal:?}");
    }

    #[test]
    fn pairs_of_estimate_and_ratio_are_the_same() {
        let pairs = [(2.0, 1.0), (-1.0, -1.0), (8.0, 1.0), (0.0, 0.0), (f64::INFINITY, f64::INFINITY)];
        let ratio = Ratio::of_pairs(pairs).unwrap();
        let estimate = Estimate::of_pairs(pairs).unwrap();
        assert_eq!((ratio.pairs, estimate.df + 1.0), (2, 2.0));
        assert!((estimate.mean - ratio.ratio.ln()).abs() < 1e-12, "{estimate:?}, {ratio:?}");
    }

    #[test]
    fn interval_of_estimate_widens_with_comparisons() {
        let one = Estimate { mean: 0.1, error: 0.02, df: 5.0 };
        let (single, double) = (one.interval(), one.interval_corrected_for(2));
        // Student's t with 5 degrees of freedom: 2.5706 for 5 %, and 3.1634 for half of it.
        assert!((single.high.ln() - 0.1 - 2.5706 * 0.02).abs() < 1e-5, "{single:?}");
        assert!((double.high.ln() - 0.1 - 3.1634 * 0.02).abs() < 1e-5, "{double:?}");
        let mean = one.mean_corrected_for(2);
        assert!((mean.low - (0.1 - 3.1634 * 0.02)).abs() < 1e-5, "{mean:?}");
    }

    #[test]
    fn mean_of_estimates_has_smaller_error() {
        let one = Estimate { mean: 0.1, error: 0.02, df: 9.0 };
        let mean = Estimate::mean(&[one; 4]).unwrap();
        assert!((mean.mean - 0.1).abs() < 1e-12 && (mean.error - 0.01).abs() < 1e-12, "{mean:?}");
        assert!((mean.df - 36.0).abs() < 1e-9, "{mean:?}");
        assert_eq!(Estimate::mean(&[]), None);
    }
}
