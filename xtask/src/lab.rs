//! Studies of the lab, reduced to the figures that documents quote.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::failure::Result;
use crate::job::Job;
use crate::test::rust;
use crate::{files, workspace};

/// The lab's exit codes: everything was measured; some measurements failed.
const DONE: i32 = 0;
const SOME_FAILED: i32 = 1;

/// Builds the command in release mode, once per process: sources changed meanwhile do not affect the measurement.
pub(crate) fn program() -> Result<&'static Path> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if BUILT.get().is_none() {
        Job::cargo("build --release").minutes(30).run()?;
    }
    Ok(BUILT.get_or_init(|| workspace::target().join("release/thalweg")))
}

/// Runs a study with its report in `directory` and returns the figures that documents quote. Failed windows are not an
/// error: the results include them.
pub(crate) fn condensed(words: &str, directory: &Path) -> Result<Value> {
    let job = Job::new(program()?).words(&format!("lab {words} --out")).arg(directory).minutes(120);
    // Remove the results of earlier studies.
    files::remove(directory)?;
    let status = job.status()?;
    ensure!(matches!(status.code(), Some(DONE | SOME_FAILED)), "`{job}` failed: {status}");
    condensed_from(&directory.join("results.json"))
}

/// Returns the figures of a finished study that documents quote.
pub(crate) fn condensed_from(results: &Path) -> Result<Value> {
    let condense = Job::new(rust::release_example("thalweg-lab", "condense")?);
    condense.arg(results).json()
}
