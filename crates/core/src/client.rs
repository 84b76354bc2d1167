//! Building blocks of generated clients: [`Grpc`] makes typed calls over a [`GrpcService`].

mod grpc;
mod grpc_service;

pub use self::grpc::Grpc;
pub use self::grpc_service::GrpcService;
