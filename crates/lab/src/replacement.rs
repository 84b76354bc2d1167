//! Files that are replaced as a whole: whoever reads one, or whatever kills the program, finds its old contents or its
//! new ones.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a new file may at most be, before the process's umask.
const MODE_NEW: u32 = 0o666;

/// The new contents of a file. They are written beside it, and take its place with [`commit`](Self::commit); dropped
/// before, they are gone.
///
/// A symbolic link stays one, and permissions and the owner stay, as far as the process may set them. What is no plain
/// file (a pipe, a device) gets what is written at once. A file in a folder in which no other can be made is
/// overwritten.
#[derive(Debug)]
pub struct Replacement {
    way: Way,
    file: File,
}

#[derive(Debug)]
enum Way {
    /// The file is beside its target.
    Renamed { temporary: PathBuf, target: PathBuf },
    /// The file is the target, and is overwritten when all is there.
    Overwritten(Vec<u8>),
    /// The file is the target.
    Direct,
}

impl Replacement {
    /// Begins to replace the file at `path`, which may be there or not.
    ///
    /// # Errors
    ///
    /// If the file can't be written, or its folder is not there.
    pub fn of(path: &Path) -> io::Result<Self> {
        let Some(old) = existing(path)? else {
            return Self::beside(path.to_owned(), MODE_NEW, None);
        };
        // A file that may not be written is not replaced, either.
        let file = OpenOptions::new().append(true).open(path)?;
        if !old.is_file() || is_descriptor(path) {
            return Ok(Self { way: Way::Direct, file });
        }
        match Self::beside(fs::canonicalize(path)?, old.mode(), Some(&old)) {
            Err(error) if is_closed_folder(&error) => Ok(Self { way: Way::Overwritten(Vec::new()), file }),
            begun => begun,
        }
    }

    /// Begins to replace whatever is at `path`, also a link itself, by a file of this mode.
    ///
    /// # Errors
    ///
    /// If no file can be made in the folder.
    pub fn with_mode(path: &Path, mode: u32) -> io::Result<Self> {
        Self::beside(path.to_owned(), mode, None)
    }

    fn beside(target: PathBuf, mode: u32, old: Option<&Metadata>) -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        loop {
            let name = format!(".thalweg-{}-{}.new", process::id(), MADE.fetch_add(1, Relaxed));
            let temporary = folder.join(name);
            let file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary) {
                // Of a process of the same number, in another container or long ago.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let begun = Self { way: Way::Renamed { temporary, target }, file };
            if let Some(old) = old {
                // Only root gives files away; others own what they make.
                let _ = fchown(&begun.file, Some(old.uid()), Some(old.gid()));
                begun.file.set_permissions(Permissions::from_mode(old.mode()))?;
            }
            return Ok(begun);
        }
    }

    /// What is no plain file: what is written is there at once.
    pub fn direct(&self) -> Option<&File> {
        matches!(self.way, Way::Direct).then_some(&self.file)
    }

    /// Puts the new contents in place of the old ones.
    ///
    /// # Errors
    ///
    /// If that is not possible. The old contents are still there then, unless they were being overwritten.
    pub fn commit(mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.way, Way::Direct) {
            Way::Renamed { temporary, target } => fs::rename(&temporary, target).inspect_err(|_| {
                let _ = fs::remove_file(&temporary);
            }),
            Way::Overwritten(contents) => {
                self.file.set_len(0)?;
                self.file.write_all(&contents)
            }
            Way::Direct => self.file.flush(),
        }
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.way {
            Way::Overwritten(contents) => contents.write(bytes),
            Way::Renamed { .. } | Way::Direct => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Way::Renamed { temporary, .. } = &self.way {
            // That it stays behind is no reason to fail.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Replaces the contents of the file at `path`.
///
/// # Errors
///
/// Those of [`Replacement::of`] and of writing.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut replacement = Replacement::of(path)?;
    replacement.write_all(contents)?;
    replacement.commit()
}

/// What is at `path`. A link that leads nowhere yet gets an empty file to lead to.
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

/// Whether the path names an open file of a process: what it has is added to, not replaced.
fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdout")
        || path == Path::new("/dev/stderr")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc")
}

/// Whether a folder takes no new file, which says nothing of the files in it.
fn is_closed_folder(error: &io::Error) -> bool {
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
    fn contents_are_the_old_ones_until_all_of_the_new_ones_are_there() {
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
    fn links_and_permissions_stay() {
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
    fn a_mode_replaces_links_themselves() {
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
    fn pipes_get_what_is_written_at_once() {
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
    fn what_an_open_file_has_is_added_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"before ").unwrap();
        let descriptor = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&log));
        replace(Path::new(&descriptor), b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before after");
    }

    #[test]
    fn a_folder_that_is_not_there_is_said() {
        let error = Replacement::of(Path::new("/nonexistent/result")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().starts_with("No such file"), "{error}");
    }
}
