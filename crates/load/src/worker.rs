//! The workers: each has one call under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::call::{Callee, Went};
use crate::pacer::Due;
use crate::tally::{Shards, Times};

/// How long a worker of a closed loop rests after a failed call: a server that refuses everything is not hammered.
const REST: Duration = Duration::from_millis(10);

/// What the workers of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) callee: Callee,
    pub(crate) base: Instant,
    /// Calls that were to begin earlier are not counted; ns since `base`, as all times here.
    pub(crate) from_ns: u64,
    /// No call begins any more; and in a closed loop none that ends later is counted.
    pub(crate) until_ns: u64,
    /// Starts, in an open loop.
    pub(crate) due: Option<Due>,
    /// Calls that may still begin, where a number ends a closed loop.
    pub(crate) left: Option<AtomicU64>,
    pub(crate) stopped: AtomicBool,
    pub(crate) begun: AtomicU64,
    pub(crate) under_way: AtomicU64,
    pub(crate) shards: Shards,
}

impl Shared {
    pub(crate) fn now_ns(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    /// Begins no more calls.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        if let Some(due) = &self.due {
            due.close();
        }
    }

    fn is_over(&self, now_ns: u64) -> bool {
        self.stopped.load(Relaxed) || now_ns >= self.until_ns
    }

    /// Whether another call may begin, where a number ends a closed loop. Those of the warm-up are not counted.
    fn takes_one(&self, counts: bool) -> bool {
        match &self.left {
            Some(left) if counts => left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok(),
            _ => true,
        }
    }
}

/// Makes calls until the run is over.
pub(crate) async fn work(shared: Arc<Shared>, worker: usize) {
    match &shared.due {
        Some(due) => {
            while let Some((number, intended_ns)) = due.next().await {
                let began_ns = shared.now_ns();
                let counts = intended_ns >= shared.from_ns;
                let went = call(&shared, worker, Some(number)).await;
                if counts {
                    let times = Times { intended_ns, began_ns, ended_ns: shared.now_ns() };
                    shared.shards.of(worker).count(times, &went);
                }
            }
        }
        None => repeat(&shared, worker).await,
    }
}

/// The end of a call is the start of the next: one reading of the clock for both.
async fn repeat(shared: &Shared, worker: usize) {
    let mut began_ns = shared.now_ns();
    while !shared.is_over(began_ns) {
        let counts = began_ns >= shared.from_ns;
        if !shared.takes_one(counts) {
            break;
        }
        let went = call(shared, worker, None).await;
        let ended_ns = shared.now_ns();
        // By time what ends within it counts, whenever it began: what is under way at the end was under way at the
        // beginning, too.
        let counts = if shared.left.is_some() {
            counts
        } else {
            (shared.from_ns..shared.until_ns).contains(&ended_ns)
        };
        if counts {
            shared.shards.of(worker).count(Times { intended_ns: began_ns, began_ns, ended_ns }, &went);
        }
        began_ns = ended_ns;
        if went.failure.is_some() {
            tokio::time::sleep(REST).await;
            began_ns = shared.now_ns();
        }
    }
}

/// The call of this number, or of the next one.
async fn call(shared: &Shared, worker: usize, number: Option<u64>) -> Went {
    let next = shared.begun.fetch_add(1, Relaxed);
    shared.under_way.fetch_add(1, Relaxed);
    let _ends = Ends(&shared.under_way);
    shared.callee.call(worker, number.unwrap_or(next)).await
}

/// Counts a call as ended, however it ends.
struct Ends<'a>(&'a AtomicU64);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
