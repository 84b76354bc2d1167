//! Include folders. The caller supplies the file access, because this crate does no I/O.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::builtin;
use super::tree::{SourceFile, SourceTree};

/// File access functions; programs use [`std::fs`]:
///
/// ```
/// # use std::fs;
/// # use thalweg_protobuf::sources::Disk;
/// let disk = Disk { read: |path| fs::read(path), canonicalize: |path| fs::canonicalize(path) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Reads a file.
    pub read: fn(&Path) -> io::Result<Vec<u8>>,
    /// Returns a path without `.`, `..` and symbolic links, which identifies a file.
    pub canonicalize: fn(&Path) -> io::Result<PathBuf>,
}

/// Folders that are searched for imports, in order.
///
/// A file found in several ways, such as by two spellings of its path or in a nested folder, is a single file. It
/// keeps the name under which it was first opened. A byte order mark is ignored, and invalid UTF-8 is replaced.
#[derive(Clone, Debug)]
pub struct Folders {
    disk: Disk,
    folders: Vec<Folder>,
}

#[derive(Clone, Debug)]
struct Folder {
    path: PathBuf,
    /// `None` if the folder does not exist.
    canonical: Option<PathBuf>,
}

/// Error for a path that no import can name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The file does not exist, neither at the path nor in a folder.
    #[error(transparent)]
    NotFound(io::Error),
    /// The file exists, but in none of the folders.
    #[error("the file is in none of the include folders")]
    Outside,
    /// The name is not UTF-8.
    #[error("the file's name is not UTF-8")]
    Utf8,
}

impl Folders {
    /// Creates an empty list of folders.
    #[must_use]
    pub fn new(disk: Disk) -> Self {
        Folders { disk, folders: Vec::new() }
    }

    /// Appends a folder.
    pub fn push(&mut self, path: impl Into<PathBuf>) {
        let path = path.into();
        // An empty path is the current folder.
        let searched = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        let canonical = (self.disk.canonicalize)(searched).ok();
        self.folders.push(Folder { path, canonical });
    }

    /// Returns the name by which imports refer to a file: its path below the first folder that contains it. A path
    /// that does not exist is looked up in the folders.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, or if it is in none of the folders.
    pub fn name(&self, file: &Path) -> Result<String, FolderError> {
        let name_by_path = match (self.disk.canonicalize)(file) {
            Ok(canonical) => {
                // A symbolic link is named by its own location, if that is in a folder.
                let mut candidates = self.resolved_path(file).into_iter().chain([canonical]);
                match candidates.find_map(|candidate| self.below(&candidate)) {
                    Some(below) => return name_of(&below),
                    None => Err(FolderError::Outside),
                }
            }
            Err(error) => Err(FolderError::NotFound(error)),
        };
        let contains = |folder: &Folder| (self.disk.canonicalize)(&folder.path.join(file)).is_ok();
        let name = name_of(file)?;
        if file.is_relative() && self.folders.iter().any(contains) || builtin::source(&name).is_some() {
            return Ok(name);
        }
        name_by_path
    }

    /// Returns the canonical path of the folder that contains `file`, joined with its name there.
    fn resolved_path(&self, file: &Path) -> Option<PathBuf> {
        let parent = file.parent()?;
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        Some((self.disk.canonicalize)(parent).ok()?.join(file.file_name()?))
    }

    /// Returns the path below the first folder that contains a canonical path.
    fn below(&self, path: &Path) -> Option<PathBuf> {
        let below =
            |folder: &Folder| path.strip_prefix(folder.canonical.as_deref()?).ok().map(Path::to_owned);
        self.folders.iter().find_map(below)
    }
}

/// Returns a relative path as written in imports.
fn name_of(path: &Path) -> Result<String, FolderError> {
    let mut name = String::new();
    for component in path.components() {
        if component == Component::CurDir {
            continue;
        }
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(component.as_os_str().to_str().ok_or(FolderError::Utf8)?);
    }
    Ok(name)
}

impl SourceTree for Folders {
    fn open(&self, name: &str) -> io::Result<SourceFile> {
        for folder in &self.folders {
            let path = folder.path.join(name);
            match (self.disk.read)(&path) {
                // UTF-16 text, or not text at all.
                Ok(bytes) if bytes.contains(&0) && std::str::from_utf8(&bytes).is_err() => {
                    let message = format!("{} is not UTF-8 text", path.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
                Ok(bytes) => {
                    let file =
                        SourceFile::new(String::from_utf8_lossy(&bytes)).path(path.display().to_string());
                    return Ok(match (self.disk.canonicalize)(&path) {
                        Ok(canonical) => file.identity(canonical.display().to_string()),
                        Err(_) => file,
                    });
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(error) => {
                    let message = format!("failed to read {}: {error}", path.display());
                    return Err(io::Error::new(error.kind(), message));
                }
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }
}
