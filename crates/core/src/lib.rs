//! gRPC's vocabulary: statuses, metadata, requests, responses, codecs, and the traits of services and interceptors.
//!
//! It has no I/O. Names and signatures are tonic's, so code written for tonic compiles with it.

#![deny(unsafe_code)]

pub mod body;
pub mod client;
mod code;
pub mod codec;
pub mod metadata;
mod method;
pub mod percent;
mod request;
mod response;
pub mod server;
pub mod service;
pub mod status;
#[cfg(test)]
mod testing;
pub mod timeout;

pub use http::Extensions;

pub use self::code::Code;
pub use self::codec::Streaming;
pub use self::method::GrpcMethod;
pub use self::request::{CancellationHandle, IntoRequest, IntoStreamingRequest, Request};
pub use self::response::Response;
pub use self::status::{ConnectError, Status, TimeoutExpired};

/// A result whose error is a [`Status`] by default.
pub type Result<T, E = Status> = std::result::Result<T, E>;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
