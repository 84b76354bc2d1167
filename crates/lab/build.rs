//! Makes the stubs of the services that the laboratory serves and drives.

fn main() {
    let protos = [
        "proto/grpc/health/v1/health.proto",
        "proto/grpc/testing/benchmark_service.proto",
        "proto/grpc/testing/test.proto",
    ];
    // Payloads are `Bytes`: every answer shares one block of zeros instead of allocating its own.
    let generated = thalweg_build::configure().bytes(".grpc.testing").compile_protos(&protos, &["proto"]);
    if let Err(error) = generated {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
