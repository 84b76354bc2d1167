//! Generates stubs with tonic's own generators, without protoc.

use std::error::Error;

use prost::Message as _;
use prost_types::FileDescriptorSet;
use thalweg_protobuf::sources;
use tonic_prost_build::configure;

/// Part of the script, so that it does not depend on the folder of the manifest: `patched` has another one.
const PROTOS: &[(&str, &str)] = &[
    ("arcs.proto", include_str!("proto/arcs.proto")),
    ("included.proto", include_str!("proto/included.proto")),
    ("names.proto", include_str!("proto/names.proto")),
    ("shop.proto", include_str!("proto/shop.proto")),
    ("stubs.proto", include_str!("proto/stubs.proto")),
    ("wellknown.proto", include_str!("proto/wellknown.proto")),
];

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo runs the script again when it was compiled again; without this line, for each changed test.
    println!("cargo::rerun-if-changed=Cargo.toml");
    let proto =
        |name: &str| PROTOS.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    let compiled = |file: &str| -> Result<FileDescriptorSet, Box<dyn Error>> {
        let set = sources::compile(&[file], proto)?;
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
