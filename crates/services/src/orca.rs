//! Load reports to clients (ORCA, [gRFC A51]), in the trailers of calls and by `xds.service.orca.v3.OpenRcaService`.
//!
//! Clients use them as weights of the policy `weighted_round_robin` ([gRFC A58]): a server gets the more calls the more
//! queries per second it handles per utilization. [`ServerMetrics`] holds the measurements of a server:
//!
//! ```
//! use thalweg::{Request, Response, Server, Status};
//! use thalweg_services::orca::{CallMetrics, ServerMetrics};
//!
//! let metrics = ServerMetrics::new();
//! let server = Server::builder()
//!     .interceptor(metrics.per_call()) // in the trailers of calls
//!     .add_service(metrics.service()); // out of band
//! // Every second or so, from anywhere in the program:
//! metrics.set_cpu_utilization(0.4);
//! metrics.set_qps(1200.0);
//!
//! // A handler may report more with its call:
//! async fn find(request: Request<String>) -> Result<Response<String>, Status> {
//!     CallMetrics::of(&request).set_request_cost("rows read", 3.0);
//!     Ok(Response::new(request.into_inner()))
//! }
//! ```
//!
//! Values out of range are ignored: negative ones, NaN, infinity, and more than 1 for utilization other than the CPU's
//! and the application's.
//!
//! [gRFC A51]: https://github.com/grpc/proposal/blob/master/A51-custom-backend-metrics.md
//! [gRFC A58]: https://github.com/grpc/proposal/blob/master/A58-client-side-weighted-round-robin-lb-policy.md

mod call_metrics;
mod measurements;
pub mod pb;
mod per_call;
mod report_stream;
mod server_metrics;
mod service;
mod setters;

pub use call_metrics::CallMetrics;
pub use per_call::PerCallReports;
pub use server_metrics::ServerMetrics;
pub use service::OrcaService;
