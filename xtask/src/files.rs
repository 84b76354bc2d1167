//! Files and folders.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

use crate::failure::Result;

/// Returns all files below the folder, sorted by path. Symbolic links are included and not followed.
pub(crate) fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    below_if(folder, |_| true)
}

/// Like [`below`], but enters only the folders for which `enters` returns true.
pub(crate) fn below_if(folder: &Path, enters: impl Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                found.push(path);
            } else if enters(&path) {
                waiting.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies all files [`below`] a folder to another folder.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_if(from, to, |_| true)
}

/// Copies all files that [`below_if`] finds.
pub(crate) fn copy_if(from: &Path, to: &Path, enters: impl Fn(&Path) -> bool) -> io::Result<()> {
    for path in below_if(from, enters)? {
        write(&to.join(path.strip_prefix(from).unwrap_or(&path)), fs::read(&path)?)?;
    }
    Ok(())
}

/// Writes a file and creates its parent folders.
pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, contents)
}

/// Removes a folder and its content if it exists.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// Creates an empty folder in place of any existing one.
pub(crate) fn create_empty(folder: PathBuf) -> io::Result<PathBuf> {
    remove(&folder)?;
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Reads a JSON file.
pub(crate) fn json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).map_err(|why| failed!("{}: {why}", path.display()))?;
    serde_json::from_str(&text).map_err(|why| failed!("invalid JSON in {}: {why}", path.display()))
}

/// Returns the members of an array; none for any other value.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a string's text; an empty one for any other value.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}
