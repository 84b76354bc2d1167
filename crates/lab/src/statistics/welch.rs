//! Ratios of what was measured apart, and how sure they are.
//!
//! Where two sides were not measured in turns there are no pairs. What is compared are the means of the logs of each
//! side's values, whose variances need not be equal: Welch's t test, its degrees of freedom by Welch and Satterthwaite
//! (B. L. Welch, "The generalization of Student's problem when several different population variances are involved",
//! Biometrika 34, 1947). What slowed the machine while one side was measured is in the ratio.

use super::bootstrap::{CONFIDENCE, Interval, PAIRS_MIN, Ratio, mean, standard_error};
use super::students_t::quantile_between;

/// A mean of logs, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// The degrees of freedom of that error; no whole number as a rule.
    pub df: f64,
}

/// The ratio of the geometric mean of `of` to that of `to`, which were measured apart: values of both in any number and
/// order. Values that are not above zero are none; `None` where a side has none left. Its interval needs as many of
/// each side as one of pairs needs pairs, and [`Ratio::pairs`] is the smaller of both numbers.
pub fn apart(of: &[f64], to: &[f64]) -> Option<Ratio> {
    let (of, to) = (logs(of), logs(to));
    if of.is_empty() || to.is_empty() {
        return None;
    }
    let pairs = of.len().min(to.len());
    let ratio = (mean(&of) - mean(&to)).exp();
    let is_sure = pairs >= PAIRS_MIN;
    let interval = is_sure.then(|| Some(Estimate::of(&of)?.less(Estimate::of(&to)?).interval())).flatten();
    Some(Ratio { ratio, interval, pairs })
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().filter(|&&value| value > 0.0 && value.is_finite()).map(|value| value.ln()).collect()
}

impl Estimate {
    /// The mean of these logs; `None` of fewer than two, which do not differ.
    pub fn of(logs: &[f64]) -> Option<Self> {
        let df = logs.len().checked_sub(1).filter(|&df| df > 0)? as f64;
        Some(Self { mean: mean(logs), error: standard_error(logs), df })
    }

    /// The ratios of pairs, as [`Ratio::of_pairs`] takes them.
    pub fn of_pairs(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        Self::of(&logs(&pairs.into_iter().map(|(of, to)| of / to).collect::<Vec<_>>()))
    }

    /// The ratio of values that were measured apart.
    pub fn apart(of: &[f64], to: &[f64]) -> Option<Self> {
        Some(Self::of(&logs(of))?.less(Self::of(&logs(to))?))
    }

    /// What it is more than another one that knows nothing of it.
    fn less(self, other: Self) -> Self {
        Self::sum([self, Self { mean: -other.mean, ..other }])
    }

    /// The mean of estimates that know nothing of each other; `None` of none.
    pub fn mean(estimates: &[Self]) -> Option<Self> {
        let all = Self::sum(estimates.iter().copied());
        let count = estimates.len() as f64;
        (count > 0.0).then_some(Self { mean: all.mean / count, error: all.error / count, df: all.df })
    }

    /// Variances add up; the degrees of freedom of their sum v₁ + v₂ + … are (v₁ + v₂ + …)² ÷ (v₁²/df₁ + v₂²/df₂ + …):
    /// between the smallest of them and all together.
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

    /// Where the ratio lies, whose log this is, with the confidence of all intervals: 95 %.
    pub fn interval(self) -> Interval {
        // Values that do not differ at all have no error, and the degrees of freedom are 0 ÷ 0.
        let reach = quantile_between(1.0 - CONFIDENCE, self.df) * self.error;
        Interval { low: (self.mean - reach).exp(), high: (self.mean + reach).exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::SplitMix64;
    use super::*;

    /// Two samples of 15 from normal distributions with other variances. Figures computed by hand: means 20.82 and
    /// 22.98667, variances of the samples 7.86743 and 3.81267.
    #[test]
    fn it_meets_figures_that_were_computed_by_hand() {
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4];
        let difference = Estimate::of(&a).unwrap().less(Estimate::of(&b).unwrap());
        let close = |value: f64, expected: f64, within: f64| {
            assert!((value - expected).abs() < within, "{value}, and not {expected}");
        };
        close(difference.mean, 20.82 - 22.986_667, 1e-6);
        close(difference.mean / difference.error, -2.46, 0.01);
        close(difference.df, 24.99, 0.01);
        // t of 24.99 degrees of freedom, 97.5 %: 2.0596. Error: √(7.86743/15 + 3.81267/15) = 0.88242.
        let Interval { low, high } = difference.interval();
        close(low.ln(), -2.166_667 - 2.0596 * 0.88242, 0.001);
        close(high.ln(), -2.166_667 + 2.0596 * 0.88242, 0.001);
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        const STUDIES: usize = 1000;
        const TRUTH: f64 = 2.0;
        for (rounds, deviations) in
            [((3, 3), (0.05, 0.05)), ((3, 10), (0.02, 0.1)), ((10, 5), (0.02, 0.1)), ((10, 10), (0.01, 0.1))]
        {
            let mut random = SplitMix64(3);
            let mut side = |rounds: usize, truth: f64, deviation: f64| -> Vec<f64> {
                (0..rounds).map(|_| truth * (deviation * random.normal()).exp()).collect()
            };
            let mut held = 0;
            for _ in 0..STUDIES {
                let (of, to) =
                    (side(rounds.0, 100.0 * TRUTH, deviations.0), side(rounds.1, 100.0, deviations.1));
                held += usize::from(apart(&of, &to).unwrap().interval.unwrap().contains(TRUTH));
            }
            let covered = held as f64 / STUDIES as f64;
            // Of 1000 that hold it in 95 %, two standard deviations are 1.4 %. Few values make Welch's a little wide.
            assert!((0.93..=0.98).contains(&covered), "{rounds:?}, {deviations:?}: {covered}");
        }
    }

    /// Student's own test, with both variances as one, is wrong where the small side varies more.
    #[test]
    fn variances_need_not_be_equal() {
        let (steady, wide) = ([100.0, 101.0, 99.0, 100.5, 99.5, 100.0], [80.0, 100.0, 125.0]);
        let estimate = Estimate::apart(&wide, &steady).unwrap();
        // Nearly all of the error is of the three values, and so are the degrees of freedom.
        assert!((2.0..2.1).contains(&estimate.df), "{}", estimate.df);
    }

    #[test]
    fn few_values_values_of_nothing_and_values_that_are_equal() {
        assert_eq!(apart(&[], &[1.0]), None);
        assert_eq!(apart(&[0.0, f64::NAN], &[1.0]), None);
        let few = apart(&[2.0, 8.0], &[1.0, 1.0, 1.0]).unwrap();
        assert!((few.ratio - 4.0).abs() < 1e-12 && few.interval.is_none() && few.pairs == 2, "{few:?}");
        let equal = apart(&[2.0; 3], &[1.0; 4]).unwrap().interval.unwrap();
        assert!((equal.low - 2.0).abs() < 1e-9 && (equal.high - 2.0).abs() < 1e-9, "{equal:?}");
    }

    #[test]
    fn the_mean_of_several_is_surer_than_one() {
        let one = Estimate { mean: 0.1, error: 0.02, df: 9.0 };
        let mean = Estimate::mean(&[one; 4]).unwrap();
        assert!((mean.mean - 0.1).abs() < 1e-12 && (mean.error - 0.01).abs() < 1e-12, "{mean:?}");
        assert!((mean.df - 36.0).abs() < 1e-9, "{mean:?}");
        assert_eq!(Estimate::mean(&[]), None);
    }
}
