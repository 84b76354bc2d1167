//! `weighted_round_robin`: calls go to the ready endpoints in proportion to weights from load reports (gRFC A58).

mod stride;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::stride::Stride;
use super::per_endpoint::PerEndpoint;
use super::round_robin::InTurn;
use super::{Decision, EndpointView, EndpointWeight, LoadReport, Needs, Policy, ReportSource};
use crate::endpoint::ConnectivityState;

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

/// Connects all endpoints, and sends calls to the ready ones in proportion to their weights.
///
/// Endpoints without a usable weight count as average. With fewer than two usable weights, calls go in turn.
#[derive(Debug)]
pub struct WeightedRoundRobin {
    config: WeightedRoundRobinConfig,
    loads: PerEndpoint<Load>,
    /// Time of the next calculation of weights.
    update_at: Option<Instant>,
}

/// Load of an endpoint, as it reported it.
#[derive(Debug)]
struct Load {
    ready: bool,
    /// Weight by the last report that was not empty.
    weight: f64,
    /// Time of this report.
    reported_at: Option<Instant>,
    /// Time of the first such report since the endpoint connected or its weight expired.
    reports_since: Option<Instant>,
    /// Weight in use until the next calculation.
    in_use: EndpointWeight,
}

impl Default for Load {
    fn default() -> Self {
        let in_use = EndpointWeight::NotYetUsable;
        Self { ready: false, weight: 0.0, reported_at: None, reports_since: None, in_use }
    }
}

impl WeightedRoundRobin {
    /// Creates the policy.
    pub fn new(config: WeightedRoundRobinConfig) -> Self {
        Self { config, loads: PerEndpoint::default(), update_at: None }
    }
}

impl Policy for WeightedRoundRobin {
    fn name(&self) -> &'static str {
        "weighted_round_robin"
    }

    fn reconfigure(&mut self, settings: &dyn Any) -> bool {
        let Some(config) = settings.downcast_ref::<WeightedRoundRobinConfig>() else { return false };
        (self.config, self.update_at) = (config.clone(), None);
        true
    }

    fn needs(&self) -> Needs {
        let source = if self.config.enable_oob_load_report {
            ReportSource::OutOfBand(self.config.oob_reporting_period)
        } else {
            ReportSource::PerCall
        };
        Needs { reports: Some(source), ..Needs::default() }
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        let loads = self.loads.align(endpoints, |_| Load::default());
        let due = self.update_at.is_none_or(|at| now >= at);
        for (load, view) in loads.iter_mut().zip(endpoints) {
            load.observe(view, self.config.error_utilization_penalty);
            if due {
                load.in_use = load.weight_at(&self.config, now);
            }
        }
        if due {
            self.update_at = now.checked_add(self.config.weight_update_period.max(WEIGHT_UPDATE_PERIOD_MIN));
        }
        let mut decision = Decision::connecting_all(endpoints, |ready| {
            let weights: Vec<Option<f64>> = ready.iter().map(|&at| loads[at].in_use.usable()).collect();
            match Stride::new(&ready, &weights) {
                Some(stride) => Arc::new(stride),
                None => Arc::new(InTurn(ready)),
            }
        });
        // Without a ready endpoint there is nothing to weigh until a state changes.
        if decision.state == ConnectivityState::Ready {
            decision.wake_at = self.update_at;
        }
        if due {
            let in_use = loads.iter().enumerate().filter(|(_, load)| load.ready);
            decision.weights = in_use.map(|(at, load)| (at, load.in_use)).collect();
        }
        decision
    }
}

impl Load {
    /// Takes in an endpoint's state and its last report.
    fn observe(&mut self, view: &EndpointView<'_>, penalty: f64) {
        let ready = view.state == ConnectivityState::Ready;
        if ready && !self.ready {
            self.reports_since = None;
            self.in_use = EndpointWeight::NotYetUsable;
        }
        self.ready = ready;
        if let Some(report) = view.report
            && self.reported_at.is_none_or(|last| report.received_at > last)
            && let Some(weight) = weight(report, penalty)
        {
            self.weight = weight;
            self.reported_at = Some(report.received_at);
            self.reports_since.get_or_insert(report.received_at);
        }
    }

    /// Returns the weight unless it has expired, or reports have come for too short a time.
    fn weight_at(&mut self, config: &WeightedRoundRobinConfig, now: Instant) -> EndpointWeight {
        let Some(reported_at) = self.reported_at else { return EndpointWeight::NotYetUsable };
        if now.saturating_duration_since(reported_at) >= config.weight_expiration_period {
            self.reports_since = None;
            return EndpointWeight::Stale;
        }
        let reporting = self.reports_since.map(|since| now.saturating_duration_since(since));
        let blackout = config.blackout_period;
        if blackout.is_zero() || reporting.is_some_and(|time| time >= blackout) {
            EndpointWeight::Usable(self.weight)
        } else {
            EndpointWeight::NotYetUsable
        }
    }
}

/// Returns the weight derived from a report: queries per second and utilization, errors included. `None` if the report
/// is empty.
fn weight(report: &LoadReport, penalty: f64) -> Option<f64> {
    let application = report.application_utilization;
    let utilization = if application > 0.0 { application } else { report.cpu_utilization };
    if !(utilization > 0.0 && report.qps > 0.0) {
        return None;
    }
    let weight = report.qps / (utilization + report.eps / report.qps * penalty);
    // Peers may report infinities, NaN and negative errors.
    (weight.is_finite() && weight > 0.0).then_some(weight)
}
