//! Standard gRPC services: health checking, reflection, load reports and channelz.
//!
//! - [`health`] (`grpc.health.v1`) reports whether the server and each of its services accept calls. Load balancers,
//!   Kubernetes probes and gRPC clients use it.
//! - [`reflection`] (`grpc.reflection.v1` and `v1alpha`) lists services and describes their messages. grpcurl and
//!   Postman use it.
//! - [`orca`] (`xds.service.orca.v3`) reports the server's load to clients that balance by it.
//! - [`channelz`] (`grpc.channelz.v1`) shows servers, channels and connections of the process for debugging. [`admin`]
//!   bundles such services.
//!
//! `health`, `reflection`, `orca` and `channelz` are features of the same names, on by default:
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
#[cfg(feature = "orca")]
pub mod orca;
#[cfg(feature = "reflection")]
pub mod reflection;
