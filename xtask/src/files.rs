//! Files and folders.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

use crate::failure::Result;

/// All files in the folder and in those within it, in the order of their paths. Links are given and not followed.
pub(crate) fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    below_if(folder, |_| true)
}

/// The same, with only those folders within it that `enters` says yes to.
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

/// Copies what is [`below`] a folder to where another is, or will be.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_if(from, to, |_| true)
}

/// Copies what is [`below_if`].
pub(crate) fn copy_if(from: &Path, to: &Path, enters: impl Fn(&Path) -> bool) -> io::Result<()> {
    for path in below_if(from, enters)? {
        write(&to.join(path.strip_prefix(from).unwrap_or(&path)), fs::read(&path)?)?;
    }
    Ok(())
}

/// Writes a file, and makes the folders that it lies in.
pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, contents)
}

/// Removes a folder with all that is in it, if it is there.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// An empty folder, in place of what was there.
pub(crate) fn emptied(folder: PathBuf) -> io::Result<PathBuf> {
    remove(&folder)?;
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Reads a file of JSON.
pub(crate) fn json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).map_err(|why| failed!("{}: {why}", path.display()))?;
    serde_json::from_str(&text).map_err(|why| failed!("{} is not JSON: {why}", path.display()))
}

/// The members of a list, of any other value none.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text, of any other value an empty one.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}
