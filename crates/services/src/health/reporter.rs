//! The program's side of the health service: [`HealthReporter`].

use std::sync::Arc;

use thalweg::server::Service;
use tokio::sync::watch;

use super::service::HealthService;
use super::statuses::{ServingStatus, Statuses};

/// Holds the statuses of a server and of its services. Clones share them; none of its methods waits.
///
/// The server as a whole, whose name is `""`, is [`Serving`](ServingStatus::Serving) from the start. Services are
/// unknown until they are given a status.
#[derive(Clone, Debug, Default)]
pub struct HealthReporter {
    statuses: Arc<watch::Sender<Statuses>>,
}

impl HealthReporter {
    /// The server serves; nothing is known of its services.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a server is given. One that is given to several servers tells all of them the same, but for their stopping.
    pub fn service(&self) -> HealthService {
        HealthService::new(Arc::clone(&self.statuses))
    }

    /// The service `S` takes calls.
    pub fn set_serving<S: Service>(&self) {
        self.set_service_status(S::NAME, ServingStatus::Serving);
    }

    /// The service `S` takes no calls.
    pub fn set_not_serving<S: Service>(&self) {
        self.set_service_status(S::NAME, ServingStatus::NotServing);
    }

    /// Sets the status of a service, `package.Service`, or of the server as a whole, `""`; those who watch it are told.
    /// Of statuses that follow each other faster than a watcher reads, it gets the last.
    pub fn set_service_status(&self, service: impl AsRef<str>, status: ServingStatus) {
        self.statuses.send_if_modified(|statuses| statuses.set(service.as_ref(), status));
    }

    /// Forgets a service: `Check` fails with NOT_FOUND, and those who watch are told SERVICE_UNKNOWN.
    pub fn clear_service_status(&self, service: impl AsRef<str>) {
        self.statuses.send_if_modified(|statuses| statuses.clear(service.as_ref()));
    }

    /// What is told of a service, or of the server as a whole, `""`; `None` where it is unknown.
    ///
    /// A server that has begun to stop tells NOT_SERVING in any case.
    pub fn service_status(&self, service: &str) -> Option<ServingStatus> {
        self.statuses.borrow().get(service)
    }

    /// Everything is told to be NOT_SERVING until [`resume`](Self::resume), whatever is set meanwhile. For a server
    /// that is about to stop, and goes on answering until all balancers have seen it: those who watch stay.
    pub fn shut_down(&self) {
        self.set_shut_down(true);
    }

    /// The statuses are told again as they were set.
    pub fn resume(&self) {
        self.set_shut_down(false);
    }

    fn set_shut_down(&self, is_shut_down: bool) {
        self.statuses.send_if_modified(|statuses| {
            std::mem::replace(&mut statuses.is_shut_down, is_shut_down) != is_shut_down
        });
    }
}
