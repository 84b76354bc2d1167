//! Output of a result, including while the run continues.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thalweg_load::LoadRun;

use super::watching::{RunEvent, Watcher};
use crate::failure::Failure;
use crate::format::RunFormat;
use crate::output::OutputFile;

/// Minimum interval of partial results.
const CHECKPOINT: Duration = Duration::from_secs(5);
/// Writing partial results takes at most this fraction of the time.
const CHECKPOINT_SHARE: u32 = 200;

/// Output file and format.
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

    /// Returns a watcher that writes partial results, so that a killed run leaves one. `None` unless the output is a
    /// plain file.
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
    fn on_event(&mut self, event: &RunEvent) {
        let RunEvent::Interval(_, running) = event else { return };
        let began = Instant::now();
        if began < self.next {
            return;
        }
        // An error is reported at the end, unless it is gone by then.
        let _ = OutputFile::File(&self.path)
            .write(self.format.syntax(), &self.format.rendered(&running.so_far()));
        self.next = began + CHECKPOINT.max(began.elapsed() * CHECKPOINT_SHARE);
    }
}
