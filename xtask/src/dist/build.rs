//! Building the command for machines that are older than this one.

use std::env;
use std::path::PathBuf;

use super::target::{GLIBC, TARGET};
use crate::failure::Result;
use crate::job::Job;
use crate::{tools, workspace};

/// The command, stripped. Zig links it, which knows the functions of each version of the C library: so it needs none
/// that came after [`GLIBC`], wherever it is built.
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
