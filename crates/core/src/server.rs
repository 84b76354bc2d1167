//! Building blocks of generated servers: [`Grpc`] handles the calls of a method by a trait for each type of call.

mod grpc;
mod services;

pub use self::grpc::Grpc;
pub use self::services::{
    ClientStreamingService, NamedService, ServerStreamingService, StreamingService, UnaryService,
};
