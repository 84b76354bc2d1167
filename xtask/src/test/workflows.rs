//! The workflows of the repository's forge, as actionlint reads them.

use std::fs;

use crate::job::{Failure, Job, Log};
use crate::{tools, workspace};

const FOLDER: &str = ".github/workflows";

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let actionlint = tools::ACTIONLINT.get(log)?;
    let mut files: Vec<_> =
        fs::read_dir(workspace::root().join(FOLDER))?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    if files.is_empty() {
        return Err(Failure::failed(format!("there are no workflows in {FOLDER}")));
    }
    let lint = files.iter().fold(Job::new(actionlint).arg("-no-color"), Job::arg);
    lint.run(log)?;
    Ok(format!("{} workflows", files.len()))
}
