//! `outlier_detection`: endpoints that fail more calls than others take none for a while (gRFC A50).

mod outliers;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::time::{Duration, Instant};

pub use self::outliers::{FailurePercentageEjection, SuccessRateEjection};
use super::config::{INTERVAL_MIN, OutlierDetectionConfig};
use super::per_endpoint::PerEndpoint;
use super::{Decision, EndpointView, GracefulSwitch, Needs, Outcomes, Policy, mix};
use crate::endpoint::{ConnectivityState, Endpoint};

/// Wraps a policy, and shows it endpoints that fail too many calls as failed for a while.
///
/// An ejected endpoint keeps its connection. A lone endpoint is never ejected, `pick_first`'s included (gRFC A61).
#[derive(Debug)]
pub struct OutlierDetection {
    config: OutlierDetectionConfig,
    child: GracefulSwitch,
    records: PerEndpoint<Record>,
    /// Start of the current interval.
    interval_start: Option<Instant>,
    /// State of the random choices that `enforcement_percentage` asks for.
    random: u64,
}

/// Record of an endpoint.
#[derive(Debug)]
struct Record {
    /// Its outcomes at the start of the interval.
    counted: Outcomes,
    /// Time of the ejection, if it is ejected.
    ejected_at: Option<Instant>,
    /// Factor of the ejection time: grows with each ejection, and shrinks with each interval without one.
    multiplier: u32,
}

impl OutlierDetection {
    /// Creates the policy. The seed determines which outliers are spared.
    pub fn new(config: OutlierDetectionConfig, seed: u64) -> Self {
        let child = GracefulSwitch::new((*config.child_policy).clone(), mix(seed));
        Self { config, child, records: PerEndpoint::default(), interval_start: None, random: seed }
    }

    fn is_enabled(&self) -> bool {
        self.config.success_rate_ejection.is_some() || self.config.failure_percentage_ejection.is_some()
    }
}

impl Policy for OutlierDetection {
    fn name(&self) -> &'static str {
        "outlier_detection_experimental"
    }

    /// Ejected endpoints stay ejected, unless no algorithm is left.
    fn reconfigure(&mut self, settings: &dyn Any) -> bool {
        let Some(config) = settings.downcast_ref::<OutlierDetectionConfig>() else { return false };
        self.child.update(&config.child_policy);
        self.config = config.clone();
        if !self.is_enabled() {
            (self.records, self.interval_start) = (PerEndpoint::default(), None);
        }
        true
    }

    fn select(&mut self, resolved: Vec<Endpoint>) -> Vec<Endpoint> {
        self.child.select(resolved)
    }

    fn needs(&self) -> Needs {
        let needs = self.child.needs();
        Needs { outcomes: needs.outcomes || self.is_enabled(), ..needs }
    }

    fn checks_health(&self) -> bool {
        self.child.checks_health()
    }

    fn hash_header(&self) -> Option<&str> {
        self.child.hash_header()
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        if !self.is_enabled() {
            return self.child.decide(endpoints, now);
        }
        let records = self.records.align(endpoints, Record::new);
        let interval = self.config.interval.max(INTERVAL_MIN);
        let start = self.interval_start.get_or_insert(now);
        if now.saturating_duration_since(*start) >= interval {
            *start = now;
            Sweep { config: &self.config, records, random: &mut self.random, now }.run(endpoints);
        }
        let sweep_at = start.checked_add(interval);
        let is_ejected = |&at: &usize| records[at].ejected_at.is_some();
        let ejected: Vec<usize> = (0..endpoints.len()).filter(is_ejected).collect();
        let error = |&at: &usize| format!("{}: ejected by outlier detection", endpoints[at].endpoint.name());
        let errors: Vec<String> = ejected.iter().map(error).collect();
        let mut views = endpoints.to_vec();
        for (&at, error) in ejected.iter().zip(&errors) {
            (views[at].state, views[at].connection) =
                (ConnectivityState::TransientFailure, ConnectivityState::TransientFailure);
            views[at].error = Some(error);
        }
        let mut decision = self.child.decide(&views, now);
        decision.wake_at = decision.wake_at.into_iter().chain(sweep_at).min();
        decision.ejected.extend(ejected);
        decision
    }
}

/// Comparison of all endpoints at the end of an interval.
struct Sweep<'a> {
    config: &'a OutlierDetectionConfig,
    records: &'a mut [Record],
    random: &'a mut u64,
    now: Instant,
}

impl Sweep<'_> {
    fn run(mut self, endpoints: &[EndpointView<'_>]) {
        let counted = self.records.iter_mut().zip(endpoints);
        let calls: Vec<Outcomes> = counted.map(|(record, view)| record.take(view.outcomes)).collect();
        if let Some(algorithm) = &self.config.success_rate_ejection {
            self.eject(&outliers::by_success_rate(algorithm, &calls), algorithm.enforcement_percentage);
        }
        if let Some(algorithm) = &self.config.failure_percentage_ejection {
            self.eject(&outliers::by_failures(algorithm, &calls), algorithm.enforcement_percentage);
        }
        let time_max = self.config.base_ejection_time.max(self.config.max_ejection_time);
        for record in self.records {
            record.age(self.config.base_ejection_time, time_max, self.now);
        }
    }

    /// Ejects the endpoints at these positions, as far as the limits allow.
    fn eject(&mut self, outliers: &[usize], enforcement_percentage: u32) {
        let all = self.records.len() as u64;
        if all < 2 {
            return;
        }
        let mut ejected = self.records.iter().filter(|record| record.ejected_at.is_some()).count() as u64;
        for &at in outliers {
            if ejected * 100 >= u64::from(self.config.max_ejection_percent) * all {
                return;
            }
            *self.random = mix(*self.random);
            let record = &mut self.records[at];
            if record.ejected_at.is_none() && *self.random % 100 < u64::from(enforcement_percentage) {
                record.ejected_at = Some(self.now);
                record.multiplier = record.multiplier.saturating_add(1);
                ejected += 1;
            }
        }
    }
}

impl Record {
    fn new(view: &EndpointView<'_>) -> Self {
        Self { counted: view.outcomes, ejected_at: None, multiplier: 0 }
    }

    /// Returns the outcomes of the interval, and starts the next one.
    fn take(&mut self, total: Outcomes) -> Outcomes {
        let counted = std::mem::replace(&mut self.counted, total);
        Outcomes {
            succeeded: total.succeeded.saturating_sub(counted.succeeded),
            failed: total.failed.saturating_sub(counted.failed),
        }
    }

    /// Returns the endpoint to service if its time is over, and forgets ejections of one that is in service.
    fn age(&mut self, base: Duration, time_max: Duration, now: Instant) {
        match self.ejected_at {
            None => self.multiplier = self.multiplier.saturating_sub(1),
            Some(at)
                if now.saturating_duration_since(at) > base.saturating_mul(self.multiplier).min(time_max) =>
            {
                self.ejected_at = None;
            }
            Some(_) => {}
        }
    }
}
