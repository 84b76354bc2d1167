//! State shared by the workers of a run: its clock, its end, and its records.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tonic::Status;

use super::record::Recorder;
use super::{Settings, described, failed_code};

/// Times are ns since the start of the warm-up.
pub struct Run {
    base: Instant,
    /// Start of the measured time.
    from_ns: u64,
    /// No operation starts from here on; `u64::MAX` if a count ends the run.
    over_ns: u64,
    /// End of the measured time; `u64::MAX` if the last response ends it.
    until_ns: u64,
    /// Operations that may still be counted, if a count ends the run.
    budget: Option<AtomicU64>,
    /// End of the last call.
    call_ended_ns: AtomicU64,
    /// One per runtime thread, to avoid contention.
    shards: Vec<Mutex<Shard>>,
}

/// All records of a run.
pub struct Merged {
    pub shard: Shard,
    /// The measured time. In a run by number, the last counted response ends it.
    pub duration: Duration,
    /// From the end of the requested time to the end of the last call in flight; zero for a run by number.
    pub drain: Duration,
}

/// Records of the workers of one thread.
pub struct Shard {
    pub recorder: Recorder,
    /// End of the last operation that counts.
    pub last_ns: u64,
    /// Message of the first failure.
    pub first_failure: Option<String>,
}

/// The fate of an operation about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Runs but does not count: the warm-up of a run by number.
    WarmUp,
    /// Counts if it ends within the measured time; carries how many operations of a stride may start.
    Counted(u64),
    Over,
}

impl Run {
    /// Starts a run with its warm-up.
    pub fn begin(settings: &Settings, threads: usize) -> Self {
        let base = Instant::now();
        let from_ns = settings.warmup_ns;
        let over_ns = settings.duration_ns.map_or(u64::MAX, |duration| from_ns + duration);
        let shard = || Mutex::new(Shard::new(base, from_ns));
        Self {
            base,
            from_ns,
            over_ns,
            until_ns: if settings.ends_with_responses() { u64::MAX } else { over_ns },
            budget: settings.total.map(AtomicU64::new),
            call_ended_ns: AtomicU64::new(0),
            shards: (0..threads.max(1)).map(|_| shard()).collect(),
        }
    }

    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    pub fn measured_from(&self) -> Instant {
        self.base + Duration::from_nanos(self.from_ns)
    }

    /// Decides whether an operation, or a stride of `wanted` operations, may start at `now_ns`.
    #[inline]
    pub fn start(&self, now_ns: u64, wanted: u64) -> Start {
        if now_ns >= self.over_ns {
            return Start::Over;
        }
        match &self.budget {
            None => Start::Counted(wanted),
            Some(_) if now_ns < self.from_ns => Start::WarmUp,
            Some(budget) => take(budget, wanted),
        }
    }

    /// Returns whether an operation that started with `start` and ended at `ended_ns` counts.
    #[inline]
    pub fn counts(&self, start: Start, ended_ns: u64) -> bool {
        matches!(start, Start::Counted(_)) && self.is_measured(ended_ns)
    }

    /// Returns whether the moment is within the measured time, which is open-ended if the last response ends it.
    #[inline]
    pub fn is_measured(&self, at_ns: u64) -> bool {
        self.from_ns <= at_ns && at_ns < self.until_ns
    }

    /// Returns the end of the measured time; `None` if the last response ends it.
    pub fn measured_until(&self) -> Option<Instant> {
        (self.until_ns != u64::MAX).then(|| self.base + Duration::from_nanos(self.until_ns))
    }

    /// Records that a call has ended, successfully or not.
    pub fn call_ended(&self) {
        self.call_ended_ns.fetch_max(self.now_ns(), Relaxed);
    }

    /// Returns whether no further operation may start.
    pub fn is_over(&self) -> bool {
        let spent = self.budget.as_ref().is_some_and(|budget| budget.load(Relaxed) == 0);
        spent || self.now_ns() >= self.over_ns
    }

    /// Returns the records of a worker.
    #[inline]
    pub fn shard(&self, worker: usize) -> MutexGuard<'_, Shard> {
        self.shards[worker % self.shards.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a failed call, if it failed within the measured time.
    pub fn fail(&self, worker: usize, status: &Status) {
        if self.is_measured(self.now_ns()) {
            self.count_failure(worker, status);
        }
    }

    /// Counts a timed-out call, even after the measured time, but not in the warm-up.
    pub fn record_timeout(&self, worker: usize, status: &Status) {
        if self.now_ns() >= self.from_ns {
            self.count_failure(worker, status);
        }
    }

    fn count_failure(&self, worker: usize, status: &Status) {
        let mut shard = self.shard(worker);
        shard.recorder.error(failed_code(status));
        shard.first_failure.get_or_insert_with(|| described(status));
    }

    pub fn merged(&self) -> Merged {
        let mut all = Shard::new(self.base, self.from_ns);
        for worker in 0..self.shards.len() {
            let shard = self.shard(worker);
            all.recorder.merge(&shard.recorder);
            all.last_ns = all.last_ns.max(shard.last_ns);
            all.first_failure = all.first_failure.or_else(|| shard.first_failure.clone());
        }
        let drain_ns = self.call_ended_ns.load(Relaxed).saturating_sub(self.over_ns);
        let until_ns = match (self.over_ns, self.until_ns) {
            (u64::MAX, _) => all.last_ns,
            (over_ns, u64::MAX) => over_ns + drain_ns,
            (over_ns, _) => over_ns,
        };
        Merged {
            shard: all,
            duration: Duration::from_nanos(until_ns - self.from_ns),
            drain: Duration::from_nanos(drain_ns),
        }
    }
}

impl Shard {
    fn new(base: Instant, from_ns: u64) -> Self {
        let recorder = Recorder::starting_at(base + Duration::from_nanos(from_ns));
        Self { recorder, last_ns: from_ns, first_failure: None }
    }

    /// Records `count` operations of `latency_ns` each, the last of which ended at `ended_ns`.
    #[inline]
    pub fn record(&mut self, latency_ns: u64, count: u64, ended_ns: u64) {
        self.recorder.record(latency_ns, count);
        self.last_ns = self.last_ns.max(ended_ns);
    }
}

/// Takes up to `wanted` from the budget.
fn take(budget: &AtomicU64, wanted: u64) -> Start {
    match budget.fetch_update(Relaxed, Relaxed, |remaining| remaining.checked_sub(wanted.min(remaining))) {
        Ok(remaining) if remaining > 0 => Start::Counted(wanted.min(remaining)),
        _ => Start::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::CallType;

    fn run(call: CallType, duration_ns: Option<u64>, total: Option<u64>) -> Run {
        let settings = Settings {
            target: "127.0.0.1:1".parse().unwrap(),
            call,
            size: 0,
            in_flight: 1,
            connections: 1,
            warmup_ns: 100,
            duration_ns,
            total,
            timeout: Duration::from_secs(10),
            announce: false,
        };
        Run::begin(&settings, 1)
    }

    fn check(run: &Run, now_ns: u64, expected: Start) {
        assert_eq!(run.start(now_ns, 16), expected, "at {now_ns} ns");
    }

    #[test]
    fn timed_run_counts_operations_that_end_in_it() {
        let run = run(CallType::Unary, Some(50), None);
        check(&run, 99, Start::Counted(16));
        check(&run, 149, Start::Counted(16));
        check(&run, 150, Start::Over);
        let counted = [99, 100, 149, 150].map(|ended_ns| run.counts(Start::Counted(16), ended_ns));
        assert_eq!(counted, [false, true, true, false]);
    }

    #[test]
    fn client_streams_count_until_last_response() {
        let run = run(CallType::ClientStream, Some(50), None);
        check(&run, 149, Start::Counted(16));
        check(&run, 150, Start::Over);
        assert!(run.counts(Start::Counted(16), 1 << 40) && run.measured_until().is_none());
        std::thread::sleep(Duration::from_micros(1));
        run.call_ended();
        let merged = run.merged();
        assert!(merged.drain > Duration::ZERO);
        assert_eq!(merged.duration, Duration::from_nanos(50) + merged.drain);
    }

    #[test]
    fn counted_run_counts_operations_after_warm_up() {
        let run = run(CallType::Unary, None, Some(20));
        assert!(!run.counts(Start::WarmUp, 120) && run.counts(Start::Counted(16), 1 << 40));
        assert_eq!(run.merged().drain, Duration::ZERO);
    }

    #[test]
    fn total_is_spent_exactly_and_not_in_warm_up() {
        let run = run(CallType::Unary, None, Some(20));
        check(&run, 50, Start::WarmUp);
        check(&run, 100, Start::Counted(16));
        check(&run, 101, Start::Counted(4));
        check(&run, 102, Start::Over);
    }
}
