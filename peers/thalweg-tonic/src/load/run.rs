//! What the workers of one run share: its clock, when it is over, and where they record.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tonic::Status;

use super::record::Recorder;
use super::{Settings, described, failed_code};

/// Times are ns since the warm-up began.
pub struct Run {
    base: Instant,
    /// The measured time begins.
    from_ns: u64,
    /// Nothing begins any more; `u64::MAX` when a count ends the run.
    over_ns: u64,
    /// The measured time ends; `u64::MAX` when it does so with the last answer.
    until_ns: u64,
    /// How many operations may still be counted, when a count ends the run.
    budget: Option<AtomicU64>,
    /// When a call ended last.
    call_ended_ns: AtomicU64,
    /// One for each thread of the runtime, so that threads do not wait for each other.
    shards: Vec<Mutex<Shard>>,
}

/// Everything that a run recorded.
pub struct Merged {
    pub shard: Shard,
    /// The measured time. Of a run by number it ends with the last counted answer.
    pub duration: Duration,
    /// From the end of the time that was asked for until the last call under way had ended; zero for a run by number.
    pub drain: Duration,
}

/// What was recorded by the workers of one thread.
pub struct Shard {
    pub recorder: Recorder,
    /// When the last operation that counts ended.
    pub last_ns: u64,
    /// What the first failure said.
    pub first_failure: Option<String>,
}

/// What becomes of an operation that is about to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It is driven, and does not count: the warm-up of a run by number.
    WarmUp,
    /// It counts if it ends within the measured time; of a stride of messages, this many may begin.
    Counted(u64),
    /// The run is over.
    Over,
}

impl Run {
    /// A run whose warm-up begins now.
    pub fn begin(settings: &Settings, threads: usize) -> Self {
        let base = Instant::now();
        let from_ns = settings.warmup_ns;
        let over_ns = settings.duration_ns.map_or(u64::MAX, |duration| from_ns + duration);
        let shard = || Mutex::new(Shard::new(base, from_ns));
        Self {
            base,
            from_ns,
            over_ns,
            until_ns: if settings.ends_with_answers() { u64::MAX } else { over_ns },
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

    /// Whether an operation may begin at `now_ns`, or a stride of `wanted` of them.
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

    /// Whether what began with `start` counts, as it ended at `ended_ns`.
    #[inline]
    pub fn counts(&self, start: Start, ended_ns: u64) -> bool {
        matches!(start, Start::Counted(_)) && self.is_measured(ended_ns)
    }

    /// This moment is within the measured time. One that ends with the last answer has no end before.
    #[inline]
    pub fn is_measured(&self, at_ns: u64) -> bool {
        self.from_ns <= at_ns && at_ns < self.until_ns
    }

    /// When the measured time ends; `None` when it does so with the last answer.
    pub fn measured_until(&self) -> Option<Instant> {
        (self.until_ns != u64::MAX).then(|| self.base + Duration::from_nanos(self.until_ns))
    }

    /// A call has ended, in whatever way.
    pub fn call_ended(&self) {
        self.call_ended_ns.fetch_max(self.now_ns(), Relaxed);
    }

    /// The run is over, but for what is under way.
    pub fn is_over(&self) -> bool {
        let spent = self.budget.as_ref().is_some_and(|budget| budget.load(Relaxed) == 0);
        spent || self.now_ns() >= self.over_ns
    }

    /// Where worker number `worker` records.
    #[inline]
    pub fn shard(&self, worker: usize) -> MutexGuard<'_, Shard> {
        self.shards[worker % self.shards.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that failed, if that falls into the measured time.
    pub fn fail(&self, worker: usize, status: &Status) {
        if self.is_measured(self.now_ns()) {
            self.count_failure(worker, status);
        }
    }

    /// Counts a call that was given up, however late, unless that falls into the warm-up.
    pub fn give_up(&self, worker: usize, status: &Status) {
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

    /// `count` operations succeeded that took `latency_ns` each, the last ending at `ended_ns`.
    #[inline]
    pub fn record(&mut self, latency_ns: u64, count: u64, ended_ns: u64) {
        self.recorder.record(latency_ns, count);
        self.last_ns = self.last_ns.max(ended_ns);
    }
}

/// Takes up to `wanted` from what is left.
fn take(budget: &AtomicU64, wanted: u64) -> Start {
    match budget.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(wanted.min(left))) {
        Ok(left) if left > 0 => Start::Counted(wanted.min(left)),
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
    fn of_a_run_by_time_counts_what_ends_in_it() {
        let run = run(CallType::Unary, Some(50), None);
        check(&run, 99, Start::Counted(16));
        check(&run, 149, Start::Counted(16));
        check(&run, 150, Start::Over);
        let counted = [99, 100, 149, 150].map(|ended_ns| run.counts(Start::Counted(16), ended_ns));
        assert_eq!(counted, [false, true, true, false]);
    }

    #[test]
    fn of_client_streams_all_counts_until_the_last_answer() {
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
    fn of_a_run_by_number_counts_what_begins_after_the_warm_up() {
        let run = run(CallType::Unary, None, Some(20));
        assert!(!run.counts(Start::WarmUp, 120) && run.counts(Start::Counted(16), 1 << 40));
        assert_eq!(run.merged().drain, Duration::ZERO);
    }

    #[test]
    fn a_total_is_given_out_exactly_and_not_in_the_warm_up() {
        let run = run(CallType::Unary, None, Some(20));
        check(&run, 50, Start::WarmUp);
        check(&run, 100, Start::Counted(16));
        check(&run, 101, Start::Counted(4));
        check(&run, 102, Start::Over);
    }
}
