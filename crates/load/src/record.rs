//! Counting and timing in constant memory.
//!
//! A `Recorder` is made when warm-up is over, is fed by one thread, is merged with those of the other threads, and
//! finishes as a [`LoadResult`].

mod bare_run;
mod load_result;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use thalweg_measure::code::{CODE_NAMES, CODE_UNKNOWN};
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::{Distribution, Latency};

use crate::echo::{STAGES, Stages};
pub use bare_run::{BareRun, BareWire};
pub use load_result::{
    CallType, Connections, Fairness, Handing, LOAD_SCHEMA, LaneRule, LanesAt, LoadResult, LoadSettings,
    MethodCall, Note, Pace, Spike, StageTimes, UnknownCallType,
};

/// How many of the largest latencies are kept with their time.
pub const SPIKES_MAX: usize = 10;

/// Counts and times operations in constant memory. Its clock starts when it is made: make it when warm-up ends.
#[derive(Clone, Debug)]
pub struct Recorder {
    started: Instant,
    latencies: Distribution,
    /// Of calls that were divided; empty where none was.
    stages: Vec<Option<Distribution>>,
    paced: Paced,
    calls: u64,
    errors: [u64; CODE_NAMES.len()],
    /// Largest first.
    spikes: Vec<Spike>,
}

/// Messages of streams one way.
#[derive(Clone, Copy, Debug, Default)]
struct Paced {
    messages: u64,
    sum_ns: u128,
    gap_max_ns: u64,
    messages_per_reading: u64,
}

/// What [`Recorder::finish`] cannot know by itself.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the run was asked to do.
    pub settings: LoadSettings,
    /// When measuring began, by the wall clock.
    pub started: SystemTime,
    /// How long was measured, by the monotonic clock.
    pub duration: Duration,
    /// See [`LoadResult::closed_loop`].
    pub closed_loop: bool,
    /// Payload bytes sent in that time.
    pub bytes_sent: u64,
    /// Payload bytes received in that time.
    pub bytes_received: u64,
    /// The client's processor time in that time: the difference of two [`CpuTime::of_this_process`].
    pub client_cpu: CpuTime,
    /// Connections to the target.
    pub connections: Connections,
    /// What limits how far the figures can be trusted.
    pub notes: Vec<Note>,
}

impl Recorder {
    /// A recorder whose measured time begins now.
    pub fn new() -> Self {
        Self::starting_at(Instant::now())
    }

    /// A recorder whose measured time began at `started`: recorders of one run share it.
    pub fn starting_at(started: Instant) -> Self {
        Self {
            started,
            latencies: Distribution::new(),
            stages: Vec::new(),
            paced: Paced::default(),
            calls: 0,
            errors: [0; CODE_NAMES.len()],
            spikes: Vec::with_capacity(SPIKES_MAX + 1),
        }
    }

    /// One operation succeeded: a unary call, or a round trip of a stream (see [`CallType`] for what its latency is).
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.record_many(latency_ns, 1);
    }

    /// `count` operations succeeded that took `latency_ns` each: messages that one read brought, say.
    #[inline]
    pub(crate) fn record_many(&mut self, latency_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.latencies.record_many(latency_ns, count);
        self.note_spike(latency_ns);
    }

    /// What the stages of a call took that was recorded.
    pub fn divided(&mut self, stages: &Stages) {
        self.stages.resize(STAGES.len(), None);
        for (stage, took_ns) in self.stages.iter_mut().zip(stages) {
            if let Some(took_ns) = took_ns {
                stage.get_or_insert_with(Distribution::new).record_many(*took_ns, 1);
            }
        }
    }

    /// `count` messages of a stream one way went by in `elapsed_ns`, from one reading of the clock to the next.
    #[inline]
    pub fn record_pace(&mut self, elapsed_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.paced.messages += count;
        self.paced.sum_ns += u128::from(elapsed_ns);
        self.paced.gap_max_ns = self.paced.gap_max_ns.max(elapsed_ns);
        self.paced.messages_per_reading = self.paced.messages_per_reading.max(count);
        self.note_spike(elapsed_ns);
    }

    #[inline]
    fn note_spike(&mut self, took_ns: u64) {
        // A run of n operations comes here about SPIKES_MAX * ln(n) times: the clock read costs nothing.
        if self.spikes.len() < SPIKES_MAX || took_ns > self.spikes[SPIKES_MAX - 1].took_ns {
            let at_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.spike(Spike { took_ns, at_ns });
        }
    }

    /// A call ended with OK.
    #[inline]
    pub fn call(&mut self) {
        self.calls += 1;
    }

    /// A call ended with this gRPC status code (`status.code() as i32`), which is not OK. Numbers that gRPC does not
    /// know count as UNKNOWN.
    pub(crate) fn error(&mut self, code: i32) {
        let index = usize::try_from(code).ok().filter(|&index| index < CODE_NAMES.len());
        self.errors[index.unwrap_or(CODE_UNKNOWN)] += 1;
    }

    /// Operations recorded so far.
    pub fn operations(&self) -> u64 {
        self.latencies.len() + self.paced.messages
    }

    /// Calls that have ended with OK.
    #[cfg(test)]
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Adds what another recorder of the same run saw.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        self.stages.resize(self.stages.len().max(other.stages.len()), None);
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.merge(theirs),
                (mine @ None, theirs) => mine.clone_from(theirs),
                (Some(_), None) => {}
            }
        }
        self.paced.messages += other.paced.messages;
        self.paced.sum_ns += other.paced.sum_ns;
        self.paced.gap_max_ns = self.paced.gap_max_ns.max(other.paced.gap_max_ns);
        self.paced.messages_per_reading =
            self.paced.messages_per_reading.max(other.paced.messages_per_reading);
        self.calls += other.calls;
        for (mine, theirs) in self.errors.iter_mut().zip(other.errors) {
            *mine += theirs;
        }
        for &spike in &other.spikes {
            self.spike(spike);
        }
    }

    /// The result of the run.
    pub fn finish(self, run: Run) -> LoadResult {
        let messages = self.operations();
        let seconds = run.duration.as_secs_f64();
        LoadResult {
            schema: LOAD_SCHEMA.to_owned(),
            settings: run.settings,
            started: humantime::format_rfc3339_nanos(run.started).to_string(),
            ended: humantime::format_rfc3339_nanos(run.started + run.duration).to_string(),
            duration_ns: u64::try_from(run.duration.as_nanos()).unwrap_or(u64::MAX),
            drain_ns: 0,
            closed_loop: run.closed_loop,
            rate_per_s: if seconds > 0.0 { messages as f64 / seconds } else { 0.0 },
            calls: self.calls,
            messages,
            errors: self.errors_by_name(),
            bytes_sent: run.bytes_sent,
            bytes_received: run.bytes_received,
            latency_ns: self.latency(),
            pace_ns: self.pace(),
            histogram: self.latencies.encoded(),
            first_call_ns: None,
            stages: self.stage_times(),
            spikes: self.spikes,
            client_cpu: run.client_cpu,
            client_cpu_per_call: (messages > 0).then(|| run.client_cpu / messages as f64),
            looked_in_vain_ns: 0,
            connections: run.connections,
            fairness: None,
            lanes: Vec::new(),
            notes: run.notes,
        }
    }

    /// The distribution so far; `None` when nothing succeeded yet.
    pub(crate) fn latency(&self) -> Option<Latency> {
        self.latencies.latency()
    }

    fn stage_times(&self) -> Vec<StageTimes> {
        let seen = STAGES.into_iter().zip(&self.stages);
        let times = seen.filter_map(|(name, stage)| {
            let stage = stage.as_ref()?;
            let (latency_ns, histogram) = (stage.latency()?, stage.encoded());
            Some(StageTimes { name: name.to_owned(), latency_ns, histogram })
        });
        times.collect()
    }

    /// How messages of streams one way have followed each other so far; `None` when none has.
    pub(crate) fn pace(&self) -> Option<Pace> {
        let Paced { messages, sum_ns, gap_max_ns, messages_per_reading } = self.paced;
        (messages > 0).then(|| Pace {
            mean: sum_ns as f64 / messages as f64,
            gap_max: gap_max_ns,
            messages_per_reading,
        })
    }

    fn errors_by_name(&self) -> BTreeMap<String, u64> {
        CODE_NAMES
            .iter()
            .zip(self.errors)
            .filter(|&(_, count)| count > 0)
            .map(|(name, count)| ((*name).to_owned(), count))
            .collect()
    }

    fn spike(&mut self, spike: Spike) {
        let place = self.spikes.partition_point(|other| other.took_ns >= spike.took_ns);
        self.spikes.insert(place, spike);
        self.spikes.truncate(SPIKES_MAX);
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::Deserializer;
    use thalweg_measure::distribution::LATENCY_NS_MAX;

    use super::*;

    fn run() -> Run {
        Run {
            settings: LoadSettings {
                target: "127.0.0.1:50051".to_owned(),
                call: CallType::Unary,
                size_bytes: 0,
                in_flight: 1,
                connections: 1,
                lanes: LaneRule::Fixed,
                method: None,
                echo: None,
                handing: Handing::default(),
                warmup_ns: 0,
                duration_ns: Some(2_000_000_000),
                total: None,
                bare: None,
                busy_poll_ns: Some(0),
                cpus: None,
            },
            started: SystemTime::UNIX_EPOCH + Duration::from_nanos(1_000_000_001),
            duration: Duration::from_secs(2),
            closed_loop: true,
            bytes_sent: 0,
            bytes_received: 0,
            client_cpu: CpuTime { user_ns: 3000.0, system_ns: 1000.0 },
            connections: Connections { asked: 1, established: Some(1) },
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_result_survives_json_and_says_what_was_counted() {
        let mut recorder = Recorder::new();
        for latency_us in 1..=1000 {
            recorder.record(latency_us * 1000);
            recorder.call();
        }
        recorder.error(14);
        recorder.error(99);
        let result = recorder.finish(run());

        assert_eq!((result.calls, result.messages, result.error_count()), (1000, 1000, 2));
        assert_eq!(result.errors, BTreeMap::from([("UNAVAILABLE".to_owned(), 1), ("UNKNOWN".to_owned(), 1)]));
        assert!((result.rate_per_s - 500.0).abs() < 1e-9);
        assert_eq!(result.client_cpu_per_call, Some(CpuTime { user_ns: 3.0, system_ns: 1.0 }));
        assert_eq!(result.started, "1970-01-01T00:00:01.000000001Z");
        assert_eq!(result.ended, "1970-01-01T00:00:03.000000001Z");
        let json = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<LoadResult>(&json).unwrap(), result);
    }

    #[test]
    fn percentiles_are_right_to_three_digits_and_bounds_exact() {
        let mut recorder = Recorder::new();
        for latency_ns in (1..=100_000).map(|n| n * 977) {
            recorder.record(latency_ns);
        }
        let latency = recorder.latency().unwrap();
        assert_eq!((latency.min, latency.max), (977, 97_700_000));
        assert!((latency.mean - 977.0 * 50_000.5).abs() < 1e-3);
        for (found, exact) in [
            (latency.p50, 48_850_000.0),
            (latency.p90, 87_930_000.0),
            (latency.p99, 96_723_000.0),
            (latency.p99_9, 97_602_300.0),
            (latency.p99_99, 97_690_230.0),
        ] {
            assert!((found as f64 / exact - 1.0).abs() <= 1e-3, "{found} is not {exact}");
        }
    }

    #[test]
    fn merged_recorders_equal_one_that_saw_all() {
        let started = Instant::now();
        let (mut even, mut odd, mut all) =
            (Recorder::starting_at(started), Recorder::starting_at(started), Recorder::starting_at(started));
        for latency_ns in 1..=5000 {
            if latency_ns % 2 == 0 { &mut even } else { &mut odd }.record(latency_ns * 10);
            all.record(latency_ns * 10);
        }
        odd.error(4);
        all.error(4);
        even.merge(&odd);
        let latencies = |recorder: &Recorder| recorder.spikes.iter().map(|s| s.took_ns).collect::<Vec<_>>();
        assert_eq!(even.latency(), all.latency());
        assert_eq!(even.errors, all.errors);
        assert_eq!(latencies(&even), latencies(&all));
        assert_eq!(latencies(&all)[..3], [50_000, 49_990, 49_980]);
    }

    #[test]
    fn histograms_of_two_runs_can_be_merged_from_their_json() {
        let histogram = |latency_ns: u64| {
            let mut recorder = Recorder::new();
            recorder.record(latency_ns);
            let bytes = STANDARD.decode(recorder.finish(run()).histogram).unwrap();
            Deserializer::new().deserialize::<u64, _>(&mut &bytes[..]).unwrap()
        };
        let mut merged = histogram(1_000_000);
        merged += histogram(1_000);
        assert_eq!((merged.len(), merged.min(), merged.max() / 1000), (2, 1000, 1000));
    }

    #[test]
    fn messages_one_way_have_a_pace_and_a_largest_gap_and_no_latency() {
        let (mut recorder, mut other) = (Recorder::new(), Recorder::new());
        recorder.record_pace(320, 16);
        recorder.record_pace(0, 0);
        other.record_pace(5000, 16);
        recorder.merge(&other);
        let result = recorder.finish(run());
        assert_eq!((result.messages, result.latency_ns), (32, None));
        let pace = Pace { mean: 166.25, gap_max: 5000, messages_per_reading: 16 };
        assert_eq!(result.pace_ns, Some(pace));
        assert_eq!(result.spikes.iter().map(|spike| spike.took_ns).collect::<Vec<_>>(), [5000, 320]);
    }

    #[test]
    fn stages_of_merged_recorders_are_those_of_all_calls() {
        let (mut recorder, mut other) = (Recorder::new(), Recorder::new());
        assert_eq!(recorder.clone().finish(run()).stages, []);
        recorder.divided(&[Some(10), Some(20), None, Some(30), None, Some(40), Some(50)]);
        other.divided(&[Some(30), Some(20), Some(7), Some(30), None, Some(40), Some(50)]);
        recorder.merge(&other);
        let stages = recorder.finish(run()).stages;
        let means: Vec<(&str, f64)> =
            stages.iter().map(|stage| (stage.name.as_str(), stage.latency_ns.mean)).collect();
        assert_eq!(
            means,
            [
                ("client-encode", 20.0),
                ("request", 20.0),
                ("decode", 7.0),
                ("handler", 30.0),
                ("response", 40.0),
                ("client-decode", 50.0),
            ]
        );
    }

    #[test]
    fn nothing_recorded_is_not_a_latency_of_zero() {
        let result = Recorder::new().finish(run());
        assert_eq!((result.latency_ns, result.client_cpu_per_call), (None, None));
    }

    #[test]
    fn an_hour_and_more_counts_as_an_hour_but_the_max_is_kept() {
        let mut recorder = Recorder::new();
        recorder.record(2 * LATENCY_NS_MAX);
        let latency = recorder.latency().unwrap();
        assert_eq!(latency.max, 2 * LATENCY_NS_MAX);
        assert_eq!(recorder.operations(), 1);
    }
}
