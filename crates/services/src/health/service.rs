//! The health service.

use std::collections::HashMap;
use std::sync::Arc;

use thalweg::server::{Methods, Service};
use thalweg::{Request, Response, Status};
use tokio::sync::watch;

use super::pb::health_server::{Health, HealthServer};
use super::pb::{HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse};
use super::server_statuses::{ServerStatuses, response};
use super::status_stream::StatusStream;
use super::statuses::Statuses;

/// `grpc.health.v1.Health` with the statuses of a [`HealthReporter`](super::HealthReporter).
#[derive(Clone, Debug)]
pub struct HealthService {
    statuses: Arc<watch::Sender<Statuses>>,
}

impl HealthService {
    pub(super) fn new(statuses: Arc<watch::Sender<Statuses>>) -> Self {
        Self { statuses }
    }
}

impl Service for HealthService {
    const NAME: &'static str = super::pb::health_server::SERVICE_NAME;

    fn register(self, methods: &mut Methods<'_>) {
        let server_statuses = ServerStatuses::new(self.statuses, methods.server());
        HealthServer::new(server_statuses).max_decoding_message_size(REQUEST_BYTES_MAX).register(methods);
    }
}

/// Maximum request size. A watcher's service name is kept while it watches.
const REQUEST_BYTES_MAX: usize = 4096;

/// Maximum number of listed services, from the protocol.
const LISTED_MAX: usize = 100;

impl Health for ServerStatuses {
    type WatchStream = StatusStream;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        match self.status(service) {
            Some(status) => Ok(Response::new(response(status))),
            None => Err(Status::not_found(format!("unknown service {service}"))),
        }
    }

    async fn list(&self, _: Request<HealthListRequest>) -> Result<Response<HealthListResponse>, Status> {
        let known = self.statuses();
        if known.len() > LISTED_MAX {
            let count = known.len();
            return Err(Status::resource_exhausted(format!(
                "{count} services have a status, but at most {LISTED_MAX} can be listed"
            )));
        }
        let statuses: HashMap<_, _> = known
            .all()
            .map(|(service, status)| (service.to_owned(), response(self.reported(status))))
            .collect();
        Ok(Response::new(HealthListResponse { statuses }))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<StatusStream>, Status> {
        Ok(Response::new(StatusStream::new(self.clone(), request.into_inner().service)))
    }
}
