//! Building blocks of generated clients.

mod config;
mod grpc;
mod streaming;

pub use grpc::Grpc;
pub use streaming::{OnlyResponse, Responses};
pub use vocabulary::client::GrpcService;
