//! Stubs by tonic's own generator, without protoc, and the descriptors that reflection serves.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=../route_guide.proto");
    let files = ["helloworld.proto", "echo.proto", "unaryecho.proto", "route_guide.proto"];
    let set = protox::compile(files, ["proto", ".."])?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("examples.binpb"), set.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(set)?;
    Ok(())
}
