//! The outcome of a call that failed.

mod from_error;
mod http_status;
mod local;
#[cfg(test)]
mod tests;
mod value;

pub use self::from_error::{ConnectError, TimeoutExpired};
pub use self::http_status::{missing, outcome};
pub use self::value::{GRPC_MESSAGE, GRPC_STATUS, GRPC_STATUS_DETAILS, Status};
