//! Statuses as reported by one server: [`OfServer`].

use std::sync::Arc;

use thalweg::server::ServerHandle;
use tokio::sync::watch;

use super::pb::HealthCheckResponse;
use super::pb::health_check_response::ServingStatus as Wire;
use super::statuses::{ServingStatus, Statuses};

/// Statuses as reported by one server.
#[derive(Clone, Debug)]
pub(super) struct OfServer {
    statuses: Arc<watch::Sender<Statuses>>,
    server: ServerHandle,
}

impl OfServer {
    pub(super) fn new(statuses: Arc<watch::Sender<Statuses>>, server: ServerHandle) -> Self {
        Self { statuses, server }
    }

    /// Returns the reported status, or `None` for an unknown service.
    pub(super) fn status(&self, service: &str) -> Option<Wire> {
        let status = self.statuses.borrow().get(service)?;
        Some(self.told(status))
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Statuses> {
        self.statuses.subscribe()
    }

    pub(super) fn server(&self) -> &ServerHandle {
        &self.server
    }

    /// Returns the statuses before [`told`](Self::told).
    pub(super) fn statuses(&self) -> watch::Ref<'_, Statuses> {
        self.statuses.borrow()
    }

    /// Returns the status to report: NOT_SERVING while the server drains.
    pub(super) fn told(&self, status: ServingStatus) -> Wire {
        if self.server.is_draining() { Wire::NotServing } else { status.into() }
    }
}

pub(super) fn response(status: Wire) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
