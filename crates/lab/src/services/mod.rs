//! The services that `thalweg serve` offers: gRPC's own for measuring and for showing that two stacks understand
//! each other, so that every other stack's tools can be pointed at this one.

mod benchmark;
mod health;
pub mod health_proto;
mod interop;
pub mod proto;
mod zeros;

pub use benchmark::BenchmarkWorker;
pub use health::{HealthChecks, Statuses};
pub use interop::InteropServer;
pub use zeros::{PAYLOAD_BYTES_MAX, zeros};

use proto::Payload;
use thalweg::Status;

/// The payload for an answer that a peer wants `size` bytes long; none for an empty answer, as gRPC's own workers do.
///
/// # Errors
///
/// INVALID_ARGUMENT for a size that is negative or beyond [`PAYLOAD_BYTES_MAX`].
fn payload(size: i32) -> Result<Option<Payload>, Status> {
    match usize::try_from(size) {
        Ok(0) => Ok(None),
        Ok(size) if size <= PAYLOAD_BYTES_MAX => Ok(Some(Payload { r#type: 0, body: zeros(size) })),
        _ => Err(Status::invalid_argument(format!(
            "an answer of {size} bytes was asked for; this server sends 0 to {PAYLOAD_BYTES_MAX}"
        ))),
    }
}
