//! A drop-in for tonic 0.14 with Thalweg's transport.
//!
//! Change one line of the manifest. No code changes:
//!
//! ```toml
//! [dependencies]
//! tonic = { package = "thalweg-tonic", git = "https://github.com/thalweg/thalweg", features = ["tls-ring", "gzip"] }
//! ```
//!
//! Code from `tonic-build` and `tonic-prost-build` then finds this crate under the name `tonic`. Features have tonic's
//! names.
//!
//! ```no_run
//! // With the manifest above, `tonic::transport`.
//! use thalweg_tonic::transport::{Channel, Endpoint};
//!
//! # async fn example() -> Result<(), thalweg_tonic::transport::Error> {
//! let channel: Channel = Endpoint::from_static("http://[::1]:50051").connect().await?;
//! // `GreeterClient::new(channel)`, unchanged.
//! # drop(channel);
//! # Ok(()) }
//! ```
//!
//! # Which types are tonic's
//!
//! In the package `tonic` for `[patch]`, which has the same sources, all types are Thalweg's.
//!
//! | module or item | from |
//! | --- | --- |
//! | [`Request`], [`Response`], [`Status`], [`Code`], [`Extensions`], [`Result`], [`GrpcMethod`] | tonic's |
//! | [`IntoRequest`], [`Streaming`], [`CancellationHandle`] | tonic's |
//! | [`ConnectError`], [`TimeoutExpired`] | tonic's |
//! | [`codec`], [`codegen`], [`metadata`] | tonic's |
//! | in [`service`]: interceptors and wrappers of services | tonic's |
//! | [`body::Body`], [`client::Grpc`], [`server::Grpc`], [`service::Routes`], [`IntoStreamingRequest`] | Thalweg's |
//! | [`include_proto!`], [`include_file_descriptor_set!`], [`async_trait`] | tonic's |
//! | [`transport`] | Thalweg's |
//! | in [`transport::server`]: `Connected`, `TcpConnectInfo` and similar types | tonic's |
//!
//! Without the features `server` and `channel` all of them are tonic's and there is no [`transport`]; this suits crates
//! that only use generated code.
//!
//! tonic's types are re-exported, so crates that depend on tonic (`tonic-prost`, `tonic-types`, `tower-http`) work with
//! them. Connection information is tonic's, because `Request::remote_addr` and similar methods look for these types.
//!
//! `docs/tonic.md` in the repository describes migration in both directions, and lists all functions of `transport` and
//! `service`.

#[cfg(feature = "_transport")]
pub mod body;
#[cfg(feature = "_transport")]
pub mod client;
#[cfg(any(feature = "_transport", all(own_vocabulary, feature = "router")))]
mod downcast;
#[cfg(feature = "_transport")]
mod fields;
#[cfg(feature = "_transport")]
mod request;
#[cfg(feature = "_transport")]
pub mod server;
#[cfg(any(feature = "_transport", own_vocabulary))]
pub mod service;
#[cfg(feature = "_transport")]
mod single;
#[cfg(feature = "_transport")]
mod status;
#[cfg(feature = "_transport")]
pub mod transport;

#[cfg(any(feature = "_transport", all(own_vocabulary, feature = "router")))]
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
#[cfg(feature = "_transport")]
pub use request::IntoStreamingRequest;
#[cfg(feature = "codegen")]
pub use vocabulary::async_trait;
#[doc(hidden)]
#[cfg(feature = "codegen")]
pub use vocabulary::codegen;
#[cfg(not(any(feature = "_transport", own_vocabulary)))]
pub use vocabulary::service;
pub use vocabulary::{
    CancellationHandle, Code, ConnectError, Extensions, GrpcMethod, IntoRequest, Request, Response, Result,
    Status, Streaming, TimeoutExpired, codec, include_file_descriptor_set, include_proto, metadata,
};
// Without `server` and `channel`, Thalweg's transport is not compiled, so the types of the vocabulary are exported.
#[cfg(not(feature = "_transport"))]
pub use vocabulary::{IntoStreamingRequest, body, client, server};
