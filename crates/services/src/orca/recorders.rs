//! API of load reports for programs: [`ServerMetrics`] and [`CallMetrics`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg::Request;

use super::measurements::{Measurements, is_fraction, is_positive, set, set_named};
use super::per_call::PerCallReports;
use super::service::OrcaService;

/// Measurements of a server. Clones share them. Methods do not block; `None` removes a value.
#[derive(Clone, Debug, Default)]
pub struct ServerMetrics(Arc<Mutex<Measurements>>);

/// Measurements of one call, which take precedence over the server's: in the extensions of its request. Clones share
/// them. Methods do not block; `None` removes a value.
#[derive(Clone, Debug, Default)]
pub struct CallMetrics(Arc<Mutex<Measurements>>);

/// Declares the setters that both recorders have.
macro_rules! setters {
    () => {
        /// Sets the fraction of the CPU in use; more than 1 beyond a soft limit.
        pub fn set_cpu_utilization(&self, value: impl Into<Option<f64>>) {
            set(&mut self.lock().cpu_utilization, value.into(), is_positive);
        }

        /// Sets the fraction of the memory in use.
        pub fn set_memory_utilization(&self, value: impl Into<Option<f64>>) {
            set(&mut self.lock().memory_utilization, value.into(), is_fraction);
        }

        /// Sets the utilization as the application defines it, which clients use in place of the CPU's; more than 1
        /// beyond a soft limit.
        pub fn set_application_utilization(&self, value: impl Into<Option<f64>>) {
            set(&mut self.lock().application_utilization, value.into(), is_positive);
        }

        /// Sets the queries per second of the whole server.
        pub fn set_qps(&self, value: impl Into<Option<f64>>) {
            set(&mut self.lock().qps, value.into(), is_positive);
        }

        /// Sets the errors per second of the whole server.
        pub fn set_eps(&self, value: impl Into<Option<f64>>) {
            set(&mut self.lock().eps, value.into(), is_positive);
        }

        /// Sets the fraction of another resource in use.
        pub fn set_utilization(&self, name: impl Into<String>, value: impl Into<Option<f64>>) {
            set_named(&mut self.lock().utilization, name.into(), value.into(), is_fraction);
        }

        /// Sets a measurement that only the application knows.
        pub fn set_named_metric(&self, name: impl Into<String>, value: impl Into<Option<f64>>) {
            set_named(&mut self.lock().named_metrics, name.into(), value.into(), f64::is_finite);
        }

        /// Returns a copy of the measurements.
        pub(super) fn measurements(&self) -> Measurements {
            self.lock().clone()
        }

        fn lock(&self) -> MutexGuard<'_, Measurements> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    };
}

impl ServerMetrics {
    /// Creates an empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an interceptor for [`ServerBuilder::interceptor`](thalweg::server::ServerBuilder::interceptor), which
    /// adds a report to the trailers of each call, unless nothing was measured.
    pub fn per_call(&self) -> PerCallReports {
        PerCallReports::new(self.clone())
    }

    /// Returns the service that reports out of band, for
    /// [`ServerBuilder::add_service`](thalweg::server::ServerBuilder::add_service).
    pub fn service(&self) -> OrcaService {
        OrcaService::new(self.clone())
    }

    setters!();
}

impl CallMetrics {
    /// Returns the recorder of a request's call. Without the interceptor of [`ServerMetrics::per_call`], its
    /// measurements are discarded.
    pub fn of<T>(request: &Request<T>) -> Self {
        request.extensions().get().cloned().unwrap_or_default()
    }

    /// Sets what the call has cost, by a name of the application.
    pub fn set_request_cost(&self, name: impl Into<String>, value: impl Into<Option<f64>>) {
        set_named(&mut self.lock().request_cost, name.into(), value.into(), f64::is_finite);
    }

    setters!();
}
