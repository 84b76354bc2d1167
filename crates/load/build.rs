//! Generates the stubs of the services that the lab serves and drives.

use std::path::Path;
use std::{env, fs};

use thalweg_build::{Builder, Error, configure};

/// Folder with the codec study's protos: symlinks into `crates/messages`, regular files in the published package.
const MESSAGES: &str = "messages";
/// 64-bit fields, which are strings in JSON.
const WIDE: &[&str] = &[
    "SeveralData.an_int64",
    "Order.created_at",
    "Order.updated_at",
    "LogRecord.time_ns",
    "LogRecord.took_ns",
    "Visitor.id",
    "Event.time_ms",
    "Samples.begin_ms",
];

fn main() {
    let Some(out) = env::var_os("OUT_DIR") else { panic!("cargo sets OUT_DIR for build scripts") };
    let out = Path::new(&out);
    let generated = testing(out)
        .and_then(|()| otlp())
        .and_then(|()| shapes())
        .and_then(|()| echo())
        .and_then(|()| views(&out.join("views")));
    if let Err(error) = generated {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Generates gRPC's own test services.
fn testing(out: &Path) -> Result<(), Error> {
    let protos = ["proto/grpc/testing/benchmark_service.proto", "proto/grpc/testing/test.proto"];
    configure()
        // Payloads are `Bytes`, so that all responses share one block of zeros.
        .bytes(".grpc.testing")
        .file_descriptor_set_path(out.join("testing.bin"))
        .compile_protos(&protos, &["proto"])
}

/// Generates the messages and stubs of OTLP.
fn otlp() -> Result<(), Error> {
    let proto = "proto/opentelemetry/proto/collector/metrics/v1/metrics_service.proto";
    configure().include_file("otlp.rs").compile_protos(&[proto], &["proto"])
}

/// Generates the codec study's messages, with serde support for JSON clients.
fn shapes() -> Result<(), Error> {
    let with = |builder: Builder, field: &str, way: &str| {
        let attribute = format!("#[serde(with = \"crate::services::proto_json::{way}\")]");
        builder.field_attribute(format!(".shapes.{field}"), attribute)
    };
    let derived = "#[derive(serde::Serialize, serde::Deserialize)]\n\
                   #[serde(rename_all = \"camelCase\", default)]";
    let builder = configure().message_attribute(".shapes", derived);
    let builder = WIDE.iter().fold(builder, |builder, field| with(builder, field, "wide"));
    let builder = with(builder, "Samples.counts", "wide_array");
    let builder = with(builder, "LogRecord.level", "level");
    builder.compile_protos(&[format!("{MESSAGES}/shapes.proto")], &[MESSAGES])
}

/// Generates the services of the gRPC and JSON API comparison.
fn echo() -> Result<(), Error> {
    let protos = ["proto/thalweg/lab/v1/echo.proto", "proto/thalweg/lab/v1/echo_shapes.proto"];
    configure()
        .embed_descriptors(true)
        .extern_path(".shapes", "crate::services::shapes_proto")
        .compile_protos(&protos, &["proto", MESSAGES])
}

/// Generates the same messages as views, for a handwritten server of the same service.
fn views(out: &Path) -> Result<(), Error> {
    fs::create_dir_all(out).expect("cargo's directory for output is writable");
    configure()
        .buffa_views()
        .build_client(false)
        .build_server(false)
        .out_dir(out)
        .compile_protos(&["proto/thalweg/lab/v1/echo.proto"], &["proto"])
}
