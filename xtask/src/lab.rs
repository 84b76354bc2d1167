//! Studies of the lab, for what documents quote of them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::failure::Result;
use crate::job::Job;
use crate::test::rust;
use crate::{files, workspace};

/// The lab's exit codes: all was measured; some of it was not.
const DONE: i32 = 0;
const SOME_FAILED: i32 = 1;

/// The command, built as people run it: once, so that sources that change meanwhile are no part of what is measured.
pub(crate) fn program() -> Result<&'static Path> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if BUILT.get().is_none() {
        Job::cargo("build --release").minutes(30).run()?;
    }
    Ok(BUILT.get_or_init(|| workspace::target().join("release/thalweg")))
}

/// Runs a study, whose report goes to `directory`; what documents quote of it. Windows may fail, which the results say
/// themselves.
pub(crate) fn condensed(words: &str, directory: &Path) -> Result<Value> {
    let job = Job::new(program()?).words(&format!("lab {words} --out")).arg(directory).minutes(120);
    // What an earlier study left is no result of this one.
    files::remove(directory)?;
    let status = job.status()?;
    ensure!(matches!(status.code(), Some(DONE | SOME_FAILED)), "`{job}` failed: {status}");
    condensed_from(&directory.join("results.json"))
}

/// What documents quote of a study that has been made.
pub(crate) fn condensed_from(results: &Path) -> Result<Value> {
    let condense = Job::new(rust::release_example("thalweg-lab", "condense")?);
    condense.arg(results).json()
}
