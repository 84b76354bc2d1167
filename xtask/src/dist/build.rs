//! Builds the command for older systems.

use std::env;
use std::path::PathBuf;

use super::target::{GLIBC, TARGET};
use crate::failure::Result;
use crate::job::Job;
use crate::{tools, workspace};

/// Builds the stripped command. Zig links against the symbol versions of [`GLIBC`], so the program needs no newer C
/// library.
pub(super) fn command() -> Result<PathBuf> {
    let programs = tools::zigbuild()?;
    let path = env::var("PATH").unwrap_or_default();
    Job::cargo("zigbuild --locked --profile small --package thalweg-cli --target")
        .arg(format!("{TARGET}.{GLIBC}"))
        .env("PATH", format!("{}:{path}", programs.display()))
        .builds(45)
        .run()?;
    Ok(workspace::target().join(TARGET).join("small/thalweg"))
}
