//! The same service by both generators.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let folder = |name: &str| {
        let folder = out.join(name);
        fs::create_dir_all(&folder).map(|()| folder)
    };
    thalweg_build::configure()
        .out_dir(folder("native")?)
        .compile_protos(&["proto/usage.proto"], &["proto"])?;
    tonic_prost_build::configure()
        .out_dir(folder("tonic")?)
        .compile_fds(protox::compile(["usage.proto"], ["proto"])?)?;
    Ok(())
}
