//! What a measuring process runs: the services that are called, who calls them, and what is written down of it.
//!
//! The laboratory starts processes, plans and judges; these processes make millions of calls, and all that a call
//! meets in them, beside the stack itself, is here.
//!
//! - [`drive`](mod@drive) calls gRPC's benchmark service, or any unary method, on one channel or many.
//! - [`bare`] is the leanest client and server for many connections: a thread over epoll, and frames encoded once.
//! - [`echo`] calls one service by gRPC, gRPC-Web, Connect, and JSON or MessagePack over plain HTTP.
//! - [`services`] are those that are called.
//! - [`record`] counts and times, and has the saved result.
//!
//! A run needs settings, a runtime, and a server, which need not be of this process:
//!
//! ```
//! use thalweg::Server;
//! use thalweg_drive::drive::{Patience, drive};
//! use thalweg_drive::record::{CallType, Handing, LaneRule, LoadSettings};
//! use thalweg_drive::services::BenchmarkWorker;
//! use thalweg_drive::services::proto::benchmark_service_server::BenchmarkServiceServer;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let service = BenchmarkServiceServer::new(BenchmarkWorker::default());
//! let server = Server::builder().add_service(service).bind(&["127.0.0.1:0".parse()?]).await?;
//! let settings = LoadSettings {
//!     target: server.local_addresses()[0].to_string(),
//!     call: CallType::Unary,
//!     size_bytes: 100,
//!     in_flight: 4,
//!     connections: 1,
//!     lanes: LaneRule::Fixed,
//!     method: None,
//!     echo: None,
//!     bare: None,
//!     handing: Handing::InPlace,
//!     warmup_ns: 0,
//!     duration_ns: None,
//!     total: Some(1000),
//!     busy_poll_ns: None,
//!     cpus: None,
//! };
//! tokio::spawn(server.serve());
//!
//! let never = std::future::pending();
//! let result = drive(&settings, None, |channel| channel, Patience::default(), never, |_| ()).await?;
//! assert_eq!((result.messages, result.error_count()), (1000, 0));
//! assert!(result.latency_ns.is_some_and(|latency| latency.p50 <= latency.p99));
//! # Ok(())
//! # }
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!("thalweg-drive and the `thalweg` command support Linux only");

pub mod bare;
pub mod drive;
pub mod echo;
pub mod record;
pub mod services;
#[cfg(test)]
mod tests;
