//! Tasks of a run's workers, and their supervision.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use thalweg::Status;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::plan::Plan;
use crate::progress::Progress;
use crate::worker::{Shared, work};

/// Maximum interval between checks of the workers.
const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(250);

pub(crate) struct Workers {
    shared: Arc<Shared>,
    /// Maximum time a worker may wait for the same event.
    patience: Option<Duration>,
    tasks: JoinSet<()>,
    watched: HashMap<Id, WatchedWorker>,
    is_aborted: bool,
}

struct WatchedWorker {
    worker: usize,
    progress: Arc<Progress>,
    task: AbortHandle,
}

impl Workers {
    pub(crate) fn begin(plan: &Plan, shared: &Arc<Shared>) -> Self {
        let mut workers = Self {
            shared: shared.clone(),
            patience: plan.patience,
            tasks: JoinSet::new(),
            watched: HashMap::new(),
            is_aborted: false,
        };
        (0..plan.in_flight as usize).for_each(|worker| workers.start(worker, shared.progress()));
        workers
    }

    fn start(&mut self, worker: usize, progress: Arc<Progress>) {
        let task = self.tasks.spawn(work(self.shared.clone(), worker, progress.clone()));
        if self.patience.is_some() {
            self.watched.insert(task.id(), WatchedWorker { worker, progress, task });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits for a worker to end. While the run lasts, an aborted one is replaced.
    pub(crate) async fn next_ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => {
                self.watched.remove(&id);
            }
            Some(Err(error)) if error.is_cancelled() => {
                let gone = self.watched.remove(&error.id());
                if let Some(due) = &self.shared.due {
                    due.done();
                }
                if let Some(gone) =
                    gone.filter(|_| !self.is_aborted && !self.shared.is_over(self.shared.now_ns()))
                {
                    self.start(gone.worker, gone.progress);
                }
            }
            Some(Err(error)) => propagate_panic(error),
            None => {}
        }
    }

    pub(crate) fn abort_all(&mut self) {
        self.is_aborted = true;
        self.tasks.abort_all();
    }

    /// Returns the ticks at which workers are checked.
    pub(crate) fn check_ticks(&self) -> Interval {
        let every = self.patience.map_or(CHECK_INTERVAL_MAX, |patience| patience / 4);
        let mut check_ticks = interval(every.clamp(Duration::from_millis(1), CHECK_INTERVAL_MAX));
        check_ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        check_ticks
    }

    /// Aborts every worker that has waited too long, which cancels its call.
    pub(crate) fn abort_stuck(&self) {
        let Some(patience) = self.patience else { return };
        let (now_ns, patience_ns) = (self.shared.now_ns(), patience.as_nanos() as u64);
        for watched in self.watched.values() {
            if let Some(since_ns) = watched.progress.since_ns()
                && now_ns.saturating_sub(since_ns) > patience_ns
            {
                watched.progress.rests();
                watched.task.abort();
                let status = Status::deadline_exceeded(format!("nothing arrived within {patience:?}"));
                self.shared.fail(since_ns, status);
            }
        }
    }
}

/// Propagates a task's panic. Cancelled tasks were stopped on purpose.
pub(crate) fn propagate_panic(error: JoinError) {
    if error.is_panic() {
        std::panic::resume_unwind(error.into_panic());
    }
}
