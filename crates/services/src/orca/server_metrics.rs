//! API of load reports for programs: [`ServerMetrics`].

use super::measurements::{SharedMeasurements, is_fraction, is_positive, set, set_named};
use super::per_call::PerCallReports;
use super::service::OrcaService;
use super::setters::setters;

/// Measurements of a server. Clones share them. Methods do not block; `None` removes a value.
#[derive(Clone, Debug, Default)]
pub struct ServerMetrics(SharedMeasurements);

impl ServerMetrics {
    /// Creates an empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an interceptor for [`ServerBuilder::interceptor`](thalweg::server::ServerBuilder::interceptor), which
    /// adds a report to the trailers of each call, unless nothing was measured.
    pub fn per_call(&self) -> PerCallReports {
        PerCallReports::new(self.0.clone())
    }

    /// Returns the service that reports out of band, for
    /// [`ServerBuilder::add_service`](thalweg::server::ServerBuilder::add_service).
    pub fn service(&self) -> OrcaService {
        OrcaService::new(self.0.clone())
    }

    setters!();
}
