//! Means, medians, and ratios with confidence intervals.

mod bonferroni;
mod bootstrap;
mod students_t;
mod welch;

pub use bootstrap::PAIRS_MIN;
pub use bootstrap::{Interval, Ratio};
pub use welch::{Estimate, unpaired_ratio};

/// Returns the geometric mean of the values above zero, or 0 if there are none.
pub fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.filter(|&value| value > 0.0).map(f64::ln).collect();
    if logs.is_empty() { 0.0 } else { (logs.iter().sum::<f64>() / logs.len() as f64).exp() }
}

/// Returns the median, which is the mean of the two middle values if their number is even. `None` if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], upper) } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_geometric_mean_handle_empty_input() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert!(geometric_mean([].into_iter()).abs() < 1e-12);
        assert!((geometric_mean([1.0, 4.0].into_iter()) - 2.0).abs() < 1e-12);
    }
}
