//! Observers of a run, on a separate thread so that they do not delay calls.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use thalweg_load::{Interval, Observer, Running};

use crate::failure::Failure;
use crate::runtime;

/// An event of a run.
#[derive(Clone)]
pub(super) enum Told {
    /// A run starts its warm-up. A search has several runs.
    Begins(Running),
    Interval(Box<Interval>, Running),
}

/// An observer of runs.
pub(super) trait Watcher: Send {
    fn told(&mut self, told: &Told);

    /// Called when the run is over or has failed.
    fn end(&mut self) {}
}

/// The running watchers.
pub(super) struct Watching {
    told: Sender<Told>,
    thread: Option<JoinHandle<()>>,
}

impl Watching {
    pub(super) fn begin(mut watchers: Vec<Box<dyn Watcher>>) -> Result<Self, Failure> {
        let (told, tells) = channel();
        let thread = (!watchers.is_empty()).then(|| {
            runtime::thread(move || {
                while let Ok(told) = tells.recv() {
                    for watcher in &mut watchers {
                        watcher.told(&told);
                    }
                }
                for watcher in &mut watchers {
                    watcher.end();
                }
            })
        });
        Ok(Self { told, thread: thread.transpose()? })
    }

    /// Waits until watchers have handled all events.
    pub(super) fn end(self) {
        let Self { told, thread } = self;
        drop(told);
        if let Some(Err(panic)) = thread.map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Observer for Watching {
    fn begins(&mut self, running: &Running) {
        if self.thread.is_some() {
            // Sending fails only if the watchers have ended, here and below.
            let _ = self.told.send(Told::Begins(running.clone()));
        }
    }

    fn interval(&mut self, interval: &Interval, running: &Running) {
        if self.thread.is_some() {
            let _ = self.told.send(Told::Interval(Box::new(interval.clone()), running.clone()));
        }
    }
}
