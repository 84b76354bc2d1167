//! The services that every gRPC server has, over the library's public interface.
//!
//! - [`health`] (`grpc.health.v1`) says whether the server and each of its services take calls: load balancers,
//!   Kubernetes' probes and gRPC's own clients ask.
//! - [`reflection`] (`grpc.reflection.v1` and `v1alpha`) says which services there are and what their messages look
//!   like: grpcurl, Postman and their like ask.
//!
//! - [`channelz`] (`grpc.channelz.v1`) says what the servers and channels of the process do, for whoever debugs them;
//!   [`admin`] is gRPC's bundle of such services.
//!
//! Each is a feature of that name, on by default, and a line of the server:
//!
//! ```no_run
//! use thalweg_services::{health::HealthReporter, reflection::Reflection};
//!
//! # struct Greeter;
//! # impl thalweg::server::Service for Greeter {
//! #     const NAME: &'static str = "a.Greeter";
//! #     fn register(self, _: &mut thalweg::server::Methods<'_>) {}
//! # }
//! # const DESCRIPTORS: &[u8] = &[];
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let health = HealthReporter::new();
//! health.set_serving::<Greeter>();
//! let server = thalweg::Server::builder()
//!     .add_service(Greeter)
//!     .add_service(health.service())
//!     .add_service(Reflection::builder().descriptors(DESCRIPTORS).build()?)
//!     .bind(&["127.0.0.1:50051".parse()?])
//!     .await?;
//! server.serve().await?;
//! # Ok(()) }
//! ```

#[cfg(feature = "channelz")]
pub mod admin;
#[cfg(feature = "channelz")]
pub mod channelz;
#[cfg(feature = "health")]
pub mod health;
#[cfg(feature = "reflection")]
pub mod reflection;
