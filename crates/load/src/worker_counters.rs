//! Counters of a worker, and the messages left in the run.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use thalweg::{CallOptions, CallPeer};

use crate::progress::Progress;
use crate::tally::Shards;

/// Maximum stream messages counted at once.
pub(crate) const BATCH_MESSAGES_MAX: u64 = 16;

/// Counters of a worker, and the run's clock. Each worker has its own instance: a shared reference count would move
/// between processors with each stream.
#[derive(Debug)]
pub(crate) struct WorkerCounters {
    pub(crate) shards: Arc<Shards>,
    /// Start of the run's clock. All times are ns of this clock.
    pub(crate) base: Instant,
    /// Start of the measured window.
    pub(crate) from_ns: u64,
    /// Stream messages left, if their number ends the run. Those of the warm-up do not count.
    pub(crate) messages_left: Option<Arc<AtomicU64>>,
    /// Whether starting anything has ended.
    pub(crate) stopped: Arc<AtomicBool>,
    pub(crate) progress: Arc<Progress>,
    /// `None` with a single server.
    pub(crate) by_server: Option<ByServer>,
}

/// The server of a worker's call, with several servers.
#[derive(Debug)]
pub(crate) struct ByServer {
    pub(crate) peer: CallPeer,
    /// Options of each step of the scenario, with `peer`.
    pub(crate) options: Vec<CallOptions>,
}

impl ByServer {
    /// `options` are those of each step.
    pub(crate) fn new<'o>(options: impl Iterator<Item = &'o CallOptions>) -> Self {
        let peer = CallPeer::new();
        let options = options.map(|options| options.clone().peer(&peer)).collect();
        Self { peer, options }
    }
}

impl WorkerCounters {
    pub(crate) fn now_ns(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.messages_left.is_some()
    }

    /// Takes up to `wanted` of the messages left.
    pub(crate) fn take(&self, now_ns: u64, wanted: u64) -> u64 {
        let Some(left) = self.messages_left.as_ref().filter(|_| now_ns >= self.from_ns) else {
            return wanted;
        };
        let taken = left.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(wanted)));
        taken.map_or(0, |left| left.min(wanted))
    }

    /// Counts a stream that fails before its first message as some of the messages left. So a run ends even if the
    /// server refuses all streams.
    pub(crate) fn take_failed(&self) {
        self.take(self.now_ns(), BATCH_MESSAGES_MAX);
    }

    /// Gives back messages taken at `taken_ns`.
    pub(crate) fn give_back(&self, taken_ns: u64, count: u64) {
        if let Some(left) = self.messages_left.as_ref().filter(|_| count > 0 && taken_ns >= self.from_ns) {
            left.fetch_add(count, Relaxed);
        }
    }
}
