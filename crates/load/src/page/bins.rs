//! Bins of logarithmic width for durations.

use thalweg_measure::distribution::Distribution;

/// Shorter times count as this long, in ns. Calls over a socket take longer; only waits can be shorter.
const SHORTEST_NS: u64 = 1000;

/// Bin `n` goes from `10^(n / per_decade)` to `10^((n + 1) / per_decade)` ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bins {
    pub(super) per_decade: u32,
    pub(super) first: u32,
    pub(super) count: usize,
}

impl Bins {
    /// Returns bins that cover these times.
    pub(super) fn between(shortest_ns: u64, longest_ns: u64, per_decade: u32) -> Self {
        let mut bins = Self { per_decade, first: 0, count: usize::MAX };
        bins.first = bins.index(shortest_ns) as u32;
        bins.count = bins.index(longest_ns) + 1;
        bins
    }

    /// Returns the number of recorded times in each bin.
    pub(super) fn counts(self, distribution: &Distribution) -> Vec<u64> {
        let mut counts = vec![0; self.count];
        for (ns, count) in distribution.recorded() {
            counts[self.index(ns)] += count;
        }
        counts
    }

    /// Returns the bin of a time. Times outside fall into the first or last bin.
    fn index(self, ns: u64) -> usize {
        let place = (ns.max(SHORTEST_NS) as f64).log10() * f64::from(self.per_decade);
        // The logarithm of 10^3 may be slightly below 3.
        let index = (place + 1e-9) as usize;
        index.saturating_sub(self.first as usize).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_bins_by_their_logarithm() {
        let bins = Bins::between(1_000_000, 99_999_999, 2);
        assert_eq!(bins, Bins { per_decade: 2, first: 12, count: 4 });
        let mut some = Distribution::new();
        for ns in [1_000_000, 3_100_000, 3_200_000, 10_000_000, 99_000_000] {
            some.record(ns);
        }
        assert_eq!(bins.counts(&some), [2, 1, 1, 1]);
    }

    #[test]
    fn out_of_range_times_fall_into_edge_bins() {
        let bins = Bins::between(0, 10_000, 1);
        assert_eq!(bins, Bins { per_decade: 1, first: 3, count: 2 });
        let mut some = Distribution::new();
        for ns in [0, 1, 999, 1_000_000_000] {
            some.record(ns);
        }
        assert_eq!(bins.counts(&some), [3, 1]);
    }
}
