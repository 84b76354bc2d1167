//! What workers count, in constant memory.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use thalweg_measure::code::code_name;
use thalweg_measure::distribution::Distribution;

use crate::echo::{STAGES, Stages};
use crate::finishes::Finishes;
use crate::pace::{Paced, Slowest};
use crate::record::CallType;
use crate::run::Flows;
use crate::traffic::{Batch, Replies, Stretch, Traffic};
use crate::went::{Failure, Went};

/// gRPC's status codes, and behind them calls whose answer was not what was expected.
const CODES: usize = 18;
const CHECK: usize = 17;
/// What those are called in results.
const CHECK_NAME: &str = "CHECK";
/// A call that begins so much behind its time is late.
const LATE_NS: u64 = 1_000_000;

/// When a call was to begin, when it did and when it ended: ns of the run's clock.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_field_names, reason = "all of them are ns")]
pub(crate) struct Times {
    pub(crate) intended_ns: u64,
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
}

/// Which call of its flow one is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepOfFlow {
    /// Its place among the steps of all flows.
    pub(crate) index: usize,
    /// The schedule says when it begins.
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

/// All that was counted of the calls of a run, or of a part of them.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// From the intended start to the end, of calls that ended with OK.
    pub(crate) latency: Distribution,
    /// From the actual start.
    pub(crate) service: Distribution,
    /// From the intended start of flows to the actual one.
    pub(crate) wait: Distribution,
    /// From the intended start to the end, of calls that failed.
    pub(crate) failed: Distribution,
    /// Until the first response of a stream.
    pub(crate) first: Distribution,
    /// From a request of a bidi stream to its response.
    pub(crate) replies: Distribution,
    /// What the stages of calls took that were divided; empty where none was.
    pub(crate) stages: Vec<Option<Distribution>>,
    /// Of streams one way.
    pub(crate) paced: Paced,
    pub(crate) slowest_calls: Slowest,
    pub(crate) slowest_replies: Slowest,
    pub(crate) codes: Codes,
    pub(crate) finishes: Finishes,
    pub(crate) flows: Flows,
    /// Flows that began late.
    pub(crate) late: u64,
    pub(crate) traffic: Traffic,
    /// What the first failure said, with its time.
    pub(crate) first_failure: Option<(u64, String)>,
}

/// Calls by how they ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Codes([u64; CODES]);

impl Codes {
    pub(crate) fn count(&mut self, failure: Option<&Failure>) {
        let place = match failure {
            None => 0,
            Some(Failure::Check(_)) => CHECK,
            // A status that is OK and still a failure has brought something else than was asked for.
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

    /// Calls that have gone well.
    pub(crate) fn ok(&self) -> u64 {
        self.0[0]
    }

    /// Calls that have not.
    pub(crate) fn failed(&self) -> u64 {
        self.0[1..].iter().sum()
    }

    /// Those by what they are called in results.
    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        let names = (0..=16).map(code_name).chain([CHECK_NAME]);
        let failed = names.zip(&self.0).skip(1).filter(|(_, count)| **count > 0);
        failed.map(|(name, count)| (name.to_owned(), *count)).collect()
    }
}

/// What was counted of a step of a flow.
#[derive(Clone, Debug)]
pub(crate) struct StepTally {
    /// From the intended start to the end, of calls that have gone well.
    pub(crate) latency: Distribution,
    pub(crate) codes: Codes,
}

/// What was counted since the last interval ended.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    pub(crate) latency: Distribution,
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) flows: Flows,
    /// Flows that began late.
    pub(crate) late: u64,
    pub(crate) traffic: Traffic,
    /// From requests of bidi streams to their responses.
    pub(crate) replies: Distribution,
}

/// Where workers count: one for each thread, so that threads do not wait for each other.
#[derive(Debug)]
pub(crate) struct Shards(thalweg_measure::shards::Shards<Shard>);

#[derive(Debug)]
pub(crate) struct Shard {
    tally: Tally,
    /// `None` where nobody is told of intervals.
    recent: Option<Recent>,
    /// None where there is one step: it has what all calls have.
    steps: Vec<StepTally>,
    flow_times: Distribution,
    /// In a closed loop calls begin when they are to.
    is_open: bool,
}

/// All that was counted of a run.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) tally: Tally,
    /// Of each step; none where there is one.
    pub(crate) steps: Vec<StepTally>,
    /// How long flows of several steps took that have gone well.
    pub(crate) flow_times: Distribution,
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

    /// A call ended with OK.
    #[inline]
    pub(crate) fn call_ok(&mut self, took_ns: u64, ended_ns: u64) {
        self.codes.count(None);
        self.latency.record(took_ns);
        self.slowest_calls.record(took_ns, ended_ns);
    }

    /// So many responses of a stream came, each so long after its request.
    #[inline]
    pub(crate) fn reply(&mut self, took_ns: u64, count: u64, came_ns: u64) {
        self.replies.record_many(took_ns, count);
        self.slowest_replies.record(took_ns, came_ns);
    }

    /// What is counted of calls of this type: unary calls, or messages of streams.
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

    /// Calls by how they ended.
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
        }
    }

    /// Gives what was counted, and begins anew.
    fn take_into(&mut self, all: &mut Self) {
        let Self { latency, ok, failed, flows, late, traffic, replies } = self;
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
    /// One for each thread, and for each of so many steps. `is_open`: calls have times to begin at. `has_intervals`:
    /// what has been counted since the last interval is told apart.
    pub(crate) fn new(threads: usize, steps: usize, is_open: bool, has_intervals: bool) -> Self {
        let step = || StepTally { latency: Distribution::new(), codes: Codes::default() };
        let steps = if steps > 1 { steps } else { 0 };
        let shard = || Shard {
            tally: Tally::new(),
            recent: has_intervals.then(Recent::new),
            steps: (0..steps).map(|_| step()).collect(),
            flow_times: Distribution::new(),
            is_open,
        };
        Self(thalweg_measure::shards::Shards::new(threads, shard))
    }

    pub(crate) fn own(&self) -> MutexGuard<'_, Shard> {
        self.0.own()
    }

    pub(crate) fn merged(&self) -> Counted {
        let mut all: Option<Counted> = None;
        for shard in self.0.all() {
            let Some(all) = &mut all else {
                let Shard { tally, steps, flow_times, .. } = &*shard;
                let (tally, steps) = (tally.clone(), steps.clone());
                all = Some(Counted { tally, steps, flow_times: flow_times.clone() });
                continue;
            };
            all.tally.merge(&shard.tally);
            all.flow_times.merge(&shard.flow_times);
            for (mine, theirs) in all.steps.iter_mut().zip(&shard.steps) {
                mine.latency.merge(&theirs.latency);
                mine.codes.merge(&theirs.codes);
            }
        }
        all.unwrap_or_else(|| unreachable!("there is a shard at least"))
    }

    /// What was counted since this was asked for the last time.
    pub(crate) fn take_recent(&self) -> Recent {
        let mut all = Recent::new();
        for mut shard in self.0.all() {
            if let Some(recent) = &mut shard.recent {
                recent.take_into(&mut all);
            }
        }
        all
    }
}

impl Shard {
    /// A call has ended.
    pub(crate) fn count(&mut self, step: StepOfFlow, times: Times, went: &Went) {
        let Self { tally, recent, steps, is_open, .. } = self;
        let Times { intended_ns, began_ns, ended_ns } = times;
        let latency_ns = ended_ns.saturating_sub(intended_ns);
        let mut flows = Flows::default();
        let mut late = 0;
        if step.is_first {
            flows.begun = 1;
            if *is_open {
                let wait_ns = began_ns.saturating_sub(intended_ns);
                tally.wait.record(wait_ns);
                late = u64::from(wait_ns > LATE_NS);
                tally.late += late;
            }
        }
        match went.failure {
            Some(_) => flows.failed = 1,
            None if step.is_last => flows.ok = 1,
            None => {}
        }
        tally.flows += flows;
        tally.finishes.record(ended_ns);
        if let Some(failure) = &went.failure {
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
            if let Some(stages) = &went.stages {
                tally.divided(stages);
            }
        }
        if let Some(recent) = recent {
            recent.late += late;
            recent.flows += flows;
            if went.failure.is_some() {
                recent.failed += 1;
            } else {
                recent.latency.record(latency_ns);
                recent.ok += 1;
            }
        }
        if let Some(step) = steps.get_mut(step.index) {
            step.codes.count(went.failure.as_ref());
            if went.failure.is_none() {
                step.latency.record(latency_ns);
            }
        }
        self.count_traffic(went.traffic);
    }

    /// Responses of a stream have come.
    pub(crate) fn count_responses(&mut self, batch: &Batch, came_ns: u64) {
        let Batch { traffic, first_ns, replies, stretch, .. } = batch;
        self.count_traffic(*traffic);
        if let Some(stretch) = *stretch {
            self.count_stretch(stretch, came_ns);
        }
        if let Some(first_ns) = first_ns {
            self.tally.first.record(*first_ns);
        }
        for &Replies { took_ns, count } in replies {
            self.tally.reply(took_ns, count, came_ns);
            if let Some(recent) = &mut self.recent {
                recent.replies.record_many(took_ns, count);
            }
        }
    }

    /// Messages of a stream one way have followed each other, the last one now.
    pub(crate) fn count_stretch(&mut self, stretch: Stretch, now_ns: u64) {
        self.tally.paced.record(stretch, now_ns);
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

    /// All steps of a flow have gone well.
    pub(crate) fn count_flow(&mut self, took_ns: u64) {
        self.flow_times.record(took_ns);
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
