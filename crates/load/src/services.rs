//! The services that `thalweg serve` offers: gRPC's own for measuring and for showing that two stacks understand
//! each other, so that every other stack's tools can be pointed at this one.

mod benchmark;
mod benchmark_owned;
mod echo;
pub mod echo_proto;
mod echo_views;
mod interop;
mod offered;
mod own;
pub mod proto;
pub(crate) mod proto_json;
pub mod shapes_proto;
mod zeros;

pub use benchmark::BenchmarkWorker;
pub use benchmark_owned::OwnedBenchmarkWorker;
pub use echo::EchoWorker;
pub(crate) use echo::{TIMES, monotonic_ns};
pub use echo_views::EchoViewsServer;
pub use interop::InteropServer;
pub use offered::Offered;
pub use own::EchoOwnServer;
pub use zeros::{PAYLOAD_BYTES_MAX, zeros};
