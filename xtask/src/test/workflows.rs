//! The workflows of the repository's forge, as actionlint reads them.

use crate::job::{Failure, Job, Log};
use crate::{files, tools, workspace};

const FOLDER: &str = ".github/workflows";

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let actionlint = tools::ACTIONLINT.get(log)?;
    let files = files::below(&workspace::root().join(FOLDER))?;
    if files.is_empty() {
        return Err(Failure::failed(format!("there are no workflows in {FOLDER}")));
    }
    let lint = files.iter().fold(Job::new(actionlint).arg("-no-color"), Job::arg);
    lint.run(log)?;
    Ok(format!("{} workflows", files.len()))
}
