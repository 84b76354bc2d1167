//! Where a result goes.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::failure::Failure;

/// A file, or stdout. A file is opened before there is a result: that it cannot be written is known at once.
pub(crate) struct OutputFile<'a> {
    path: Option<&'a Path>,
    /// The file was not there before.
    is_new: bool,
}

impl<'a> OutputFile<'a> {
    pub(crate) fn open(path: Option<&'a Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self { path: None, is_new: false }) };
        let is_new = !path.exists();
        // Not truncated yet: an earlier result stays until there is a new one.
        match OpenOptions::new().append(true).create(true).open(path) {
            Ok(_) => Ok(Self { path: Some(path), is_new }),
            Err(error) => Err(Failure::bad_arguments(format!("cannot write {}: {error}", path.display()))),
        }
    }

    /// The file, where it is one.
    pub(crate) fn path(&self) -> Option<&'a Path> {
        self.path
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        match self.path {
            Some(path) => replace(path, text)
                .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display()))),
            None => match io::stdout().write_all(text.as_bytes()) {
                // Whoever read has seen enough (`thalweg load … | head`).
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => {
                    written.map_err(|error| Failure::failed(format!("cannot write the result: {error}")))
                }
            },
        }
    }

    /// There is no result: leave no empty file behind.
    pub(crate) fn abandon(&self) {
        if let (Some(path), true) = (self.path, self.is_new) {
            let is_empty = fs::metadata(path).is_ok_and(|file| file.len() == 0);
            if is_empty {
                // The failure that is being reported matters more.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// A file has its old contents or its new ones, and never a part of them. What is no plain file is written to.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Where a link leads, so that it stays one.
    let whole = fs::canonicalize(path).ok().filter(|path| path.is_file());
    let folder = whole.as_deref().and_then(Path::parent);
    let new = folder.and_then(|folder| tempfile::Builder::new().prefix(".thalweg-").tempfile_in(folder).ok());
    let (Some(path), Some(mut file)) = (whole, new) else { return fs::write(path, text) };
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    file.persist(path)?;
    Ok(())
}
