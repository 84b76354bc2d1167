//! End-to-end tests of studies, their results and pages.

mod browser;
mod codec;
mod json;
mod report_browser;
pub(crate) mod sample;
mod sample_reports;
mod study;
mod validity;

use std::path::PathBuf;

/// Returns an unused path for a test's files.
pub(crate) fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("thalweg-lab-{name}-{}", std::process::id()))
}
