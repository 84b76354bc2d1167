//! Result of one run of a driver, the contract of the drivers of all stacks.

mod bare_run;
mod load_result;

use std::time::{Duration, Instant, SystemTime};

use thalweg::{Code, Status};
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::distribution::Distribution;

use crate::call_outcome::Failure;
use crate::echo::{STAGES, Stages};
pub use crate::pace::SLOWEST_MAX as SPIKES_MAX;
use crate::tally::Tally;
use crate::traffic::{TimedMessages, Traffic};
pub use bare_run::{BareRun, BareWire};
pub use load_result::{
    CallType, Connections, Fairness, LOAD_SCHEMA, LaneRule, LanesAt, LoadResult, LoadSettings,
    MessageOwnership, MethodCall, Note, Pace, Spike, StageTimes, UnknownCallType, Variant,
};

/// Context of a run besides its counters.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// Requested settings.
    pub settings: LoadSettings,
    /// Wall-clock time when measuring began.
    pub started: SystemTime,
    /// Measured time by the monotonic clock.
    pub duration: Duration,
    /// Start of the measured time, in ns of the run's clock.
    pub from_ns: u64,
    /// The client's processor time during the measured time.
    pub client_cpu: CpuTime,
    /// Connections to the target.
    pub connections: Connections,
    /// Limits on how far the figures can be trusted.
    pub notes: Vec<Note>,
}

/// Counters of a single-threaded driver with its own call loop.
#[derive(Clone, Debug)]
pub struct Recorder {
    call: CallType,
    /// Start of the measured time.
    began: Instant,
    tally: Tally,
}

impl Recorder {
    /// Creates a recorder of operations of this type, measured from `began` on.
    pub fn new(call: CallType, began: Instant) -> Self {
        Self { call, began, tally: Tally::new() }
    }

    /// Records a successful operation: a unary call, or a round trip of a stream.
    #[inline]
    pub fn record(&mut self, began: Instant, ended: Instant) {
        let (took_ns, ended_ns) = (ns(began, ended), ns(self.began, ended));
        match self.call {
            CallType::Unary => self.tally.call_ok(took_ns, ended_ns),
            _ => self.tally.reply(took_ns, 1, ended_ns),
        }
    }

    /// Records `count` messages of a one-way stream.
    #[inline]
    pub fn record_pace(&mut self, began: Instant, ended: Instant, count: u64) {
        self.tally.paced.record(TimedMessages { took_ns: ns(began, ended), count }, ns(self.began, ended));
        self.tally.traffic += match self.call {
            CallType::ServerStream => Traffic::received(count, 0),
            _ => Traffic::sent(count, 0),
        };
    }

    /// Records the stage times of a recorded call.
    pub fn divided(&mut self, stages: &Stages) {
        self.tally.divided(stages);
    }

    pub(crate) fn failed(&mut self, code: Code) {
        self.tally.codes.count(Some(&Failure::Status(Status::new(code, ""))));
    }

    /// Returns the number of operations recorded so far.
    pub fn operations(&self) -> u64 {
        self.tally.operations(self.call)
    }

    /// Returns the result of the run.
    pub fn finish(self, context: RunContext) -> LoadResult {
        LoadResult::of(&self.tally, context)
    }
}

fn ns(began: Instant, ended: Instant) -> u64 {
    u64::try_from(ended.saturating_duration_since(began).as_nanos()).unwrap_or(u64::MAX)
}

impl LoadResult {
    /// Returns the result of a closed loop.
    pub(crate) fn of(tally: &Tally, context: RunContext) -> Self {
        let RunContext { settings, started, duration, from_ns, client_cpu, connections, notes } = context;
        let messages = tally.operations(settings.call);
        let nothing = &Distribution::new();
        let (latencies, slowest) = match settings.call {
            CallType::Unary => (&tally.latency, &tally.slowest_calls),
            CallType::ClientStream | CallType::ServerStream => (nothing, &tally.paced.slowest),
            CallType::BidiStream | CallType::PingPong => (&tally.replies, &tally.slowest_replies),
        };
        let spike = |slow: &crate::pace::Slow| Spike {
            took_ns: slow.took_ns,
            at_ns: slow.ended_ns.saturating_sub(from_ns),
        };
        let seconds = duration.as_secs_f64();
        Self {
            schema: LOAD_SCHEMA.to_owned(),
            settings,
            started: humantime::format_rfc3339_nanos(started).to_string(),
            ended: humantime::format_rfc3339_nanos(started + duration).to_string(),
            duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
            drain_ns: 0,
            closed_loop: true,
            rate_per_s: if seconds > 0.0 { messages as f64 / seconds } else { 0.0 },
            calls: tally.codes().ok(),
            messages,
            errors: tally.codes().errors(),
            bytes_sent: tally.traffic.bytes_sent,
            bytes_received: tally.traffic.bytes_received,
            latency_ns: latencies.latency(),
            pace_ns: pace(tally),
            histogram: latencies.histogram(),
            first_call_ns: None,
            stages: stages(tally),
            spikes: slowest.all().iter().map(spike).collect(),
            client_cpu,
            client_cpu_per_call: (messages > 0).then(|| client_cpu / messages as f64),
            busy_poll_wasted_ns: 0,
            connections,
            fairness: None,
            lanes: Vec::new(),
            notes,
        }
    }
}

fn stages(tally: &Tally) -> Vec<StageTimes> {
    let seen = STAGES.into_iter().zip(&tally.stages);
    let times = seen.filter_map(|(name, stage)| {
        let stage = stage.as_ref()?;
        let (latency_ns, histogram) = (stage.latency()?, stage.histogram());
        Some(StageTimes { name: name.to_owned(), latency_ns, histogram })
    });
    times.collect()
}

/// Returns the pace of one-way streams; `None` without messages.
fn pace(tally: &Tally) -> Option<Pace> {
    let paced = &tally.paced;
    (paced.messages > 0).then(|| Pace {
        mean: paced.sum_ns as f64 / paced.messages as f64,
        gap_max: paced.gap_max_ns,
        messages_per_reading: paced.messages_per_reading,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use thalweg_measure::distribution::merged;

    use super::*;
    use crate::call_outcome::CallOutcome;
    use crate::tally::{Shards, StepOfFlow, Times};

    #[test]
    fn recorder_counts_operations() {
        let began = Instant::now();
        let at = |ns: u64| began + Duration::from_nanos(ns);
        for (call, latencies) in
            [(CallType::Unary, true), (CallType::PingPong, true), (CallType::ClientStream, false)]
        {
            let mut recorder = Recorder::new(call, began);
            if latencies {
                recorder.record(at(10), at(30));
                recorder.record(at(30), at(90));
                recorder.failed(Code::Unavailable);
            } else {
                recorder.record_pace(at(10), at(90), 2);
            }
            assert_eq!(recorder.operations(), 2);
            let context = RunContext { settings: LoadSettings { call, ..context().settings }, ..context() };
            let result = recorder.finish(context);
            assert_eq!((result.messages, result.error_count()), (2, u64::from(latencies)), "{call}");
            assert_eq!(
                result.latency_ns.map(|latency| (latency.min, latency.max)),
                latencies.then_some((20, 60))
            );
            assert_eq!(result.pace_ns.map(|pace| pace.mean), (!latencies).then_some(40.0));
            let slowest = if latencies { 60 } else { 80 };
            assert_eq!(result.spikes[0], Spike { took_ns: slowest, at_ns: 90 });
        }
    }

    fn context() -> RunContext {
        RunContext {
            settings: LoadSettings {
                target: "127.0.0.1:50051".to_owned(),
                call: CallType::Unary,
                size_bytes: 0,
                in_flight: 1,
                connections: 1,
                lanes: LaneRule::Fixed,
                method: None,
                echo: None,
                message_ownership: MessageOwnership::default(),
                warmup_ns: 0,
                duration_ns: Some(2_000_000_000),
                total: None,
                bare: None,
                busy_poll_ns: Some(0),
                cpus: None,
            },
            started: SystemTime::UNIX_EPOCH + Duration::from_nanos(1_000_000_001),
            duration: Duration::from_secs(2),
            from_ns: 0,
            client_cpu: CpuTime { user_ns: 3000.0, system_ns: 1000.0 },
            connections: Connections { asked: 1, established: Some(1) },
            notes: Vec::new(),
        }
    }

    fn counted(calls: impl IntoIterator<Item = (u64, CallOutcome)>) -> Tally {
        let shards = Shards::new(1, 1, false, true);
        for (ended_ns, outcome) in calls {
            let step = StepOfFlow { index: 0, is_first: true, is_last: true };
            shards.own().count(step, Times { intended_ns: 0, began_ns: 0, ended_ns }, &outcome);
        }
        shards.merged().tally
    }

    fn well(latencies_ns: impl IntoIterator<Item = u64>) -> Tally {
        counted(latencies_ns.into_iter().map(|latency_ns| (latency_ns, CallOutcome::default())))
    }

    #[test]
    fn result_round_trips_through_json_with_counts() {
        let failed = |code: i32| (1, CallOutcome::failed(Failure::Status(Status::new(code.into(), ""))));
        let calls = (1..=1000).map(|latency_us| (latency_us * 1000, CallOutcome::default()));
        let result = LoadResult::of(&counted(calls.chain([failed(14), failed(99)])), context());

        assert_eq!((result.calls, result.messages, result.error_count()), (1000, 1000, 2));
        assert_eq!(result.errors, BTreeMap::from([("UNAVAILABLE".to_owned(), 1), ("UNKNOWN".to_owned(), 1)]));
        assert!((result.rate_per_s - 500.0).abs() < 1e-9);
        assert_eq!(result.client_cpu_per_call, Some(CpuTime { user_ns: 3.0, system_ns: 1.0 }));
        assert_eq!(result.started, "1970-01-01T00:00:01.000000001Z");
        assert_eq!(result.ended, "1970-01-01T00:00:03.000000001Z");
        assert_eq!(result.spikes[0], Spike { took_ns: 1_000_000, at_ns: 1_000_000 });
        let json = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<LoadResult>(&json).unwrap(), result);
    }

    #[test]
    fn histograms_of_two_runs_can_be_merged_from_their_json() {
        let read = |latency_ns: u64| {
            let json = serde_json::to_string(&LoadResult::of(&well([latency_ns]), context())).unwrap();
            serde_json::from_str::<LoadResult>(&json).unwrap()
        };
        let runs = [read(1_000_000), read(1_000)];
        let all = merged(runs.iter().map(|run| (&run.histogram, run.latency_ns.unwrap()))).unwrap();
        assert_eq!((all.min, all.p50, all.max), (1000, 1000, 1_000_000));
    }

    #[test]
    fn stage_times_cover_all_calls() {
        let divided = |stages| (1, CallOutcome { stages: Some(Box::new(stages)), ..CallOutcome::default() });
        assert_eq!(LoadResult::of(&well([1]), context()).stages, []);
        let calls = [
            divided([Some(10), Some(20), None, Some(30), None, Some(40), Some(50)]),
            divided([Some(30), Some(20), Some(7), Some(30), None, Some(40), Some(50)]),
        ];
        let stages = LoadResult::of(&counted(calls), context()).stages;
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
    fn empty_recording_has_no_latency() {
        let result = LoadResult::of(&well([]), context());
        assert_eq!((result.latency_ns, result.client_cpu_per_call), (None, None));
    }
}
