//! Generates the messages of `shapes.proto` for each codec with generated code.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use buffa::Message as _;
use buffa_codegen::CodeGenConfig;
use buffa_codegen::generated::descriptor::FileDescriptorSet as BuffaDescriptors;
use prost::Message as _;
use thalweg_protobuf::sources;

/// Messages of the study, and their folder.
const FILE: &str = "shapes.proto";
const MESSAGES: &str = "../messages/proto";
/// Messages of the example `speed`.
const SPEED: &str = "speed.proto";
const CODECS: &[&str] =
    &["prost", "buffa", "prost-reflect", "serde_json", "sonic-rs", "pbjson", "rmp-serde", "thalweg-protobuf"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed={MESSAGES}");
    println!("cargo:rustc-env=CODEC_VERSIONS={}", versions());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let encoded = descriptors(FILE, MESSAGES)?;
    fs::write(out.join("shapes.bin"), &encoded)?;

    prost_build::Config::new().compile_fds(prost_types::FileDescriptorSet::decode(&*encoded)?)?;
    pbjson_build::Builder::new().register_descriptors(&encoded)?.build(&[".shapes"])?;
    buffa(FILE, &encoded, &out.join("buffa"))?;

    let encoded = descriptors(SPEED, "proto")?;
    fs::write(out.join("speed.bin"), &encoded)?;
    buffa(SPEED, &encoded, &out.join("speed"))
}

/// Compiles a file and its imports to a descriptor set.
fn descriptors(file: &str, folder: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(sources::compile(&[file], |name| fs::read_to_string(Path::new(folder).join(name)).ok())?)
}

/// Generates code for buffa. Uses buffa-codegen, because buffa-build needs a descriptor file that cargo watches. It
/// would be generated here, so each build would start again.
fn buffa(file: &str, descriptors: &[u8], out: &Path) -> Result<(), Box<dyn Error>> {
    let set = BuffaDescriptors::decode_from_slice(descriptors)?;
    fs::create_dir_all(out)?;
    for made in buffa_codegen::generate(&set.file, &[file.to_owned()], &CodeGenConfig::default())? {
        fs::write(out.join(made.name), made.content)?;
    }
    Ok(())
}

/// Returns the codecs' versions in the lock file, for the report: `prost=0.14.4 buffa=0.9.2 …`.
fn versions() -> String {
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    let lock = fs::read_to_string("../../Cargo.lock").unwrap_or_default();
    let package = |block: &str| {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            Some(line.trim_end_matches('"').to_owned())
        };
        let name = value("name").filter(|name| CODECS.contains(&name.as_str()))?;
        Some(format!("{name}={}", value("version")?))
    };
    lock.split("[[package]]").filter_map(package).collect::<Vec<_>>().join(" ")
}
