//! Checks the repository's workflows with actionlint.

use crate::failure::Result;
use crate::job::Job;
use crate::{files, tools, workspace};

const FOLDER: &str = ".github/workflows";

pub(super) fn check() -> Result<String> {
    let actionlint = tools::ACTIONLINT.get()?;
    let files = files::below(&workspace::root().join(FOLDER))?;
    ensure!(!files.is_empty(), "no workflows in {FOLDER}");
    Job::new(actionlint).arg("-no-color").args(&files).run()?;
    Ok(format!("{} workflows", files.len()))
}
