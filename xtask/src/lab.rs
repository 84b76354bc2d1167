//! Studies of the lab, for what documents quote of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::job::{Failure, Job, Log};
use crate::workspace;

/// The command, built as people run it.
pub(crate) fn program(log: &Log) -> Result<PathBuf, Failure> {
    Job::cargo("build --release").minutes(30).run(log)?;
    Ok(workspace::target().join("release/thalweg"))
}

/// Runs a study, whose report goes to `directory`; what documents quote of it.
pub(crate) fn condensed(words: &str, directory: &Path, log: &Log) -> Result<Value, Failure> {
    let job = Job::new(program(log)?).words(&format!("lab {words} --out")).arg(directory);
    job.minutes(60).run(log)?;
    let condense = Job::cargo("run --release --package thalweg-lab --example condense --");
    let text = condense.minutes(30).arg(directory.join("results.json")).text(log)?;
    serde_json::from_str(&text).map_err(|why| Failure::failed(format!("`lab {words}` gave no JSON: {why}")))
}
