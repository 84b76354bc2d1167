//! What generated clients are made of.

mod grpc;

pub use grpc::Grpc;
pub use tonic::client::GrpcService;
