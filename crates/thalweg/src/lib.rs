//! A gRPC stack whose client is never the bottleneck.
//!
//! Stubs come from `.proto` files by `thalweg-build`, in `build.rs`. Then a server is
//!
//! ```ignore
//! let server = thalweg::Server::builder()
//!     .add_service(GreeterServer::new(MyGreeter))
//!     .bind(&["127.0.0.1:50051".parse()?])
//!     .await?;
//! server.serve().await?;
//! ```
//!
//! and a client
//!
//! ```ignore
//! let channel = thalweg::Channel::builder("localhost:50051").connect().await?;
//! let greeter = GreeterClient::new(channel);
//! let reply = greeter.say_hello(HelloRequest { name: "Ada".into() }).await?;
//! ```
//!
//! `Request`, `Response`, `Status`, `Code` and `metadata` are tonic's own types. What can be called without stubs stands at
//! [`Channel`] and [`server::Methods`].

#[cfg(feature = "buffa")]
mod buffa_message;
mod buffers;
mod chain;
pub mod channel;
mod connection;
mod executor;
pub mod grpc;
mod measure;
mod message;
mod method;
mod net;
mod options;
pub mod server;
mod streaming;
#[cfg(test)]
mod tests;

#[cfg(feature = "buffa")]
pub use buffa;
pub use bytes;
pub use futures_core::Stream;
#[cfg(feature = "prost")]
pub use prost;
pub use thalweg_http2 as http2;
pub use tonic::metadata;
pub use tonic::{Code, Extensions, IntoRequest, IntoStreamingRequest, Request, Response, Status};

#[cfg(feature = "buffa")]
pub use buffa_message::View;
pub use chain::Chain;
pub use channel::Channel;
#[doc(hidden)]
pub use connection::slices::settle_alone;
pub use executor::ExecutorError;
pub use grpc::compression::{Encoding, EncodingSet};
#[cfg(feature = "opentelemetry")]
pub use measure::Metrics;
pub use message::{DecodeError, Message, Raw};
pub use method::{InvalidPath, Method};
pub use net::{InvalidAddress, ListenAddress};
pub use options::{CallOptions, MAX_DECODING_MESSAGE_SIZE, ServiceOptions};
pub use server::Server;
pub use streaming::Streaming;

/// Includes the code that `thalweg-build` made of a `.proto` package, as tonic's macro of the same name does.
///
/// ```ignore
/// pub mod hello {
///     thalweg::include_proto!("helloworld");
/// }
/// ```
#[macro_export]
macro_rules! include_proto {
    ($package:tt) => {
        include!(concat!(env!("OUT_DIR"), "/", $package, ".rs"));
    };
}
