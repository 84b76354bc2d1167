//! `grpc.health.v1.Health`, gRPC's [health checking protocol]: whether a server, and each of its services, takes calls.
//!
//! A [`HealthReporter`] holds the statuses, and makes the service that tells them:
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
//! When the server begins to stop gracefully, every status is NOT_SERVING by itself: those who watch are told, and
//! their calls end with UNAVAILABLE, as the server would wait for them otherwise.
//!
//! [health checking protocol]: https://github.com/grpc/grpc/blob/master/doc/health-checking.md

mod of_server;
pub mod pb;
mod reporter;
mod service;
mod statuses;
mod watching;

use thalweg::{Channel, Status};

pub use reporter::HealthReporter;
pub use service::HealthService;
pub use statuses::ServingStatus;

/// Asks the server behind `channel` about a service, `package.Service`, or about the server as a whole: `""`.
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
/// NOT_FOUND where the server does not know the service, UNIMPLEMENTED where it has no health service, and whatever
/// else ends a call.
pub async fn check(channel: &Channel, service: &str) -> Result<ServingStatus, Status> {
    let client = pb::health_client::HealthClient::new(channel.clone());
    let request = pb::HealthCheckRequest { service: service.to_owned() };
    Ok(client.check(request).await?.into_inner().status().into())
}
