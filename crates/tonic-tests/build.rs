//! Stubs by tonic's own generator, without protoc.

use std::error::Error;

use tonic_prost_build::configure;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let compiled = |file: &str| protox::compile([file], ["proto"]);
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
