//! Generates the chat's clients and services from its `.proto` file, and its descriptors for reflection.

use std::env;
use std::path::PathBuf;

fn main() -> Result<(), thalweg_build::Error> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    thalweg_build::configure()
        .file_descriptor_set_path(out.join("chat.bin"))
        .compile_protos(&["proto/chat.proto"], &["proto"])
}
