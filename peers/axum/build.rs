//! Generates stubs with tonic's own generator, without protoc, and reads the versions from the lock file.

use std::error::Error;
use std::fs;

const PROTO: &str = "../../crates/load/proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    println!("cargo::rerun-if-changed=Cargo.lock");
    let files = protox::compile(["thalweg/lab/v1/echo.proto"], [PROTO])?;
    tonic_prost_build::configure().build_client(false).compile_fds(files)?;

    let lock = fs::read_to_string("Cargo.lock")?;
    let [axum, serde_json, tonic] = ["axum", "serde_json", "tonic"].map(|name| version(&lock, name));
    println!("cargo::rustc-env=STACK=axum {axum} with serde_json {serde_json}, beside tonic {tonic}");
    Ok(())
}

fn version<'l>(lock: &'l str, name: &str) -> &'l str {
    let after = lock.split_once(&format!("name = \"{name}\"\nversion = \"")).map_or("", |parts| parts.1);
    after.split('"').next().unwrap_or_default()
}
