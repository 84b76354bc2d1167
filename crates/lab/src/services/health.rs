//! `grpc.health.v1.Health`, gRPC's [health checking protocol], for a server whose services serve until it stops.
//!
//! [health checking protocol]: https://github.com/grpc/grpc/blob/master/doc/health-checking.md

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg::{Request, Response, Status};
use tokio::sync::{mpsc, watch};

use super::health_proto::health_check_response::ServingStatus;
use super::health_proto::health_server::Health;
use super::health_proto::{HealthCheckRequest, HealthCheckResponse};

/// The service. Clones are of the same server: one is kept, to [`stop`](Self::stop).
#[derive(Clone, Debug)]
pub struct HealthChecks {
    services: Arc<[&'static str]>,
    serves: Arc<watch::Sender<bool>>,
}

impl HealthChecks {
    /// For a server that has these services, `package.Service`.
    pub fn of(services: &[&'static str]) -> Self {
        Self { services: services.into(), serves: Arc::new(watch::Sender::new(true)) }
    }

    /// From now on nothing serves any more. Who watches is told, and sent away: a server that waits for its calls to
    /// end would wait for watchers in vain.
    pub fn stop(&self) {
        self.serves.send_replace(false);
    }

    fn knows(&self, service: &str) -> bool {
        service.is_empty() || self.services.contains(&service)
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

fn status(serves: bool) -> ServingStatus {
    if serves { ServingStatus::Serving } else { ServingStatus::NotServing }
}

impl Health for HealthChecks {
    type WatchStream = Statuses;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        if !self.knows(service) {
            return Err(Status::not_found(format!("unknown service {service}")));
        }
        Ok(Response::new(response(status(*self.serves.borrow()))))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Statuses>, Status> {
        let is_known = self.knows(&request.get_ref().service);
        let mut serves = self.serves.subscribe();
        let (sender, statuses) = mpsc::channel(1);
        tokio::spawn(async move {
            let now = *serves.borrow_and_update();
            let first = if is_known { status(now) } else { ServingStatus::ServiceUnknown };
            if sender.send(Ok(response(first))).await.is_err() {
                return;
            }
            // It changes once, from serving to not.
            tokio::select! {
                stopped = serves.wait_for(|serves| !serves) => drop(stopped),
                () = sender.closed() => return,
            }
            if is_known && now && sender.send(Ok(response(ServingStatus::NotServing))).await.is_err() {
                return;
            }
            // Nobody is there any more who could be told that nobody is.
            let _ = sender.send(Err(Status::unavailable("the server is shutting down"))).await;
        });
        Ok(Response::new(Statuses(statuses)))
    }
}

/// What a watcher is told.
#[derive(Debug)]
pub struct Statuses(mpsc::Receiver<Result<HealthCheckResponse, Status>>);

impl Stream for Statuses {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}
