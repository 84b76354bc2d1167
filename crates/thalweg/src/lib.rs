//! A gRPC stack whose client is never the bottleneck.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod channel;
mod connection;
pub mod grpc;
mod message;
mod method;
mod net;
mod options;
pub mod server;
mod streaming;

pub use bytes;
pub use futures_core::Stream;
#[cfg(feature = "prost")]
pub use prost;
pub use thalweg_http2 as http2;
pub use tonic::metadata;
pub use tonic::{Code, Extensions, IntoRequest, IntoStreamingRequest, Request, Response, Status};

pub use channel::Channel;
pub use grpc::compression::{Encoding, EncodingSet};
pub use message::{DecodeError, Message, Raw};
pub use method::{InvalidPath, Method};
pub use net::{InvalidAddress, ListenAddress};
pub use options::{CallOptions, MAX_DECODING_MESSAGE_SIZE, ServiceOptions};
pub use server::Server;
pub use streaming::Streaming;
