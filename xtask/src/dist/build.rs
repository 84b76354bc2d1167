//! Building the command for machines that are older than this one.

use std::env;
use std::path::PathBuf;

use super::target::{GLIBC, TARGET};
use crate::job::{Failure, Job, Log};
use crate::{tools, workspace};

/// The command, stripped. Zig links it, which knows the functions of each version of the C library: so it needs none
/// that came after [`GLIBC`], wherever it is built.
pub(super) fn command(log: &Log) -> Result<PathBuf, Failure> {
    let programs = tools::zigbuild(log)?;
    let path = env::var("PATH").unwrap_or_default();
    Job::cargo("zigbuild --locked --profile small --package thalweg-cli --target")
        .arg(format!("{TARGET}.{GLIBC}"))
        .env("PATH", format!("{}:{path}", programs.display()))
        .builds()
        .minutes(45)
        .run(log)?;
    Ok(workspace::target().join(TARGET).join("small/thalweg"))
}
