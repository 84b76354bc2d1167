//! The log of this process, one per step or command: it receives the output of all programs that it runs.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::failure::Result;
use crate::workspace;

static NAME: Mutex<String> = Mutex::new(String::new());

/// Starts an empty log for the step or command `name`.
pub(crate) fn start(name: &str) -> Result<()> {
    fs::create_dir_all(workspace::output())?;
    name.clone_into(&mut NAME.lock().unwrap_or_else(PoisonError::into_inner));
    File::create(path()).map_err(|error| failed!("{}: {error}", path().display()))?;
    Ok(())
}

pub(crate) fn path() -> PathBuf {
    let name = NAME.lock().unwrap_or_else(PoisonError::into_inner);
    workspace::output().join(format!("{name}.log"))
}

pub(crate) fn line(line: impl Display) -> Result<()> {
    writeln!(file()?, "{line}")?;
    Ok(())
}

/// Opens the log for a program's output.
pub(crate) fn file() -> Result<File> {
    Ok(OpenOptions::new().create(true).append(true).open(path())?)
}
