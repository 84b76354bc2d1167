//! Building blocks of generated servers.

mod grpc;

pub use grpc::Grpc;
pub use vocabulary::server::{
    ClientStreamingService, NamedService, ServerStreamingService, StreamingService, UnaryService,
};
