//! Where the result goes, also while there is only a part of it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thalweg_load::{Interval, LoadRun, Running};

use super::watching::Watcher;
use crate::failure::Failure;
use crate::format::RunFormat;

/// What there is so far is written so often.
const CHECKPOINT: Duration = Duration::from_secs(5);
/// And no more of the time than one part in so many is spent on it.
const CHECKPOINT_SHARE: u32 = 200;

/// Where the result goes. A file is opened before the run: that it cannot be written is known at once.
pub(super) struct Output<'a> {
    path: Option<&'a Path>,
    format: RunFormat,
    /// The file was not there before.
    is_new: bool,
}

impl<'a> Output<'a> {
    pub(super) fn open(path: Option<&'a Path>, format: RunFormat) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self { path: None, format, is_new: false }) };
        let is_new = !path.exists();
        // Not truncated yet: an earlier result stays until there is a new one.
        match OpenOptions::new().append(true).create(true).open(path) {
            Ok(_) => Ok(Self { path: Some(path), format, is_new }),
            Err(error) => Err(Failure::bad_arguments(format!("cannot write {}: {error}", path.display()))),
        }
    }

    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
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

    pub(super) fn write_run(&self, run: &LoadRun) -> Result<(), Failure> {
        self.write(&self.format.rendered(run))
    }

    /// There is no result: leave no empty file behind.
    pub(super) fn abandon(&self) {
        if let (Some(path), true) = (self.path, self.is_new) {
            let is_empty = fs::metadata(path).is_ok_and(|file| file.len() == 0);
            if is_empty {
                // The failure that is being reported matters more.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Writes the file while the run goes on, so that one that is killed leaves what there was.
    pub(super) fn checkpoints(&self) -> Option<Box<dyn Watcher>> {
        let path = self.path.filter(|path| path.is_file())?.to_owned();
        Some(Box::new(Checkpoints { path, format: self.format, next: Instant::now() + CHECKPOINT }))
    }
}

/// A file has its old contents or its new ones, and never a part of them. What is no plain file is written to.
fn replace(path: &Path, text: &str) -> io::Result<()> {
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

struct Checkpoints {
    path: PathBuf,
    format: RunFormat,
    next: Instant,
}

impl Watcher for Checkpoints {
    fn begins(&mut self, _: &Running) {}

    fn interval(&mut self, _: &Interval, running: &Running) {
        let began = Instant::now();
        if began < self.next {
            return;
        }
        // That the result cannot be written is said at the end; until then there may be room again.
        let _ = replace(&self.path, &self.format.rendered(&running.so_far()));
        self.next = began + CHECKPOINT.max(began.elapsed() * CHECKPOINT_SHARE);
    }
}
