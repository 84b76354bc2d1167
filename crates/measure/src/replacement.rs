//! Atomic file replacement: a reader sees the old or the new contents, even if the program is killed.
//!
//! Files are not synced to disk, so a power loss may still lose the new contents.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Mode of a new file, before the process's umask applies.
const MODE_NEW: u32 = 0o666;

/// The new contents of a file. [`commit`](Self::commit) puts them in place; dropping the value discards them.
///
/// The contents go to a temporary file in the same folder, which `commit` renames. Special cases:
///
/// - Symbolic links stay links. Permissions are kept, and so is the owner if the process may set it.
/// - Pipes, devices and paths of open files, such as `/dev/stdout`, receive every write immediately.
/// - If the process may not create files in the folder, `commit` overwrites the file. That is not atomic.
#[derive(Debug)]
pub struct Replacement {
    strategy: Strategy,
    file: File,
}

#[derive(Debug)]
enum Strategy {
    /// `file` is a temporary file in the target's folder.
    Renamed { temporary: PathBuf, target: PathBuf },
    /// `file` is the target. The contents are buffered here, and `commit` writes them.
    Overwritten(Vec<u8>),
    /// `file` is the target, and writes go to it directly.
    Direct,
}

impl Replacement {
    /// Starts replacing the file at `path`, or creating it if there is none.
    ///
    /// If `path` is a symbolic link whose target is missing, this creates the target as an empty file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not writable or its folder does not exist.
    pub fn of(path: &Path) -> io::Result<Self> {
        let Some(old) = existing(path)? else {
            return Self::with_temporary_file(path.to_owned(), MODE_NEW, None);
        };
        // A rename would also replace a read-only file, so this checks that the file is writable.
        let file = OpenOptions::new().append(true).open(path)?;
        if !old.is_file() || is_descriptor(path) {
            return Ok(Self { strategy: Strategy::Direct, file });
        }
        match Self::with_temporary_file(fs::canonicalize(path)?, old.mode(), Some(&old)) {
            Err(error) if is_folder_not_writable(&error) => {
                Ok(Self { strategy: Strategy::Overwritten(Vec::new()), file })
            }
            replacement => replacement,
        }
    }

    /// Starts replacing `path` with a file of this mode. Replaces a symbolic link itself, not its target.
    ///
    /// # Errors
    ///
    /// Returns an error if the process cannot create a file in the folder.
    pub fn with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        Self::with_temporary_file(path.to_owned(), mode, None)
    }

    fn with_temporary_file(target: PathBuf, mode: u32, old: Option<&Metadata>) -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        loop {
            let name = format!(".thalweg-{}-{}.new", process::id(), MADE.fetch_add(1, Relaxed));
            let temporary = folder.join(name);
            let file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary) {
                // Another process used the same PID, in another container or at an earlier time.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let replacement = Self { strategy: Strategy::Renamed { temporary, target }, file };
            if let Some(old) = old {
                // Usually only root may change the owner. Otherwise the file belongs to the process's user.
                let _ = fchown(&replacement.file, Some(old.uid()), Some(old.gid()));
                replacement.file.set_permissions(Permissions::from_mode(old.mode()))?;
            }
            return Ok(replacement);
        }
    }

    /// Returns the file if writes go to it directly, as with pipes and devices. Otherwise `None`.
    pub fn direct(&self) -> Option<&File> {
        matches!(self.strategy, Strategy::Direct).then_some(&self.file)
    }

    /// Puts the new contents in place of the old ones.
    ///
    /// # Errors
    ///
    /// Returns an error if renaming or writing fails. The old contents then remain, unless the folder was not writable
    /// and the file had to be overwritten.
    pub fn commit(mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.strategy, Strategy::Direct) {
            Strategy::Renamed { temporary, target } => fs::rename(&temporary, target).inspect_err(|_| {
                let _ = fs::remove_file(&temporary);
            }),
            Strategy::Overwritten(contents) => {
                self.file.set_len(0)?;
                self.file.write_all(&contents)
            }
            Strategy::Direct => self.file.flush(),
        }
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.strategy {
            Strategy::Overwritten(contents) => contents.write(bytes),
            Strategy::Renamed { .. } | Strategy::Direct => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Strategy::Renamed { temporary, .. } = &self.strategy {
            // A leftover temporary file is harmless, so this ignores errors.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Replaces the contents of the file at `path`.
///
/// # Errors
///
/// Returns the errors of [`Replacement::of`], of writing and of [`Replacement::commit`].
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut replacement = Replacement::of(path)?;
    replacement.write_all(contents)?;
    replacement.commit()
}

/// Returns the metadata of the file at `path`, or `None` if there is none.
///
/// Creates an empty target for a dangling link, because `canonicalize` needs one.
fn existing(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if fs::symlink_metadata(path).is_err() {
                return Ok(None);
            }
            OpenOptions::new().append(true).create(true).open(path)?;
            fs::metadata(path).map(Some)
        }
        found => found.map(Some),
    }
}

/// Returns whether the path names an open file of a process. Such a file is appended to, not replaced.
fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdout")
        || path == Path::new("/dev/stderr")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc")
}

/// Returns whether the folder is not writable. Files in it may still be.
fn is_folder_not_writable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn old_contents_stay_until_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        let mut first = Replacement::of(&path).unwrap();
        first.write_all(b"one").unwrap();
        assert!(!path.exists());
        first.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");

        let mut second = Replacement::of(&path).unwrap();
        second.write_all(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        drop(second);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(names(folder.path()), ["result"]);
        replace(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
    }

    #[test]
    fn replacing_keeps_links_and_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o640);

        let dangling = folder.path().join("dangling");
        symlink("later", &dangling).unwrap();
        replace(&dangling, b"now").unwrap();
        assert_eq!(fs::read(folder.path().join("later")).unwrap(), b"now");
        assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink());
    }

    #[test]
    fn with_mode_replaces_link_not_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let (elsewhere, link) = (folder.path().join("elsewhere"), folder.path().join("key"));
        fs::write(&elsewhere, "mine").unwrap();
        symlink(&elsewhere, &link).unwrap();
        let mut key = Replacement::with_mode(&link, 0o600).unwrap();
        key.write_all(b"secret").unwrap();
        key.commit().unwrap();
        assert_eq!(
            (fs::read(&elsewhere).unwrap(), fs::read(&link).unwrap()),
            (b"mine".into(), b"secret".into())
        );
        assert_eq!(fs::symlink_metadata(&link).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn pipe_receives_writes_before_commit() {
        let (mut reader, writer) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        let mut pipe = Replacement::of(Path::new(&path)).unwrap();
        assert!(pipe.direct().is_some());
        drop(writer);
        pipe.write_all(b"one").unwrap();
        let mut bytes = [0; 3];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"one");
    }

    #[test]
    fn descriptor_path_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"before ").unwrap();
        let descriptor = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&log));
        replace(Path::new(&descriptor), b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before after");
    }

    #[test]
    fn missing_folder_is_an_error() {
        let error = Replacement::of(Path::new("/nonexistent/result")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().starts_with("No such file"), "{error}");
    }
}
