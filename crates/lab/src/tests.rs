//! Studies from end to end, their results and pages.

mod browser;
mod codec;
mod json;
mod report_browser;
pub(crate) mod sample;
mod sample_reports;
mod study;
mod validity;

use std::path::PathBuf;

/// A path for what a test writes, which nothing is at yet.
pub(crate) fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("thalweg-lab-{name}-{}", std::process::id()))
}
