//! Makes the messages and the stubs of OTLP.

use std::process::ExitCode;

fn main() -> ExitCode {
    let generated = thalweg_build::configure().include_file("otlp.rs").compile_protos(
        &["proto/opentelemetry/proto/collector/metrics/v1/metrics_service.proto"],
        &["proto"],
    );
    if let Err(error) = generated {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
