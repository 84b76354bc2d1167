//! Measurements of a server or a call: [`Measurements`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pb::OrcaLoadReport;

/// Measurements; `None` and absent where nothing was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measurements {
    pub(super) cpu_utilization: Option<f64>,
    pub(super) memory_utilization: Option<f64>,
    pub(super) application_utilization: Option<f64>,
    pub(super) qps: Option<f64>,
    pub(super) eps: Option<f64>,
    pub(super) utilization: BTreeMap<String, f64>,
    pub(super) named_metrics: BTreeMap<String, f64>,
    pub(super) request_cost: BTreeMap<String, f64>,
}

/// Measurements that several parts of a program set and read.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedMeasurements(Arc<Mutex<Measurements>>);

impl SharedMeasurements {
    pub(super) fn lock(&self) -> MutexGuard<'_, Measurements> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a copy of the measurements.
    pub(super) fn get(&self) -> Measurements {
        self.lock().clone()
    }
}

/// Sets or removes a value; one out of range is ignored.
pub(super) fn set(field: &mut Option<f64>, value: Option<f64>, is_valid: fn(f64) -> bool) {
    if value.is_none_or(is_valid) {
        *field = value;
    }
}

/// Like [`set`], for a value with a name.
pub(super) fn set_named(
    map: &mut BTreeMap<String, f64>,
    name: String,
    value: Option<f64>,
    is_valid: fn(f64) -> bool,
) {
    match value {
        None => drop(map.remove(&name)),
        Some(value) if is_valid(value) => drop(map.insert(name, value)),
        Some(_) => {}
    }
}

/// Returns whether a value is a rate, or a utilization that may exceed a soft limit.
pub(super) fn is_positive(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// Returns whether a value is a fraction.
pub(super) fn is_fraction(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

impl Measurements {
    /// Returns these measurements, with `over` in place of equal ones.
    pub(super) fn overridden_by(mut self, over: Self) -> Self {
        self.utilization.extend(over.utilization);
        self.named_metrics.extend(over.named_metrics);
        self.request_cost.extend(over.request_cost);
        Self {
            cpu_utilization: over.cpu_utilization.or(self.cpu_utilization),
            memory_utilization: over.memory_utilization.or(self.memory_utilization),
            application_utilization: over.application_utilization.or(self.application_utilization),
            qps: over.qps.or(self.qps),
            eps: over.eps.or(self.eps),
            ..self
        }
    }

    pub(super) fn into_report(self) -> OrcaLoadReport {
        OrcaLoadReport {
            cpu_utilization: self.cpu_utilization.unwrap_or_default(),
            mem_utilization: self.memory_utilization.unwrap_or_default(),
            application_utilization: self.application_utilization.unwrap_or_default(),
            rps_fractional: self.qps.unwrap_or_default(),
            eps: self.eps.unwrap_or_default(),
            utilization: self.utilization.into_iter().collect(),
            named_metrics: self.named_metrics.into_iter().collect(),
            request_cost: self.request_cost.into_iter().collect(),
            ..OrcaLoadReport::default()
        }
    }
}
