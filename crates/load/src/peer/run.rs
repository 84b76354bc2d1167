//! What the workers of one run share: its clock, when it is over, and where they record.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use thalweg::{Code, Status};
use thalweg_measure::code::code_name;
use thalweg_measure::shards::Shards;

use crate::record::{CallType, LoadSettings, Recorder};

/// One run: warm-up from `base`, measured from `from_ns` on.
///
/// A run by time counts what ends within its window, whenever it began: so a slow stack's last calls are neither waited
/// for nor lost, and the rate is that of the window. A run by number counts the operations that it gave out, and the
/// time until the last has ended; so does a run of client streams, of whose messages nobody sees when they end: what
/// was handed over counts with the time until the streams are answered.
#[derive(Debug)]
pub(super) struct Run {
    base: Instant,
    /// The window begins; ns since `base`, as all times here.
    from_ns: u64,
    /// The window ends, and nothing begins any more.
    until_ns: AtomicU64,
    /// How many operations may still be counted, when a count ends the run.
    budget: Option<AtomicU64>,
    /// What began is counted whenever it ends, and the window lasts until then.
    waits_for_all: bool,
    shards: Shards<Shard>,
}

/// What was recorded by the workers of one thread.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) recorder: Recorder,
    /// When the last counted operation ended.
    pub(super) last_ns: u64,
    /// What the first failure said.
    pub(super) first_failure: Option<String>,
}

/// What becomes of an operation that is about to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// It is driven and not counted.
    WarmUp,
    /// It counts if the run [holds](Run::holds) its end; of a stride of messages, this many may begin.
    Counted(u64),
    /// The run is over.
    Over,
}

impl Run {
    /// A run whose warm-up begins now.
    pub(super) fn begin(settings: &LoadSettings, threads: usize) -> Self {
        let base = Instant::now();
        let from = base + Duration::from_nanos(settings.warmup_ns);
        let shard = || Shard {
            recorder: Recorder::starting_at(from),
            last_ns: settings.warmup_ns,
            first_failure: None,
        };
        let until_ns = settings.duration_ns.map_or(u64::MAX, |duration| settings.warmup_ns + duration);
        Self {
            base,
            from_ns: settings.warmup_ns,
            until_ns: AtomicU64::new(until_ns),
            budget: settings.total.map(AtomicU64::new),
            waits_for_all: settings.total.is_some() || settings.call == CallType::ClientStream,
            shards: Shards::new(threads, shard),
        }
    }

    /// The time now, in ns since the warm-up began. (An u64 holds 584 years.)
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    /// Since measuring began; negative in the warm-up.
    pub(super) fn since_measuring_ns(&self) -> i64 {
        self.now_ns().cast_signed() - self.from_ns.cast_signed()
    }

    /// When measuring begins.
    pub(super) fn measured_from(&self) -> Instant {
        self.base + Duration::from_nanos(self.from_ns)
    }

    /// Whether an operation may begin at `now_ns`, or a stride of `wanted` of them.
    #[inline]
    pub(super) fn start(&self, now_ns: u64, wanted: u64) -> Start {
        if now_ns >= self.until_ns.load(Relaxed) {
            return Start::Over;
        }
        match &self.budget {
            None => Start::Counted(wanted),
            Some(_) if now_ns < self.from_ns => Start::WarmUp,
            Some(budget) => take(budget, wanted),
        }
    }

    /// What ends at `ended_ns` counts, unless it belongs to the warm-up.
    #[inline]
    pub(super) fn holds(&self, ended_ns: u64) -> bool {
        self.waits_for_all || (self.from_ns..=self.until_ns.load(Relaxed)).contains(&ended_ns)
    }

    /// No operation begins from now on.
    pub(super) fn stop(&self) {
        self.until_ns.fetch_min(self.now_ns(), Relaxed);
    }

    /// The run is over, but for what is under way.
    pub(super) fn is_over(&self) -> bool {
        self.now_ns() >= self.until_ns.load(Relaxed)
            || self.budget.as_ref().is_some_and(|budget| budget.load(Relaxed) == 0)
    }

    /// Measuring has begun: failures count.
    pub(super) fn is_measuring(&self) -> bool {
        self.now_ns() >= self.from_ns
    }

    /// Measuring had begun when the run was stopped.
    pub(super) fn was_measuring(&self) -> bool {
        self.until_ns.load(Relaxed) > self.from_ns
    }

    /// When the window ends, if a time or an interrupt ends it.
    pub(super) fn until(&self) -> Option<Instant> {
        let until_ns = Some(self.until_ns.load(Relaxed)).filter(|&until_ns| until_ns != u64::MAX)?;
        Some(self.base + Duration::from_nanos(until_ns))
    }

    /// How long the window was: until its end, or, where all is waited for, until the last of it had ended.
    pub(super) fn measured(&self, last_ns: u64) -> Duration {
        let until_ns = self.until_ns.load(Relaxed);
        let ended_ns = match (&self.budget, self.waits_for_all) {
            (Some(_), _) => last_ns,
            (None, true) => last_ns.max(until_ns),
            (None, false) => until_ns,
        };
        Duration::from_nanos(ended_ns.saturating_sub(self.from_ns))
    }

    /// The window lasts until all that began in it has ended.
    pub(super) fn waits_for_all(&self) -> bool {
        self.waits_for_all
    }

    /// Where the workers of this thread record.
    #[inline]
    pub(super) fn shard(&self) -> MutexGuard<'_, Shard> {
        self.shards.own()
    }

    /// Counts a failed call, unless it falls into the warm-up.
    pub(super) fn fail(&self, status: &Status) {
        if !self.is_measuring() {
            return;
        }
        let mut shard = self.shard();
        // What is OK and still a failure brought something else than was asked for.
        let code = if status.code() == Code::Ok { Code::DataLoss } else { status.code() };
        shard.recorder.error(code as i32);
        if shard.first_failure.is_none() {
            shard.first_failure = Some(described(status));
        }
    }

    /// Everything that was recorded.
    pub(super) fn merged(&self) -> Shard {
        let mut all = Shard {
            recorder: Recorder::starting_at(self.measured_from()),
            last_ns: self.from_ns,
            first_failure: None,
        };
        for shard in self.shards.all() {
            all.recorder.merge(&shard.recorder);
            all.last_ns = all.last_ns.max(shard.last_ns);
            all.first_failure = all.first_failure.or_else(|| shard.first_failure.clone());
        }
        all
    }
}

impl Shard {
    /// `count` operations succeeded that took `latency_ns` each, the last ending at `ended_ns`.
    #[inline]
    pub(super) fn record(&mut self, latency_ns: u64, count: u64, ended_ns: u64) {
        self.recorder.record_many(latency_ns, count);
        self.last_ns = self.last_ns.max(ended_ns);
    }
}

/// `UNAVAILABLE: connection lost`
pub(super) fn described(status: &Status) -> String {
    let name = code_name(status.code() as i32);
    if status.message().is_empty() { name.to_owned() } else { format!("{name}: {}", status.message()) }
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
    use crate::record::{Handing, LaneRule};

    fn settings(duration_ns: Option<u64>, total: Option<u64>) -> LoadSettings {
        LoadSettings {
            target: "127.0.0.1:1".to_owned(),
            call: CallType::Unary,
            size_bytes: 0,
            in_flight: 1,
            connections: 1,
            lanes: LaneRule::Fixed,
            method: None,
            echo: None,
            handing: Handing::default(),
            warmup_ns: 100,
            duration_ns,
            total,
            bare: None,
            busy_poll_ns: Some(0),
            cpus: None,
        }
    }

    fn run(duration_ns: Option<u64>, total: Option<u64>) -> Run {
        Run::begin(&settings(duration_ns, total), 1)
    }

    fn check(run: &Run, now_ns: u64, wanted: u64, expected: Start) {
        assert_eq!(run.start(now_ns, wanted), expected, "at {now_ns} ns, {wanted} wanted");
    }

    #[test]
    fn a_run_by_time_counts_what_ends_within_it() {
        let run = run(Some(50), None);
        for begins in [0, 99, 100, 149] {
            check(&run, begins, 16, Start::Counted(16));
        }
        check(&run, 150, 16, Start::Over);
        let held = [99, 100, 150, 151].map(|ended_ns| run.holds(ended_ns));
        assert_eq!(held, [false, true, true, false]);
        assert_eq!(run.measured(149), Duration::from_nanos(50));
    }

    #[test]
    fn client_streams_count_with_the_time_until_they_are_answered() {
        let settings = LoadSettings { call: CallType::ClientStream, ..settings(Some(50), None) };
        let run = Run::begin(&settings, 1);
        check(&run, 150, 16, Start::Over);
        assert!(run.holds(170));
        assert_eq!(run.measured(170), Duration::from_nanos(70));
        assert_eq!(run.measured(120), Duration::from_nanos(50));
    }

    #[test]
    fn a_total_is_given_out_exactly_and_not_in_the_warm_up() {
        let run = run(None, Some(20));
        check(&run, 50, 16, Start::WarmUp);
        check(&run, 100, 16, Start::Counted(16));
        check(&run, 101, 16, Start::Counted(4));
        check(&run, 102, 16, Start::Over);
        check(&run, 102, 1, Start::Over);
        assert!(run.holds(1_000_000), "what was given out counts whenever it ends");
        assert_eq!(run.measured(1_000_000), Duration::from_nanos(999_900));
    }

    #[test]
    fn a_stopped_run_lets_nothing_begin() {
        let run = run(None, Some(20));
        run.stop();
        check(&run, run.now_ns(), 1, Start::Over);
        assert!(run.is_over());
    }
}
