//! Settings of `outlier_detection`.

use std::time::Duration;

use crate::policy::PolicyConfig;

/// Settings of `outlier_detection`. It counts calls only if at least one algorithm is set; none is by default.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutlierDetectionConfig {
    /// Interval at which endpoints are compared, ejected and returned: at least 1 ms, 10 s by default.
    pub interval: Duration,
    /// Time of an endpoint's first ejection; the nth in a row takes n times as long. 30 s by default.
    pub base_ejection_time: Duration,
    /// Maximum time of an ejection; 300 s by default. If `base_ejection_time` is more, that counts.
    pub max_ejection_time: Duration,
    /// Percentage of ejected endpoints at which no more are ejected; 10 by default.
    pub max_ejection_percent: u32,
    /// Ejection of endpoints whose rate of successes is an outlier among all.
    pub success_rate_ejection: Option<SuccessRateEjection>,
    /// Ejection of endpoints that fail too many calls, whatever the others do.
    pub failure_percentage_ejection: Option<FailurePercentageEjection>,
    /// Policy that balances over the endpoints.
    pub child_policy: Box<PolicyConfig>,
}

/// Ejects endpoints whose rate of successes is far below the mean of all.
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

impl OutlierDetectionConfig {
    /// Creates settings without an algorithm, around the policy `child`.
    pub fn new(child: PolicyConfig) -> Self {
        Self {
            interval: Duration::from_secs(10),
            base_ejection_time: Duration::from_secs(30),
            max_ejection_time: Duration::from_secs(300),
            max_ejection_percent: 10,
            success_rate_ejection: None,
            failure_percentage_ejection: None,
            child_policy: Box::new(child),
        }
    }

    /// Sets the interval at which endpoints are compared; less than 1 ms counts as 1 ms.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(INTERVAL_MIN);
        self
    }

    /// Sets the time of an endpoint's first ejection.
    pub fn base_ejection_time(mut self, time: Duration) -> Self {
        self.base_ejection_time = time;
        self
    }

    /// Sets the maximum time of an ejection.
    pub fn max_ejection_time(mut self, time: Duration) -> Self {
        self.max_ejection_time = time;
        self
    }

    /// Sets the percentage of ejected endpoints at which no more are ejected.
    pub fn max_ejection_percent(mut self, percent: u32) -> Self {
        self.max_ejection_percent = percent.min(100);
        self
    }

    /// Turns on ejection by the rate of successes.
    pub fn success_rate_ejection(mut self, ejection: SuccessRateEjection) -> Self {
        self.success_rate_ejection = Some(ejection);
        self
    }

    /// Turns on ejection by the percentage of failures.
    pub fn failure_percentage_ejection(mut self, ejection: FailurePercentageEjection) -> Self {
        self.failure_percentage_ejection = Some(ejection);
        self
    }
}

/// Shorter intervals would wake the channel in a loop.
pub(super) const INTERVAL_MIN: Duration = Duration::from_millis(1);

impl SuccessRateEjection {
    /// Sets the distance from the mean, in thousandths of the standard deviation.
    pub fn stdev_factor(mut self, thousandths: u32) -> Self {
        self.stdev_factor = thousandths;
        self
    }

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

    /// Sets the percentage of such endpoints that are ejected.
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

impl Default for FailurePercentageEjection {
    fn default() -> Self {
        Self { threshold: 85, enforcement_percentage: 100, minimum_hosts: 5, request_volume: 50 }
    }
}
