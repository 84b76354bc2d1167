//! Studies of the lab, for what documents quote of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::job::{Failure, Job, Log};
use crate::test::rust;
use crate::workspace;

/// The lab's exit codes: all was measured; some of it was not.
const DONE: i32 = 0;
const SOME_FAILED: i32 = 1;

/// The command, built as people run it: once, so that sources that change meanwhile are no part of what is measured.
pub(crate) fn program(log: &Log) -> Result<&'static Path, Failure> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if BUILT.get().is_none() {
        Job::cargo("build --release").minutes(30).run(log)?;
    }
    Ok(BUILT.get_or_init(|| workspace::target().join("release/thalweg")))
}

/// Runs a study, whose report goes to `directory`; what documents quote of it. Windows may fail, which the results say
/// themselves.
pub(crate) fn condensed(words: &str, directory: &Path, log: &Log) -> Result<Value, Failure> {
    let job = Job::new(program(log)?).words(&format!("lab {words} --out")).arg(directory).minutes(120);
    // What an earlier study left is no result of this one.
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    let status = job.status(log)?;
    if !matches!(status.code(), Some(DONE | SOME_FAILED)) {
        return Err(Failure::failed(format!("`{job}` failed: {status}")));
    }
    condensed_from(&directory.join("results.json"), log)
}

/// What documents quote of a study that has been made.
pub(crate) fn condensed_from(results: &Path, log: &Log) -> Result<Value, Failure> {
    let condense = Job::new(rust::release_example("thalweg-lab", "condense", log)?);
    let text = condense.arg(results).text(log)?;
    serde_json::from_str(&text)
        .map_err(|why| Failure::failed(format!("nothing is quoted of {}: {why}", results.display())))
}
