//! Building blocks of generated servers.

mod grpc;

pub use grpc::Grpc;
pub use tonic::server::{
    ClientStreamingService, NamedService, ServerStreamingService, StreamingService, UnaryService,
};
