//! The log of this process: the file that takes the output of all that it runs. A process is one step or one command.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::failure::Result;
use crate::workspace;

static NAME: Mutex<String> = Mutex::new(String::new());

/// Starts the log of the step or command `name`, empty.
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

/// Appends a line.
pub(crate) fn line(line: impl Display) -> Result<()> {
    writeln!(file()?, "{line}")?;
    Ok(())
}

/// The file, open for what a program writes.
pub(crate) fn file() -> Result<File> {
    Ok(OpenOptions::new().create(true).append(true).open(path())?)
}
