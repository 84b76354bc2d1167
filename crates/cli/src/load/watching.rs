//! Who is told how a run goes, on a thread of their own: what they do is not in the way of calls.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use thalweg_load::{Interval, Running};

/// Is told how a run goes.
pub(super) trait Watcher: Send {
    /// An interval has ended.
    fn interval(&mut self, interval: &Interval, running: &Running);

    /// The run is over, or has failed.
    fn end(&mut self) {}
}

/// Watchers at their work.
pub(super) struct Watching {
    told: Sender<(Interval, Running)>,
    thread: Option<JoinHandle<()>>,
}

impl Watching {
    pub(super) fn begin(mut watchers: Vec<Box<dyn Watcher>>) -> Self {
        let (told, tells) = channel::<(Interval, Running)>();
        let thread = (!watchers.is_empty()).then(|| {
            std::thread::spawn(move || {
                while let Ok((interval, running)) = tells.recv() {
                    for watcher in &mut watchers {
                        watcher.interval(&interval, &running);
                    }
                }
                watchers.iter_mut().for_each(|watcher| watcher.end());
            })
        });
        Self { told, thread }
    }

    pub(super) fn tell(&self, interval: &Interval, running: &Running) {
        if self.thread.is_some() {
            // Watchers that are gone miss nothing.
            let _ = self.told.send((interval.clone(), running.clone()));
        }
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
