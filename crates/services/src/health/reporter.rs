//! API of the health service for programs: [`HealthReporter`].

use std::sync::Arc;

use thalweg::server::Service;
use tokio::sync::watch;

use super::service::HealthService;
use super::statuses::{ServingStatus, Statuses};

/// Holds the statuses of a server and its services. Clones share them. Methods do not block.
///
/// The whole server, named `""`, starts as [`Serving`](ServingStatus::Serving). Services are unknown until a status is
/// set.
#[derive(Clone, Debug, Default)]
pub struct HealthReporter {
    statuses: Arc<watch::Sender<Statuses>>,
}

impl HealthReporter {
    /// Creates a reporter with a serving server and no services.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the service to add to a server. Several servers may share a reporter; only their shutdown is separate.
    pub fn service(&self) -> HealthService {
        HealthService::new(Arc::clone(&self.statuses))
    }

    /// Sets the status of service `S` to serving.
    pub fn set_serving<S: Service>(&self) {
        self.set_service_status(S::NAME, ServingStatus::Serving);
    }

    /// Sets the status of service `S` to not serving.
    pub fn set_not_serving<S: Service>(&self) {
        self.set_service_status(S::NAME, ServingStatus::NotServing);
    }

    /// Sets the status of a service, `package.Service`, or of the whole server, `""`, and notifies watchers. If
    /// statuses change faster than a watcher reads, it gets the latest.
    pub fn set_service_status(&self, service: impl AsRef<str>, status: ServingStatus) {
        self.statuses.send_if_modified(|statuses| statuses.set(service.as_ref(), status));
    }

    /// Removes a service: `Check` fails with NOT_FOUND, and watchers get SERVICE_UNKNOWN.
    pub fn clear_service_status(&self, service: impl AsRef<str>) {
        self.statuses.send_if_modified(|statuses| statuses.clear(service.as_ref()));
    }

    /// Returns the status of a service, or of the whole server, `""`, or `None` if unknown.
    ///
    /// A draining server reports NOT_SERVING regardless of this.
    pub fn service_status(&self, service: &str) -> Option<ServingStatus> {
        self.statuses.borrow().get(service)
    }

    /// Reports NOT_SERVING for everything until [`resume`](Self::resume), whatever is set. Use it before a shutdown,
    /// while the server still responds, so that load balancers notice. Watchers stay connected.
    pub fn shut_down(&self) {
        self.set_shut_down(true);
    }

    /// Reports the set statuses again.
    pub fn resume(&self) {
        self.set_shut_down(false);
    }

    fn set_shut_down(&self, is_shut_down: bool) {
        self.statuses.send_if_modified(|statuses| {
            std::mem::replace(&mut statuses.is_shut_down, is_shut_down) != is_shut_down
        });
    }
}
