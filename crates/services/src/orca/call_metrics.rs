//! API of load reports for handlers: [`CallMetrics`].

use thalweg::Request;

use super::measurements::{SharedMeasurements, is_fraction, is_positive, set, set_named};
use super::setters::setters;

/// Measurements of one call, which take precedence over the server's: in the extensions of its request. Clones share
/// them. Methods do not block; `None` removes a value.
#[derive(Clone, Debug, Default)]
pub struct CallMetrics(pub(super) SharedMeasurements);

impl CallMetrics {
    /// Returns the recorder of a request's call. Without the interceptor of
    /// [`ServerMetrics::per_call`](super::ServerMetrics::per_call), its measurements are discarded.
    pub fn of<T>(request: &Request<T>) -> Self {
        request.extensions().get().cloned().unwrap_or_default()
    }

    /// Sets what the call has cost, by a name of the application.
    pub fn set_request_cost(&self, name: impl Into<String>, value: impl Into<Option<f64>>) {
        set_named(&mut self.0.lock().request_cost, name.into(), value.into(), f64::is_finite);
    }

    setters!();
}
