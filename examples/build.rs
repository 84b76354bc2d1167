//! Generates clients and servers from the `.proto` files. The messages of `notes.proto` are buffa's, those of
//! `quotes.proto` are JSON.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    // The descriptors for reflection are written next to the generated code.
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    thalweg_build::configure()
        .file_descriptor_set_path(out.join("helloworld.bin"))
        .embed_descriptors(true)
        .compile_protos(&["proto/helloworld.proto"], &["proto"])?;
    thalweg_build::compile_protos("proto/echo.proto")?;
    thalweg_build::compile_protos("proto/routeguide.proto")?;
    thalweg_build::configure()
        .buffa_views()
        .embed_descriptors(true)
        .compile_protos(&["proto/notes.proto"], &["proto"])?;
    thalweg_build::configure()
        .codec_path("crate::Json")
        .message_attribute(".", "#[derive(serde::Serialize, serde::Deserialize)]")
        .compile_protos(&["proto/quotes.proto"], &["proto"])?;
    Ok(())
}
