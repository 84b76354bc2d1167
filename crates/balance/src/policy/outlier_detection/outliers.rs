//! Finds outliers among the outcomes of an interval (gRFC A50).

#[cfg(test)]
mod tests;

use crate::policy::Outcomes;

/// Ejects endpoints whose success rate is far below the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuccessRateEjection {
    /// Distance from the mean, in thousandths of the standard deviation; 1900 by default.
    pub stdev_factor: u32,
    /// Percentage of such endpoints that are ejected; 100 by default.
    pub enforcement_percentage: u32,
    /// Minimum number of endpoints with enough calls; 5 by default.
    pub minimum_hosts: u32,
    /// Minimum number of calls of an endpoint in an interval; 100 by default.
    pub request_volume: u32,
}

/// Ejects endpoints that fail more than a percentage of their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailurePercentageEjection {
    /// Percentage of failed calls above which an endpoint is ejected; 85 by default.
    pub threshold: u32,
    /// Percentage of such endpoints that are ejected; 100 by default.
    pub enforcement_percentage: u32,
    /// Minimum number of endpoints with enough calls; 5 by default.
    pub minimum_hosts: u32,
    /// Minimum number of calls of an endpoint in an interval; 50 by default.
    pub request_volume: u32,
}

/// Returns the positions of endpoints whose success rate is far below the mean.
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

/// Setters that both algorithms have.
macro_rules! common_setters {
    ($($algorithm:ty),*) => { $(
        impl $algorithm {
            /// Sets the percentage of outliers that are ejected.
            pub fn enforcement_percentage(mut self, percent: u32) -> Self {
                self.enforcement_percentage = percent.min(100);
                self
            }

            /// Sets the minimum number of endpoints with enough calls.
            pub fn minimum_hosts(mut self, endpoints: u32) -> Self {
                self.minimum_hosts = endpoints;
                self
            }

            /// Sets the minimum number of calls of an endpoint in an interval.
            pub fn request_volume(mut self, calls: u32) -> Self {
                self.request_volume = calls;
                self
            }
        }
    )* };
}

common_setters!(SuccessRateEjection, FailurePercentageEjection);

impl SuccessRateEjection {
    /// Sets the distance from the mean, in thousandths of the standard deviation.
    pub fn stdev_factor(mut self, thousandths: u32) -> Self {
        self.stdev_factor = thousandths;
        self
    }
}

impl Default for SuccessRateEjection {
    fn default() -> Self {
        Self { stdev_factor: 1900, enforcement_percentage: 100, minimum_hosts: 5, request_volume: 100 }
    }
}

impl FailurePercentageEjection {
    /// Sets the percentage of failed calls above which an endpoint is ejected.
    pub fn threshold(mut self, percent: u32) -> Self {
        self.threshold = percent.min(100);
        self
    }
}

impl Default for FailurePercentageEjection {
    fn default() -> Self {
        Self { threshold: 85, enforcement_percentage: 100, minimum_hosts: 5, request_volume: 50 }
    }
}
