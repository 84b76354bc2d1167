//! Generates stubs with tonic's own generators, without protoc.

use std::error::Error;
use std::fs;
use std::path::Path;

use prost::Message as _;
use prost_types::FileDescriptorSet;
use thalweg_protobuf::sources;
use tonic_prost_build::configure;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let compiled = |file: &str| -> Result<FileDescriptorSet, Box<dyn Error>> {
        let set = sources::compile(&[file], |name| fs::read_to_string(Path::new("proto").join(name)).ok())?;
        Ok(FileDescriptorSet::decode(&*set)?)
    };
    configure().compile_fds(compiled("shop.proto")?)?;
    configure().generate_default_stubs(true).compile_fds(compiled("stubs.proto")?)?;
    configure().use_arc_self(true).compile_fds(compiled("arcs.proto")?)?;
    configure()
        .extern_path(".names.Animal", "crate::Animal")
        .skip_debug(["names.Plain"])
        .compile_fds(compiled("names.proto")?)?;
    configure()
        .extern_path(".google.protobuf.Empty", "()")
        .compile_well_known_types(true)
        .compile_fds(compiled("wellknown.proto")?)?;
    Ok(())
}
