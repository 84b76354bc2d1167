//! Makes the stubs of the services that the laboratory serves and drives.

fn main() {
    let protos = ["proto/grpc/testing/benchmark_service.proto", "proto/grpc/testing/test.proto"];
    let echo = ["proto/thalweg/lab/v1/echo.proto"];
    let Some(out) = std::env::var_os("OUT_DIR") else { panic!("cargo sets OUT_DIR for build scripts") };
    let generated = thalweg_build::configure()
        // Payloads are `Bytes`: every answer shares one block of zeros instead of allocating its own.
        .bytes(".grpc.testing")
        .file_descriptor_set_path(std::path::Path::new(&out).join("testing.bin"))
        .compile_protos(&protos, &["proto"])
        .and_then(|()| thalweg_build::configure().embed_descriptors(true).compile_protos(&echo, &["proto"]));
    if let Err(error) = generated {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
