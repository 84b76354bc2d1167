//! Where the result goes, also while there is only a part of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thalweg_load::LoadRun;

use super::watching::{Told, Watcher};
use crate::failure::Failure;
use crate::format::RunFormat;
use crate::output::OutputFile;

/// What there is so far is written so often.
const CHECKPOINT: Duration = Duration::from_secs(5);
/// And no more of the time than one part in so many is spent on it.
const CHECKPOINT_SHARE: u32 = 200;

/// Where the result goes, in its format.
pub(super) struct Output<'a> {
    file: OutputFile<'a>,
    format: RunFormat,
}

impl<'a> Output<'a> {
    pub(super) fn open(path: Option<&'a Path>, format: RunFormat) -> Result<Self, Failure> {
        Ok(Self { file: OutputFile::open(path)?, format })
    }

    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        self.format.write(&self.file, text)
    }

    pub(super) fn write_run(&self, run: &LoadRun) -> Result<(), Failure> {
        self.write(&self.format.rendered(run))
    }

    /// Writes the file while the run goes on, so that one that is killed leaves what there was.
    pub(super) fn checkpoints(&self) -> Option<Box<dyn Watcher>> {
        let path = self.file.file()?.to_owned();
        Some(Box::new(Checkpoints { path, format: self.format, next: Instant::now() + CHECKPOINT }))
    }
}

struct Checkpoints {
    path: PathBuf,
    format: RunFormat,
    next: Instant,
}

impl Watcher for Checkpoints {
    fn told(&mut self, told: &Told) {
        let Told::Interval(_, running) = told else { return };
        let began = Instant::now();
        if began < self.next {
            return;
        }
        // That the result cannot be written is said at the end; until then there may be room again.
        let _ = OutputFile::File(&self.path)
            .write(self.format.syntax(), &self.format.rendered(&running.so_far()));
        self.next = began + CHECKPOINT.max(began.elapsed() * CHECKPOINT_SHARE);
    }
}
