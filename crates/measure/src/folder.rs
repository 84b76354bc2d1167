//! Folders of results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the `*.json` files of a folder, sorted by name.
///
/// # Errors
///
/// Returns an error if the folder cannot be read.
pub fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut files: Vec<PathBuf> = files.into_iter().map(|file| file.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort_unstable();
    Ok(files)
}
