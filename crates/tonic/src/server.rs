//! What generated servers are made of.

mod grpc;

pub use grpc::Grpc;
pub use tonic::server::{
    ClientStreamingService, NamedService, ServerStreamingService, StreamingService, UnaryService,
};
