//! A request with its metadata.

#[cfg(feature = "codec")]
mod cancellation;
mod into_request;
mod value;

#[cfg(feature = "codec")]
pub use self::cancellation::CancellationHandle;
pub use self::into_request::{IntoRequest, IntoStreamingRequest};
pub use self::value::Request;
