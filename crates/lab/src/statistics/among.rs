//! Intervals that hold although the ratio was picked from several.

use super::bootstrap::{CONFIDENCE, Interval, Ratio};
use super::students_t::quantile;

impl Ratio {
    /// The same ratio as one of so many that are looked at together, of which the most striking is then told. The
    /// largest of several is large by chance too, and an interval that is made for a single ratio promises more than
    /// it holds. By Bonferroni's inequality the intervals of `comparisons` ratios hold the truth all at once with a
    /// confidence of [`CONFIDENCE`], whichever is picked, if each of them is one of 1 − (1 − [`CONFIDENCE`]) ÷
    /// `comparisons`: it is wider by the quotient of Student's t.
    ///
    /// Worked: of 6 pairs t is 2.571, and 3.163 for one of two ratios, whose intervals are wider by 1.23.
    pub(crate) fn among(self, comparisons: usize) -> Self {
        let df = self.pairs.saturating_sub(1);
        let Some(Interval { low, high }) = self.interval.filter(|_| comparisons > 1 && df > 0) else {
            return self;
        };
        let missed = 1.0 - CONFIDENCE;
        let wider = quantile(missed / comparisons as f64, df) / quantile(missed, df);
        let end = |end: f64| self.ratio * (end / self.ratio).powf(wider);
        Self { interval: Some(Interval { low: end(low), high: end(high) }), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::SplitMix64;
    use super::*;

    #[test]
    fn one_of_two_is_wider_and_one_alone_is_not() {
        let interval = Some(Interval { low: 1.0, high: 4.0 });
        let ratio = Ratio { ratio: 2.0, interval, pairs: 6 };
        assert_eq!(ratio.among(1), ratio);
        let wide = ratio.among(2).interval.unwrap();
        let wider = 3.1634 / 2.5706;
        assert!((wide.low - 2.0 * 0.5_f64.powf(wider)).abs() < 1e-3, "{wide:?}");
        assert!((wide.high - 2.0 * 2.0_f64.powf(wider)).abs() < 1e-3, "{wide:?}");
        let few = Ratio { interval: None, pairs: 2, ..ratio };
        assert_eq!(few.among(8), few);
    }

    /// Roughly normal, of standard deviation 1.
    fn noise(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0
    }

    #[test]
    fn the_interval_of_the_largest_holds_the_truth_only_if_it_is_widened() {
        const WAYS: usize = 8;
        const STUDIES: usize = 300;
        let mut random = SplitMix64(3);
        let (mut plain, mut widened) = (0, 0);
        for _ in 0..STUDIES {
            // All ways are the same: the truth is 1. They share the windows that they are compared with.
            let one: Vec<f64> = (0..6).map(|_| (0.05 * noise(&mut random)).exp()).collect();
            let ratios = (0..WAYS).map(|_| {
                let pairs = one.iter().map(|&one| ((0.05 * noise(&mut random)).exp(), one));
                Ratio::of_pairs(pairs.collect::<Vec<_>>()).unwrap()
            });
            let largest = ratios.max_by(|a, b| a.ratio.total_cmp(&b.ratio)).unwrap();
            plain += usize::from(largest.interval.unwrap().contains(1.0));
            widened += usize::from(largest.among(WAYS).interval.unwrap().contains(1.0));
        }
        let share = |held: usize| held as f64 / STUDIES as f64;
        assert!(share(plain) < 0.93 && share(widened) >= 0.95, "{} {}", share(plain), share(widened));
    }
}
