//! Generates the same service with both generators, and one with messages of buffa.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;
use prost_types::FileDescriptorSet;
use thalweg_protobuf::sources;

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
    thalweg_build::configure()
        .buffa()
        .out_dir(folder("buffa")?)
        .include_file("mod.rs")
        .compile_protos(&["proto/shop/orders.proto"], &["proto"])?;
    let set =
        sources::compile(&["usage.proto"], |name| fs::read_to_string(Path::new("proto").join(name)).ok())?;
    tonic_prost_build::configure()
        .out_dir(folder("tonic")?)
        .compile_fds(FileDescriptorSet::decode(&*set)?)?;
    Ok(())
}
