//! Histograms with logarithmic bars.

use thalweg_measure::distribution::{Distribution, Latency};

/// Returns the upper edge of each bar in ns and the number of times in it. Bars divide the range from the shortest to
/// the longest time evenly on a logarithmic scale.
pub(crate) fn bars(distribution: &Distribution, exact: &Latency, count: usize) -> Vec<(u64, u64)> {
    let (low, high) = (exact.min.max(1) as f64, exact.max.max(2) as f64);
    let edge = |index: usize| (low * (high / low).powf(index as f64 / count as f64)) as u64;
    let mut bars = Vec::new();
    let mut below = 0;
    for index in 1..=count {
        let to = if index == count { exact.max } else { edge(index) };
        let upto = distribution.count_up_to(to);
        bars.push((to, upto.saturating_sub(below)));
        below = upto.max(below);
    }
    bars
}
