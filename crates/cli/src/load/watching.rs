//! Who is told how a run goes, on a thread of their own: what they do is not in the way of calls.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use thalweg_load::{Interval, Observer, Running};

use crate::failure::Failure;
use crate::runtime;

/// How a run goes.
#[derive(Clone)]
pub(super) enum Told {
    /// It begins, with its warm-up; where the highest rate is looked for, one run begins after the other.
    Begins(Running),
    /// An interval has ended.
    Interval(Box<Interval>, Running),
}

/// Is told how a run goes.
pub(super) trait Watcher: Send {
    fn told(&mut self, told: &Told);

    /// The run is over, or has failed.
    fn end(&mut self) {}
}

/// Watchers at their work.
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

    /// Waits until all have been told all.
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
            // Watchers that are gone miss nothing, here and below.
            let _ = self.told.send(Told::Begins(running.clone()));
        }
    }

    fn interval(&mut self, interval: &Interval, running: &Running) {
        if self.thread.is_some() {
            let _ = self.told.send(Told::Interval(Box::new(interval.clone()), running.clone()));
        }
    }
}
