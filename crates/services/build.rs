//! Generates code and descriptors for the enabled services.

use std::env;
use std::path::Path;

fn main() {
    let enabled = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let mut protos = Vec::new();
    if enabled("HEALTH") {
        protos.push("proto/grpc/health/v1/health.proto");
    }
    if enabled("REFLECTION") {
        protos.extend([
            "proto/grpc/reflection/v1/reflection.proto",
            "proto/grpc/reflection/v1alpha/reflection.proto",
        ]);
    }
    if enabled("CHANNELZ") {
        protos.push("proto/grpc/channelz/v1/channelz.proto");
    }
    if enabled("ORCA") {
        protos.extend([
            "proto/xds/data/orca/v3/orca_load_report.proto",
            "proto/xds/service/orca/v3/orca.proto",
        ]);
    }
    let Some(out) = env::var_os("OUT_DIR") else { panic!("cargo sets OUT_DIR for build scripts") };
    let generated = thalweg_build::configure()
        // Shares the bytes of descriptors without copying.
        .bytes(".grpc.reflection")
        .file_descriptor_set_path(Path::new(&out).join("services.bin"))
        .compile_protos(&protos, &["proto"]);
    if let Err(error) = generated {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
