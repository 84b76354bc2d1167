//! Waiting time of a worker.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Start of a worker's current wait, in ns of the run's clock; 0 if it does not wait.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU64);

impl Progress {
    #[inline]
    pub(crate) fn waits_since(&self, now_ns: u64) {
        self.0.store(now_ns.max(1), Relaxed);
    }

    #[inline]
    pub(crate) fn rests(&self) {
        self.0.store(0, Relaxed);
    }

    pub(crate) fn since_ns(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|&since_ns| since_ns > 0)
    }
}
