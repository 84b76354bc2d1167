//! Generates stubs with tonic's own generator, without protoc, and reads the version from the lock file.

use std::error::Error;
use std::{env, fs};

const PROTO: &str = "../../crates/load/proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    println!("cargo::rerun-if-changed=Cargo.lock");
    let files = protox::compile(["grpc/testing/benchmark_service.proto"], [PROTO])?;
    // With `Bytes`, all payloads share one block of zeros instead of copying it.
    tonic_prost_build::configure().bytes(".grpc.testing").compile_fds(files)?;

    let lock = fs::read_to_string("Cargo.lock")?;
    let after = lock.split_once("name = \"tonic\"\nversion = \"").ok_or("Cargo.lock names no tonic")?.1;
    let version = after.split('"').next().unwrap_or_default();
    // The same sources build the peer on Thalweg's transport.
    let stack = match env::var("CARGO_PKG_NAME")?.as_str() {
        "peer-tonic" => format!("tonic {version}"),
        "peer-tonic-patched" => format!("thalweg as tonic {version}"),
        _ => format!("thalweg-tonic {} (tonic {version})", env::var("CARGO_PKG_VERSION")?),
    };
    println!("cargo::rustc-env=STACK={stack}");
    Ok(())
}
