//! Services of `thalweg serve`: gRPC's own benchmark and interoperability services, so that the tools of all other
//! stacks can be used with this one.

mod benchmark;
mod benchmark_owned;
mod echo;
pub mod echo_proto;
mod echo_views;
mod interop;
mod own;
pub mod proto;
pub(crate) mod proto_json;
mod service_set;
pub mod shapes_proto;
mod zeros;

pub use benchmark::BenchmarkWorker;
pub use benchmark_owned::OwnedBenchmarkWorker;
pub use echo::EchoWorker;
pub(crate) use echo::{TIMESTAMPS_KEY, monotonic_ns};
pub use echo_views::EchoViewsServer;
pub use interop::InteropServer;
pub use own::EchoOwnServer;
pub use service_set::ServiceSet;
pub use zeros::{PAYLOAD_BYTES_MAX, zeros};
