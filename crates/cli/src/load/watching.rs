//! Observers of a run, on a separate thread so that they do not delay calls.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use thalweg_load::{Interval, Observer, Running};

use crate::failure::Failure;
use crate::runtime;

/// An event of a run.
#[derive(Clone)]
pub(super) enum RunEvent {
    /// A run starts its warm-up. A search has several runs.
    Begins(Running),
    Interval(Box<Interval>, Running),
}

/// An observer of runs.
pub(super) trait Watcher: Send {
    fn on_event(&mut self, event: &RunEvent);

    /// Called when the run is over or has failed.
    fn end(&mut self) {}
}

/// The running watchers.
pub(super) struct WatcherThread {
    sender: Sender<RunEvent>,
    thread: Option<JoinHandle<()>>,
}

impl WatcherThread {
    pub(super) fn begin(mut watchers: Vec<Box<dyn Watcher>>) -> Result<Self, Failure> {
        let (sender, events) = channel();
        let thread = (!watchers.is_empty()).then(|| {
            runtime::thread(move || {
                while let Ok(event) = events.recv() {
                    for watcher in &mut watchers {
                        watcher.on_event(&event);
                    }
                }
                for watcher in &mut watchers {
                    watcher.end();
                }
            })
        });
        Ok(Self { sender, thread: thread.transpose()? })
    }

    /// Waits until watchers have handled all events.
    pub(super) fn end(self) {
        let Self { sender, thread } = self;
        drop(sender);
        if let Some(Err(panic)) = thread.map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Observer for WatcherThread {
    fn begins(&mut self, running: &Running) {
        if self.thread.is_some() {
            // Sending fails only if the watchers have ended, here and below.
            let _ = self.sender.send(RunEvent::Begins(running.clone()));
        }
    }

    fn interval(&mut self, interval: &Interval, running: &Running) {
        if self.thread.is_some() {
            let _ = self.sender.send(RunEvent::Interval(Box::new(interval.clone()), running.clone()));
        }
    }
}
