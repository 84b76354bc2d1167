//! Latency distributions in constant memory.

use hdrhistogram::Histogram as Counts;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Upper limit of the histogram: one hour, in ns. Longer times count as this long in percentiles.
///
/// The limit bounds the histogram's memory to about 270 KB.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
const COARSE_DIGITS: u8 = 2;

/// A distribution of latencies. Minimum, maximum and mean are exact. Percentiles have three significant digits.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Counts<u64>,
    /// Exact minimum, unlike the histogram's.
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Distribution {
    /// Creates an empty distribution.
    pub fn new() -> Self {
        let histogram = Counts::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS)
            .expect("the bounds are valid constants");
        Self { histogram, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }

    /// Records `count` latencies of `took_ns` each. `count` must be above 0.
    #[inline]
    pub fn record_many(&mut self, took_ns: u64, count: u64) {
        self.histogram.saturating_record_n(took_ns, count);
        self.min_ns = self.min_ns.min(took_ns);
        self.max_ns = self.max_ns.max(took_ns);
        self.sum_ns += u128::from(took_ns) * u128::from(count);
    }

    /// Records one latency of `took_ns`.
    #[inline]
    pub fn record(&mut self, took_ns: u64) {
        self.record_many(took_ns, 1);
    }

    /// Removes all latencies and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
        (self.min_ns, self.max_ns, self.sum_ns) = (u64::MAX, 0, 0);
    }

    /// Adds all latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram += &other.histogram;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// Returns whether nothing has been recorded.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// Returns the number of latencies.
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns a summary, or `None` if nothing has been recorded.
    pub fn latency(&self) -> Option<Latency> {
        let percentile =
            |percentile| self.histogram.value_at_percentile(percentile).clamp(self.min_ns, self.max_ns);
        (!self.histogram.is_empty()).then(|| Latency {
            min: self.min_ns,
            mean: self.sum_ns as f64 / self.histogram.len() as f64,
            p50: percentile(50.0),
            p90: percentile(90.0),
            p95: Some(percentile(95.0)),
            p99: percentile(99.0),
            p99_9: percentile(99.9),
            p99_99: percentile(99.99),
            max: self.max_ns,
        })
    }

    /// Returns how many latencies are at most `ns`, to three digits.
    pub fn count_up_to(&self, ns: u64) -> u64 {
        self.histogram.count_between(0, ns)
    }

    /// Returns the latency that a share of all latencies, from 0 to 1, does not exceed, in ns. Returns 0 if there are
    /// none.
    pub fn value_at(&self, share: f64) -> u64 {
        let value = self.histogram.value_at_quantile(share);
        if self.is_empty() { 0 } else { value.clamp(self.min_ns, self.max_ns) }
    }

    /// Returns the recorded latencies in ascending order, each with its count.
    ///
    /// Latencies that are equal to three digits are one entry, with the largest value of that range.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        let recorded = self.histogram.iter_recorded();
        recorded.map(|it| (it.value_iterated_to().min(self.max_ns), it.count_since_last_iteration()))
    }

    /// Restores a distribution from its [`histogram`](Self::histogram) and its [`latency`](Self::latency).
    ///
    /// Returns `None` if the histogram was omitted.
    pub fn restored(histogram: &Histogram, exact: &Latency) -> Option<Self> {
        let counts = histogram.counts()?;
        let mut all = Self::new();
        // Histograms of other programs may have a larger range.
        for it in counts.iter_recorded() {
            all.histogram.saturating_record_n(it.value_iterated_to(), it.count_since_last_iteration());
        }
        let sum_ns = (exact.mean * counts.len() as f64).round() as u128;
        (all.min_ns, all.max_ns, all.sum_ns) = (exact.min, exact.max, sum_ns);
        Some(all)
    }

    /// Returns the counts.
    pub fn histogram(&self) -> Histogram {
        Histogram::of(&self.histogram)
    }

    /// Returns the counts with two significant digits, in an eighth of the space.
    pub fn coarse_histogram(&self) -> Histogram {
        let mut coarse = Counts::new_with_bounds(1, LATENCY_NS_MAX, COARSE_DIGITS)
            .expect("the bounds are valid constants");
        coarse.add(&self.histogram).expect("both have the same bounds");
        Histogram::of(&coarse)
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

/// Merges distributions, given as histograms with their exact values.
///
/// Returns `None` if a histogram was omitted or nothing has been recorded.
pub fn merged<'d>(distributions: impl IntoIterator<Item = (&'d Histogram, Latency)>) -> Option<Latency> {
    let mut all = Distribution::new();
    for (histogram, latency) in distributions {
        all.merge(&Distribution::restored(histogram, &latency)?);
    }
    all.latency()
}

/// Returns how many latencies of several histograms exceed `ns`, to three digits.
///
/// Returns `None` if a histogram was omitted.
pub fn longer_than<'d>(ns: u64, histograms: impl IntoIterator<Item = &'d Histogram>) -> Option<u64> {
    let mut count = 0;
    for histogram in histograms {
        let counts = histogram.counts()?;
        // Times that are equal to three digits share a bucket.
        let longer = counts.highest_equivalent(ns).saturating_add(1);
        count += counts.count_between(longer, LATENCY_NS_MAX);
    }
    Some(count)
}

/// Summary of a latency distribution, in ns. Percentiles come from an HDR histogram with 3 significant digits. `min`,
/// `mean` and `max` are exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Shortest latency.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 95th percentile. `None` in results of earlier versions and of drivers that do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// 99.99th percentile.
    pub p99_99: u64,
    /// Longest latency.
    pub max: u64,
}

impl Latency {
    /// Returns the figure of this name: `min`, `mean`, `p50` to `p99.99` or `max`. `None` if it is not known.
    pub fn named(self, name: &str) -> Option<f64> {
        Some(match name {
            "min" => self.min as f64,
            "mean" => self.mean,
            "p50" => self.p50 as f64,
            "p90" => self.p90 as f64,
            "p95" => self.p95? as f64,
            "p99" => self.p99 as f64,
            "p99.9" => self.p99_9 as f64,
            "p99.99" => self.p99_99 as f64,
            "max" => self.max as f64,
            _ => return None,
        })
    }

    /// Returns the larger of each value, but the smaller minimum. The result bounds both distributions together.
    pub fn worse(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            mean: self.mean.max(other.mean),
            p50: self.p50.max(other.p50),
            p90: self.p90.max(other.p90),
            p95: self.p95.max(other.p95),
            p99: self.p99.max(other.p99),
            p99_9: self.p99_9.max(other.p99_9),
            p99_99: self.p99_99.max(other.p99_99),
            max: self.max.max(other.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_latencies_are_returned_with_counts() {
        let mut some = Distribution::new();
        for ns in [7, 3, 3, 1_000_001] {
            some.record(ns);
        }
        // The last value is the maximum, which limits its bucket.
        assert_eq!(some.recorded().collect::<Vec<_>>(), [(3, 2), (7, 1), (1_000_001, 1)]);
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|share| some.value_at(share)), [3, 3, 7, 1_000_001]);
        assert_eq!((Distribution::new().value_at(0.5), Distribution::new().recorded().count()), (0, 0));
    }

    #[test]
    fn percentiles_are_right_to_three_digits_and_bounds_exact() {
        let mut distribution = Distribution::new();
        for latency_ns in (1..=100_000).map(|n| n * 977) {
            distribution.record(latency_ns);
        }
        let latency = distribution.latency().unwrap();
        assert_eq!((latency.min, latency.max), (977, 97_700_000));
        assert!((latency.mean - 977.0 * 50_000.5).abs() < 1e-3);
        for (found, exact) in [
            (latency.p50, 48_850_000.0),
            (latency.p90, 87_930_000.0),
            (latency.p99, 96_723_000.0),
            (latency.p99_9, 97_602_300.0),
            (latency.p99_99, 97_690_230.0),
        ] {
            assert!((found as f64 / exact - 1.0).abs() <= 1e-3, "{found} is not {exact}");
        }
    }

    #[test]
    fn more_than_an_hour_counts_as_an_hour_but_the_maximum_is_kept() {
        let mut distribution = Distribution::new();
        distribution.record(2 * LATENCY_NS_MAX);
        assert_eq!(distribution.latency().unwrap().max, 2 * LATENCY_NS_MAX);
        assert_eq!(distribution.len(), 1);
    }

    #[test]
    fn percentile_95_is_recorded_and_missing_in_older_results() {
        let mut all = Distribution::new();
        (1..=100).for_each(|ns| all.record(ns));
        let latency = all.latency().unwrap();
        assert_eq!(latency.p95, Some(95));
        let mut written = serde_json::to_value(latency).unwrap();
        assert_eq!(written["p95"], 95);
        written.as_object_mut().unwrap().remove("p95");
        let read: Latency = serde_json::from_value(written).unwrap();
        assert_eq!(read, Latency { p95: None, ..latency });
    }

    #[test]
    fn merged_distributions_equal_one_of_all_latencies() {
        let (mut one, mut other, mut both) = (Distribution::new(), Distribution::new(), Distribution::new());
        for took_ns in 1..=1000 {
            if took_ns % 3 == 0 {
                one.record_many(took_ns, 1);
            } else {
                other.record_many(took_ns, 1);
            }
            both.record_many(took_ns, 1);
        }
        let parts = [&one, &other].map(|part| (part.histogram(), part.latency().unwrap()));
        let merged = merged(parts.iter().map(|(histogram, latency)| (histogram, *latency))).unwrap();
        let expected = both.latency().unwrap();
        assert_eq!(merged, expected);
        // The sum is restored from the mean, exact to the nanosecond.
        for sum_ns in 1_000_000..1_001_000 {
            let mut long = Distribution::new();
            long.record_many(1, 1500);
            long.record_many(sum_ns, 1);
            let latency = long.latency().unwrap();
            let restored = Distribution::restored(&long.histogram(), &latency).unwrap();
            assert_eq!((restored.sum_ns, restored.latency()), (long.sum_ns, Some(latency)));
        }
        let longer = |ns| longer_than(ns, parts.iter().map(|part| &part.0));
        assert_eq!([0, 1, 900, 1000].map(longer), [1000, 999, 100, 0].map(Some));
        let left_out = Histogram::default();
        assert_eq!(longer_than(0, [&left_out]), None);
        assert!(super::merged([(&left_out, expected)]).is_none());
        assert!(super::merged([]).is_none());
    }
}
