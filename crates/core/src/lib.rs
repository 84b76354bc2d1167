//! gRPC's vocabulary: statuses, metadata, requests, responses, codecs, and the traits of services and interceptors.
//!
//! It has no I/O. Names and signatures are tonic's, so code written for tonic compiles with it.

#![deny(unsafe_code)]

#[cfg(feature = "codec")]
pub mod body;
pub mod chain;
#[cfg(feature = "codec")]
pub mod client;
mod code;
#[cfg(feature = "codec")]
pub mod codec;
#[cfg(feature = "codegen")]
#[doc(hidden)]
pub mod codegen;
pub mod compression;
mod error;
mod macros;
pub mod metadata;
mod method;
pub mod percent;
mod request;
mod response;
#[cfg(feature = "codec")]
pub mod server;
#[cfg(feature = "codec")]
pub mod service;
pub mod status;
#[cfg(test)]
mod testing;
pub mod timeout;
#[cfg(feature = "server")]
pub mod transport;
#[cfg(feature = "tonic")]
mod with_tonic;

#[cfg(feature = "codegen")]
pub use async_trait::async_trait;
pub use http::Extensions;

pub use self::code::Code;
#[cfg(feature = "codec")]
pub use self::codec::Streaming;
pub use self::method::GrpcMethod;
#[cfg(feature = "codec")]
pub use self::request::CancellationHandle;
pub use self::request::{IntoRequest, IntoStreamingRequest, Request};
pub use self::response::Response;
pub use self::status::{ConnectError, Status, TimeoutExpired};

/// A result whose error is a [`Status`] by default.
pub type Result<T, E = Status> = std::result::Result<T, E>;
