//! Counters of workers, in constant memory.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use thalweg_measure::code::code_name;
use thalweg_measure::distribution::Distribution;

use crate::call_outcome::{CallOutcome, Failure};
use crate::echo::{STAGES, Stages};
use crate::finishes::Finishes;
use crate::pace::{Paced, Slowest};
use crate::record::CallType;
use crate::run::{Flows, ServerInterval};
use crate::server_tallies::ServerTallies;
use crate::traffic::{Batch, Replies, TimedMessages, Traffic};

/// gRPC status codes, followed by calls with an unexpected response.
const CODES: usize = 18;
const CHECK: usize = 17;
/// Name of unexpected responses in results.
const CHECK_NAME: &str = "CHECK";
/// Delay beyond which a start is late.
const LATE_NS: u64 = 1_000_000;

/// Intended start, actual start and end of a call, in ns of the run's clock.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "all values are in ns")]
pub(crate) struct Times {
    pub(crate) intended_ns: u64,
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
}

/// Position of a call in its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepOfFlow {
    /// Index among the steps of all flows.
    pub(crate) index: usize,
    /// Whether the schedule sets its start.
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

/// Counters of the calls of a run, or of part of them.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Time from the intended start to the end, of calls that ended with OK.
    pub(crate) latency: Distribution,
    /// Time from the actual start to the end.
    pub(crate) service: Distribution,
    /// Time from the intended to the actual start of flows.
    pub(crate) wait: Distribution,
    /// Time from the intended start to the end, of failed calls.
    pub(crate) failed: Distribution,
    /// Time to the first response of a stream.
    pub(crate) first: Distribution,
    /// Time from a request of a bidi stream to its response.
    pub(crate) replies: Distribution,
    /// Durations of the stages of divided calls; empty without such calls.
    pub(crate) stages: Vec<Option<Distribution>>,
    /// Pace of one-way streams.
    pub(crate) paced: Paced,
    pub(crate) slowest_calls: Slowest,
    pub(crate) slowest_replies: Slowest,
    pub(crate) codes: Codes,
    pub(crate) finishes: Finishes,
    pub(crate) flows: Flows,
    /// Flows that started late.
    pub(crate) late: u64,
    pub(crate) traffic: Traffic,
    /// Time and text of the first failure.
    pub(crate) first_failure: Option<(u64, String)>,
}

/// Number of calls by outcome.
#[derive(Clone, Debug, Default)]
pub(crate) struct Codes([u64; CODES]);

impl Codes {
    pub(crate) fn count(&mut self, failure: Option<&Failure>) {
        let place = match failure {
            None => 0,
            Some(Failure::Check(_)) => CHECK,
            // A failure with status OK had an unexpected response.
            Some(Failure::Status(status)) => match status.code() as usize {
                code @ 1..CHECK => code,
                _ => 2,
            },
        };
        self.0[place] += 1;
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub(crate) fn ok(&self) -> u64 {
        self.0[0]
    }

    pub(crate) fn failed(&self) -> u64 {
        self.0[1..].iter().sum()
    }

    /// Returns the failed calls by their name in results.
    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        let names = (0..=16).map(code_name).chain([CHECK_NAME]);
        let failed = names.zip(&self.0).skip(1).filter(|(_, count)| **count > 0);
        failed.map(|(name, count)| (name.to_owned(), *count)).collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct StepTally {
    /// Time from the intended start to the end, of successful calls.
    pub(crate) latency: Distribution,
    pub(crate) codes: Codes,
}

/// Counters since the end of the last interval.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    pub(crate) latency: Distribution,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) flows: Flows,
    /// Flows that started late.
    pub(crate) late: u64,
    pub(crate) traffic: Traffic,
    /// Time from requests of bidi streams to their responses.
    pub(crate) replies: Distribution,
    /// Calls by server; empty with a single server.
    pub(crate) servers: Vec<ServerInterval>,
}

/// Counters of the workers, one shard per thread to avoid contention.
#[derive(Debug)]
pub(crate) struct Shards(thalweg_measure::shards::Shards<Shard>);

#[derive(Debug)]
pub(crate) struct Shard {
    tally: Tally,
    /// `None` if intervals are not reported.
    recent: Option<Recent>,
    /// Empty with a single step, whose counters are those of all calls.
    steps: Vec<StepTally>,
    flow_times: Distribution,
    servers: ServerTallies,
    /// Whether starts are scheduled. In a closed loop there is no delay.
    is_open: bool,
}

#[derive(Debug)]
pub(crate) struct RunCounters {
    pub(crate) tally: Tally,
    /// Counters of each step; empty with a single step.
    pub(crate) steps: Vec<StepTally>,
    /// Duration of successful flows with several steps.
    pub(crate) flow_times: Distribution,
    /// Empty with a single server.
    pub(crate) servers: ServerTallies,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            latency: Distribution::new(),
            service: Distribution::new(),
            wait: Distribution::new(),
            failed: Distribution::new(),
            first: Distribution::new(),
            replies: Distribution::new(),
            stages: Vec::new(),
            paced: Paced::default(),
            slowest_calls: Slowest::default(),
            slowest_replies: Slowest::default(),
            codes: Codes::default(),
            finishes: Finishes::default(),
            flows: Flows::default(),
            late: 0,
            traffic: Traffic::default(),
            first_failure: None,
        }
    }

    fn merge(&mut self, other: &Self) {
        let Self {
            latency,
            service,
            wait,
            failed,
            first,
            replies,
            stages,
            paced,
            slowest_calls,
            slowest_replies,
            codes,
            finishes,
            flows,
            late,
            traffic,
            first_failure,
        } = other;
        self.latency.merge(latency);
        self.service.merge(service);
        self.wait.merge(wait);
        self.failed.merge(failed);
        self.first.merge(first);
        self.replies.merge(replies);
        self.stages.resize(self.stages.len().max(stages.len()), None);
        for (mine, theirs) in self.stages.iter_mut().zip(stages) {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.merge(theirs),
                (mine @ None, theirs) => mine.clone_from(theirs),
                (Some(_), None) => {}
            }
        }
        self.paced.merge(paced);
        self.slowest_calls.merge(slowest_calls);
        self.slowest_replies.merge(slowest_replies);
        self.codes.merge(codes);
        self.finishes.merge(finishes);
        self.flows += *flows;
        self.late += late;
        self.traffic += *traffic;
        let theirs = first_failure.clone();
        self.first_failure = self.first_failure.take().into_iter().chain(theirs).min();
    }

    /// Counts a call that ended with OK.
    #[inline]
    pub(crate) fn call_ok(&mut self, took_ns: u64, ended_ns: u64) {
        self.codes.count(None);
        self.latency.record(took_ns);
        self.slowest_calls.record(took_ns, ended_ns);
    }

    /// Counts `count` responses of a stream, each `took_ns` after its request.
    #[inline]
    pub(crate) fn reply(&mut self, took_ns: u64, count: u64, received_ns: u64) {
        self.replies.record_many(took_ns, count);
        self.slowest_replies.record(took_ns, received_ns);
    }

    /// Returns the number of operations for this type of call: unary calls, or messages of streams.
    pub(crate) fn operations(&self, call: CallType) -> u64 {
        match call {
            CallType::Unary => self.latency.len(),
            CallType::ClientStream => self.traffic.sent,
            CallType::ServerStream => self.traffic.received,
            CallType::BidiStream | CallType::PingPong => self.replies.len(),
        }
    }

    pub(crate) fn divided(&mut self, stages: &Stages) {
        self.stages.resize(STAGES.len(), None);
        for (stage, took_ns) in self.stages.iter_mut().zip(stages) {
            if let Some(took_ns) = took_ns {
                stage.get_or_insert_with(Distribution::new).record(*took_ns);
            }
        }
    }

    /// Returns the number of calls by outcome.
    pub(crate) fn codes(&self) -> &Codes {
        &self.codes
    }
}

impl Recent {
    fn new() -> Self {
        Self {
            latency: Distribution::new(),
            ok: 0,
            failed: 0,
            flows: Flows::default(),
            late: 0,
            traffic: Traffic::default(),
            replies: Distribution::new(),
            servers: Vec::new(),
        }
    }

    /// Adds the counters to `all` and resets them.
    fn take_into(&mut self, all: &mut Self) {
        let Self { latency, ok, failed, flows, late, traffic, replies, servers: _ } = self;
        all.ok += std::mem::take(ok);
        all.failed += std::mem::take(failed);
        all.flows += std::mem::take(flows);
        all.late += std::mem::take(late);
        all.traffic += std::mem::take(traffic);
        for (mine, all) in [(latency, &mut all.latency), (replies, &mut all.replies)] {
            // Most runs have no bidi stream.
            if !mine.is_empty() {
                all.merge(mine);
                mine.clear();
            }
        }
    }
}

impl Shards {
    /// Creates a shard per thread, with counters for `steps` steps. `is_open` is set for scheduled starts,
    /// `has_intervals` if intervals are reported.
    pub(crate) fn new(threads: usize, steps: usize, is_open: bool, has_intervals: bool) -> Self {
        let step = || StepTally { latency: Distribution::new(), codes: Codes::default() };
        let steps = if steps > 1 { steps } else { 0 };
        let shard = || Shard {
            tally: Tally::new(),
            recent: has_intervals.then(Recent::new),
            steps: (0..steps).map(|_| step()).collect(),
            flow_times: Distribution::new(),
            servers: ServerTallies::default(),
            is_open,
        };
        Self(thalweg_measure::shards::Shards::new(threads, shard))
    }

    pub(crate) fn own(&self) -> MutexGuard<'_, Shard> {
        self.0.lock_own()
    }

    pub(crate) fn merged(&self) -> RunCounters {
        let mut all: Option<RunCounters> = None;
        for shard in self.0.lock_each() {
            let Some(all) = &mut all else {
                let Shard { tally, steps, flow_times, servers, .. } = &*shard;
                let (tally, steps, servers) = (tally.clone(), steps.clone(), servers.clone());
                all = Some(RunCounters { tally, steps, flow_times: flow_times.clone(), servers });
                continue;
            };
            all.tally.merge(&shard.tally);
            all.flow_times.merge(&shard.flow_times);
            all.servers.merge(&shard.servers);
            for (mine, theirs) in all.steps.iter_mut().zip(&shard.steps) {
                mine.latency.merge(&theirs.latency);
                mine.codes.merge(&theirs.codes);
            }
        }
        all.unwrap_or_else(|| unreachable!("there is a shard at least"))
    }

    /// Returns the counters since the previous call.
    pub(crate) fn take_recent(&self) -> Recent {
        let mut all = Recent::new();
        for mut shard in self.0.lock_each() {
            let Shard { recent, servers, .. } = &mut *shard;
            if let Some(recent) = recent {
                recent.take_into(&mut all);
                servers.take_recent(&mut all.servers);
            }
        }
        all
    }
}

impl Shard {
    /// Counts a finished call.
    pub(crate) fn count(&mut self, step: StepOfFlow, times: Times, outcome: &CallOutcome) {
        let Self { tally, recent, steps, is_open, .. } = self;
        let Times { intended_ns, began_ns, ended_ns } = times;
        let latency_ns = ended_ns.saturating_sub(intended_ns);
        let mut flows = Flows::default();
        let mut late = 0;
        if step.is_first {
            flows.started = 1;
            if *is_open {
                let wait_ns = began_ns.saturating_sub(intended_ns);
                tally.wait.record(wait_ns);
                late = u64::from(wait_ns > LATE_NS);
                tally.late += late;
            }
        }
        match outcome.failure {
            Some(_) => flows.failed = 1,
            None if step.is_last => flows.ok = 1,
            None => {}
        }
        tally.flows += flows;
        tally.finishes.record(ended_ns);
        if let Some(failure) = &outcome.failure {
            tally.codes.count(Some(failure));
            tally.failed.record(latency_ns);
            if tally.first_failure.as_ref().is_none_or(|(at_ns, _)| ended_ns < *at_ns) {
                tally.first_failure = Some((ended_ns, described(failure)));
            }
        } else {
            tally.call_ok(latency_ns, ended_ns);
            if *is_open {
                tally.service.record(ended_ns.saturating_sub(began_ns));
            }
            if let Some(stages) = &outcome.stages {
                tally.divided(stages);
            }
        }
        if let Some(recent) = recent {
            recent.late += late;
            recent.flows += flows;
            if outcome.failure.is_some() {
                recent.failed += 1;
            } else {
                recent.latency.record(latency_ns);
                recent.ok += 1;
            }
        }
        if let Some(step) = steps.get_mut(step.index) {
            step.codes.count(outcome.failure.as_ref());
            if outcome.failure.is_none() {
                step.latency.record(latency_ns);
            }
        }
        self.count_traffic(outcome.traffic);
    }

    /// Counts received responses of a stream.
    pub(crate) fn count_responses(&mut self, batch: &Batch, received_ns: u64) {
        let Batch { traffic, first_ns, replies, timed, .. } = batch;
        self.count_traffic(*traffic);
        if let Some(timed) = *timed {
            self.count_timed(timed, received_ns);
        }
        if let Some(first_ns) = first_ns {
            self.tally.first.record(*first_ns);
        }
        for &Replies { took_ns, count } in replies {
            self.tally.reply(took_ns, count, received_ns);
            if let Some(recent) = &mut self.recent {
                recent.replies.record_many(took_ns, count);
            }
        }
    }

    /// Records the pace of a one-way stream up to now.
    pub(crate) fn count_timed(&mut self, timed: TimedMessages, now_ns: u64) {
        self.tally.paced.record(timed, now_ns);
    }

    pub(crate) fn count_paced(&mut self, paced: &Paced) {
        self.tally.paced.merge(paced);
    }

    pub(crate) fn count_traffic(&mut self, traffic: Traffic) {
        self.tally.traffic += traffic;
        if let Some(recent) = &mut self.recent {
            recent.traffic += traffic;
        }
    }

    pub(crate) fn count_flow(&mut self, took_ns: u64) {
        self.flow_times.record(took_ns);
    }

    /// Counts a finished call whose last attempt went to `server`, of several.
    pub(crate) fn count_server(&mut self, server: &Arc<str>, is_ok: bool, took_ns: u64) {
        self.servers.count(server, is_ok, took_ns);
    }
}

/// `UNAVAILABLE: connection lost`
fn described(failure: &Failure) -> String {
    match failure {
        Failure::Status(status) if status.message().is_empty() => code_name(status.code() as i32).to_owned(),
        Failure::Status(status) => format!("{}: {}", code_name(status.code() as i32), status.message()),
        Failure::Check(what) => format!("{CHECK_NAME}: {what}"),
    }
}
