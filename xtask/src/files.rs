//! Walking through folders.

use std::path::{Path, PathBuf};
use std::{fs, io};

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
        let copy = to.join(path.strip_prefix(from).unwrap_or(&path));
        fs::create_dir_all(copy.parent().unwrap_or(to))?;
        fs::copy(&path, &copy)?;
    }
    Ok(())
}

/// Removes a folder with all that is in it, if it is there.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}
