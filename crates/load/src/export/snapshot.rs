//! State of a run at one moment.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{LoadRun, Running};

pub(super) struct Snapshot {
    pub(super) run: LoadRun,
    pub(super) in_flight: u64,
    /// Connections that accept calls.
    pub(super) connections: u32,
}

/// The current run, once it has begun.
#[derive(Clone, Default)]
pub(super) struct Latest(Arc<Mutex<Option<Running>>>);

impl Latest {
    pub(super) fn set(&self, running: &Running) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(running.clone());
    }

    /// Returns the state of the current run, or `None` before the first run begins.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(Snapshot {
            run: running.totals(),
            in_flight: running.in_flight(),
            connections: running.connections(),
        })
    }
}
