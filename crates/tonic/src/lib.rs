//! tonic's interface on Thalweg's transport.
//!
//! A program that stands on tonic 0.14 changes one line of its manifest, and no code:
//!
//! ```toml
//! [dependencies]
//! tonic = { package = "thalweg-tonic", version = "0.1", features = ["tls-ring", "gzip"] }
//! ```
//!
//! What `tonic-build` and `tonic-prost-build` generate names `tonic::…`, which is then this crate. Features have
//! tonic's names.
//!
//! ```no_run
//! // With the manifest above, `tonic::transport`.
//! use thalweg_tonic::transport::{Channel, Endpoint};
//!
//! # async fn example() -> Result<(), thalweg_tonic::transport::Error> {
//! let channel: Channel = Endpoint::from_static("http://[::1]:50051").connect().await?;
//! // `GreeterClient::new(channel)`, as it was.
//! # drop(channel);
//! # Ok(()) }
//! ```
//!
//! # What is tonic's, and what is Thalweg's
//!
//! | module or item | whose |
//! | --- | --- |
//! | [`Request`], [`Response`], [`Status`], [`Code`], [`Extensions`], [`Result`], [`GrpcMethod`] | tonic's |
//! | [`IntoRequest`], [`Streaming`], [`CancellationHandle`] | tonic's |
//! | [`ConnectError`], [`TimeoutExpired`] | tonic's |
//! | [`codec`], [`codegen`], [`metadata`] | tonic's |
//! | in [`service`]: interceptors and what goes around services | tonic's |
//! | [`body::Body`], [`client::Grpc`], [`server::Grpc`], [`service::Routes`], [`IntoStreamingRequest`] | Thalweg's |
//! | [`include_proto!`], [`include_file_descriptor_set!`], [`async_trait`] | tonic's |
//! | [`transport`] | Thalweg's |
//! | in [`transport::server`]: `Connected`, `TcpConnectInfo` and its like, `TcpIncoming` | tonic's |
//!
//! With neither the feature `server` nor `channel`, all of them are tonic's, and there is no [`transport`]: so do
//! crates have them that only use generated code.
//!
//! What is tonic's is re-exported, not rebuilt: these are the very types of the crate `tonic`, so that crates which
//! depend on that one (`tonic-prost`, `tonic-types`, `tower-http` …) fit. The connection information is tonic's because
//! `Request::remote_addr` and its like look for it.
//!
//! `docs/tonic.md` in the repository goes through all functions of `transport` and `service`.

#[cfg(feature = "_transport")]
pub mod body;
#[cfg(feature = "_transport")]
pub mod client;
#[cfg(feature = "_transport")]
mod fields;
#[cfg(feature = "_transport")]
mod request;
#[cfg(feature = "_transport")]
pub mod server;
#[cfg(feature = "_transport")]
pub mod service;
#[cfg(feature = "_transport")]
mod single;
#[cfg(feature = "_transport")]
pub mod transport;

#[cfg(feature = "_transport")]
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
#[cfg(feature = "_transport")]
pub use request::IntoStreamingRequest;
#[cfg(feature = "codegen")]
pub use tonic::async_trait;
#[doc(hidden)]
#[cfg(feature = "codegen")]
pub use tonic::codegen;
pub use tonic::{
    CancellationHandle, Code, ConnectError, Extensions, GrpcMethod, IntoRequest, Request, Response, Result,
    Status, Streaming, TimeoutExpired, codec, include_file_descriptor_set, include_proto, metadata,
};
// Without `server` and `channel` there is no transport of Thalweg's to fit.
#[cfg(not(feature = "_transport"))]
pub use tonic::{IntoStreamingRequest, body, client, server, service};
