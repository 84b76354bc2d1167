//! Messages and stubs, and the descriptors of all.

pub mod helloworld {
    tonic::include_proto!("helloworld");
}
pub mod routeguide {
    tonic::include_proto!("routeguide");
}
pub mod echo {
    tonic::include_proto!("grpc.examples.echo");
}
pub mod unaryecho {
    tonic::include_proto!("grpc.examples.unaryecho");
}
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/examples.binpb"));
