//! `weighted_round_robin`: calls go to the ready endpoints in proportion to weights from load reports (gRFC A58).

use std::time::Duration;

/// Settings of `weighted_round_robin`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WeightedRoundRobinConfig {
    /// Whether load reports come on a stream per endpoint rather than in the trailers of calls; off by default.
    pub enable_oob_load_report: bool,
    /// Interval of the reports on such a stream; 10 s by default.
    pub oob_reporting_period: Duration,
    /// Time for which an endpoint must have sent reports before its weight counts; 10 s by default.
    pub blackout_period: Duration,
    /// Age at which an endpoint's last report stops counting; 3 min by default.
    pub weight_expiration_period: Duration,
    /// Interval at which weights are recalculated: at least 100 ms, 1 s by default.
    pub weight_update_period: Duration,
    /// Factor by which the rate of errors per query raises the utilization; 1 by default, never negative.
    pub error_utilization_penalty: f64,
}

impl WeightedRoundRobinConfig {
    /// Sets whether load reports come on a stream per endpoint.
    pub fn enable_oob_load_report(mut self, enable: bool) -> Self {
        self.enable_oob_load_report = enable;
        self
    }

    /// Sets the interval of reports on a stream per endpoint.
    pub fn oob_reporting_period(mut self, period: Duration) -> Self {
        self.oob_reporting_period = period;
        self
    }

    /// Sets the time for which an endpoint must have sent reports before its weight counts.
    pub fn blackout_period(mut self, period: Duration) -> Self {
        self.blackout_period = period;
        self
    }

    /// Sets the age at which an endpoint's last report stops counting.
    pub fn weight_expiration_period(mut self, period: Duration) -> Self {
        self.weight_expiration_period = period;
        self
    }

    /// Sets the interval at which weights are recalculated; less than 100 ms counts as 100 ms.
    pub fn weight_update_period(mut self, period: Duration) -> Self {
        self.weight_update_period = period.max(WEIGHT_UPDATE_PERIOD_MIN);
        self
    }

    /// Sets the factor by which errors per query raise the utilization; less than 0 counts as 0.
    pub fn error_utilization_penalty(mut self, penalty: f64) -> Self {
        self.error_utilization_penalty = penalty.max(0.0);
        self
    }
}

impl Default for WeightedRoundRobinConfig {
    fn default() -> Self {
        Self {
            enable_oob_load_report: false,
            oob_reporting_period: Duration::from_secs(10),
            blackout_period: Duration::from_secs(10),
            weight_expiration_period: Duration::from_secs(3 * 60),
            weight_update_period: Duration::from_secs(1),
            error_utilization_penalty: 1.0,
        }
    }
}

const WEIGHT_UPDATE_PERIOD_MIN: Duration = Duration::from_millis(100);
