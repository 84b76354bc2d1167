//! Finds outliers among the outcomes of an interval (gRFC A50).

#[cfg(test)]
mod tests;

use super::{FailurePercentageEjection, SuccessRateEjection};
use crate::policy::Outcomes;

/// Returns the positions of endpoints whose rate of successes is far below the mean.
pub(super) fn by_success_rate(algorithm: &SuccessRateEjection, calls: &[Outcomes]) -> Vec<usize> {
    let rate = |at: usize| calls[at].succeeded as f64 / total(calls[at]) as f64;
    let mut considered = with_volume(calls, algorithm.request_volume, algorithm.minimum_hosts);
    let count = considered.len() as f64;
    let mean = considered.iter().map(|&at| rate(at)).sum::<f64>() / count;
    let variance = considered.iter().map(|&at| (rate(at) - mean).powi(2)).sum::<f64>() / count;
    let required = mean - variance.sqrt() * f64::from(algorithm.stdev_factor) / 1000.0;
    considered.retain(|&at| rate(at) < required);
    considered
}

/// Returns the positions of endpoints that failed more than a percentage of their calls.
pub(super) fn by_failures(algorithm: &FailurePercentageEjection, calls: &[Outcomes]) -> Vec<usize> {
    let mut considered = with_volume(calls, algorithm.request_volume, algorithm.minimum_hosts);
    considered.retain(|&at| {
        let threshold = u128::from(algorithm.threshold) * u128::from(total(calls[at]));
        u128::from(calls[at].failed) * 100 > threshold
    });
    considered
}

/// Returns the positions of endpoints with enough calls; none if there are fewer than `minimum_hosts`.
fn with_volume(calls: &[Outcomes], request_volume: u32, minimum_hosts: u32) -> Vec<usize> {
    let volume = u64::from(request_volume.max(1));
    let considered: Vec<usize> = (0..calls.len()).filter(|&at| total(calls[at]) >= volume).collect();
    if considered.len() < minimum_hosts as usize { Vec::new() } else { considered }
}

fn total(calls: Outcomes) -> u64 {
    calls.succeeded.saturating_add(calls.failed)
}
