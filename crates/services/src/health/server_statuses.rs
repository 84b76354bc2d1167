//! Statuses as reported by one server: [`ServerStatuses`].

use std::sync::Arc;

use thalweg::server::ServerHandle;
use tokio::sync::watch;

use super::pb::HealthCheckResponse;
use super::pb::health_check_response::ServingStatus as WireStatus;
use super::statuses::{ServingStatus, Statuses};

/// Statuses as reported by one server.
#[derive(Clone, Debug)]
pub(super) struct ServerStatuses {
    statuses: Arc<watch::Sender<Statuses>>,
    server: ServerHandle,
}

impl ServerStatuses {
    pub(super) fn new(statuses: Arc<watch::Sender<Statuses>>, server: ServerHandle) -> Self {
        Self { statuses, server }
    }

    /// Returns the reported status, or `None` for an unknown service.
    pub(super) fn status(&self, service: &str) -> Option<WireStatus> {
        let status = self.statuses.borrow().get(service)?;
        Some(self.reported(status))
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Statuses> {
        self.statuses.subscribe()
    }

    pub(super) fn server(&self) -> &ServerHandle {
        &self.server
    }

    /// Returns the statuses before [`reported`](Self::reported).
    pub(super) fn statuses(&self) -> watch::Ref<'_, Statuses> {
        self.statuses.borrow()
    }

    /// Returns the status to report: NOT_SERVING while the server drains.
    pub(super) fn reported(&self, status: ServingStatus) -> WireStatus {
        if self.server.is_draining() { WireStatus::NotServing } else { status.into() }
    }
}

pub(super) fn response(status: WireStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
