//! Intervals corrected for multiple comparisons.

use super::bootstrap::{CONFIDENCE, Interval, Ratio};
use super::students_t::quantile;

impl Ratio {
    /// Widens the interval for a ratio that was selected from `comparisons` ratios (Bonferroni correction).
    ///
    /// The largest of several ratios is large partly by chance, so a 95 % interval of that ratio alone covers the true
    /// value too rarely. By Bonferroni's inequality, a confidence of 1 − 0.05 ÷ `comparisons` for each interval gives
    /// 95 % for all of them together. The half-width of the log interval therefore grows by the quotient of the two
    /// quantiles of Student's t.
    ///
    /// Returns the ratio unchanged if it has no interval or if `comparisons` is at most 1.
    ///
    /// Example: with 6 pairs, t is 2.571 for one ratio and 3.163 for one of two. The interval becomes 1.23 times as
    /// wide.
    pub fn corrected_for(self, comparisons: usize) -> Self {
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
    fn interval_widens_only_with_several_comparisons() {
        let interval = Some(Interval { low: 1.0, high: 4.0 });
        let ratio = Ratio { ratio: 2.0, interval, pairs: 6 };
        assert_eq!(ratio.corrected_for(1), ratio);
        let wide = ratio.corrected_for(2).interval.unwrap();
        let wider = 3.1634 / 2.5706;
        assert!((wide.low - 2.0 * 0.5_f64.powf(wider)).abs() < 1e-3, "{wide:?}");
        assert!((wide.high - 2.0 * 2.0_f64.powf(wider)).abs() < 1e-3, "{wide:?}");
        let few = Ratio { interval: None, pairs: 2, ..ratio };
        assert_eq!(few.corrected_for(8), few);
    }

    /// Returns an approximately normal value with standard deviation 1.
    fn noise(random: &mut SplitMix64) -> f64 {
        (0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0
    }

    #[test]
    fn interval_of_largest_ratio_covers_truth_only_when_widened() {
        const WAYS: usize = 8;
        const STUDIES: usize = 300;
        let mut random = SplitMix64(3);
        let (mut plain, mut widened) = (0, 0);
        for _ in 0..STUDIES {
            // All variants are equal, so the true ratio is 1. They share one set of baseline windows.
            let one: Vec<f64> = (0..6).map(|_| (0.05 * noise(&mut random)).exp()).collect();
            let ratios = (0..WAYS).map(|_| {
                let pairs = one.iter().map(|&one| ((0.05 * noise(&mut random)).exp(), one));
                Ratio::of_pairs(pairs.collect::<Vec<_>>()).unwrap()
            });
            let largest = ratios.max_by(|a, b| a.ratio.total_cmp(&b.ratio)).unwrap();
            plain += usize::from(largest.interval.unwrap().contains(1.0));
            widened += usize::from(largest.corrected_for(WAYS).interval.unwrap().contains(1.0));
        }
        let share = |covered: usize| covered as f64 / STUDIES as f64;
        assert!(share(plain) < 0.93 && share(widened) >= 0.95, "{} {}", share(plain), share(widened));
    }
}
