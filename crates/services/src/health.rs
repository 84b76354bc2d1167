//! `grpc.health.v1.Health`, the gRPC [health checking protocol]: whether a server and its services accept calls.
//!
//! A [`HealthReporter`] holds the statuses and creates the service that reports them:
//!
//! ```
//! use thalweg::Server;
//! use thalweg_services::health::{HealthReporter, ServingStatus};
//!
//! let health = HealthReporter::new();
//! let server = Server::builder().add_service(health.service());
//! // Later, from anywhere in the program:
//! health.set_service_status("shop.v1.Orders", ServingStatus::NotServing);
//! health.set_service_status("shop.v1.Orders", ServingStatus::Serving);
//! ```
//!
//! When the server starts a graceful shutdown, every status becomes NOT_SERVING. Watchers are notified, and their calls
//! end with UNAVAILABLE so that the server does not wait for them.
//!
//! [health checking protocol]: https://github.com/grpc/grpc/blob/master/doc/health-checking.md

pub mod pb;
mod reporter;
mod server_statuses;
mod service;
mod status_stream;
mod statuses;

use thalweg::{Channel, Status};

pub use reporter::HealthReporter;
pub use service::HealthService;
pub use statuses::ServingStatus;

/// Checks the status of a service, `package.Service`, or of the whole server, `""`.
///
/// ```no_run
/// # use thalweg_services::health::{self, ServingStatus};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let channel = thalweg::Channel::builder("localhost:50051").connect().await?;
/// assert_eq!(health::check(&channel, "").await?, ServingStatus::Serving);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns NOT_FOUND if the service is unknown, UNIMPLEMENTED if the server has no health service, or any other status
/// of a failed call.
pub async fn check(channel: &Channel, service: &str) -> Result<ServingStatus, Status> {
    let client = pb::health_client::HealthClient::new(channel.clone());
    let request = pb::HealthCheckRequest { service: service.to_owned() };
    Ok(client.check(request).await?.into_inner().status().into())
}
