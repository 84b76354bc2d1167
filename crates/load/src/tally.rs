//! What workers count, in constant memory.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use thalweg_measure::code::code_name;
use thalweg_measure::distribution::Distribution;

use crate::finishes::Finishes;
use crate::run::Flows;
use crate::traffic::{Batch, Replies, Traffic};
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
    codes: Codes,
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
    fn count(&mut self, went: &Went) {
        let place = match &went.failure {
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
    recent: Recent,
    /// None where there is one step: it has what all calls have.
    steps: Vec<StepTally>,
    flow_times: Distribution,
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
    fn new() -> Self {
        Self {
            latency: Distribution::new(),
            service: Distribution::new(),
            wait: Distribution::new(),
            failed: Distribution::new(),
            first: Distribution::new(),
            replies: Distribution::new(),
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
        self.codes.merge(codes);
        self.finishes.merge(finishes);
        self.flows += *flows;
        self.late += late;
        self.traffic += *traffic;
        let theirs = first_failure.clone();
        self.first_failure = self.first_failure.take().into_iter().chain(theirs).min();
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
    /// One for each thread, and for each of so many steps.
    pub(crate) fn new(threads: usize, steps: usize) -> Self {
        let step = || StepTally { latency: Distribution::new(), codes: Codes::default() };
        let steps = if steps > 1 { steps } else { 0 };
        let shard = || Shard {
            tally: Tally::new(),
            recent: Recent::new(),
            steps: (0..steps).map(|_| step()).collect(),
            flow_times: Distribution::new(),
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
            shard.recent.take_into(&mut all);
        }
        all
    }
}

impl Shard {
    /// A call has ended.
    pub(crate) fn count(&mut self, step: StepOfFlow, times: Times, went: &Went) {
        let Self { tally, recent, steps, .. } = self;
        let Times { intended_ns, began_ns, ended_ns } = times;
        let latency_ns = ended_ns.saturating_sub(intended_ns);
        let mut flows = Flows::default();
        if step.is_first {
            let wait_ns = began_ns.saturating_sub(intended_ns);
            let is_late = wait_ns > LATE_NS;
            flows.begun = 1;
            tally.wait.record(wait_ns);
            tally.late += u64::from(is_late);
            recent.late += u64::from(is_late);
        }
        match went.failure {
            Some(_) => flows.failed = 1,
            None if step.is_last => flows.ok = 1,
            None => {}
        }
        tally.flows += flows;
        recent.flows += flows;
        tally.codes.count(went);
        tally.finishes.record(ended_ns);
        if let Some(failure) = &went.failure {
            tally.failed.record(latency_ns);
            recent.failed += 1;
            if tally.first_failure.as_ref().is_none_or(|(at_ns, _)| ended_ns < *at_ns) {
                tally.first_failure = Some((ended_ns, described(failure)));
            }
        } else {
            tally.latency.record(latency_ns);
            tally.service.record(ended_ns.saturating_sub(began_ns));
            recent.latency.record(latency_ns);
            recent.ok += 1;
        }
        if let Some(step) = steps.get_mut(step.index) {
            step.codes.count(went);
            if went.failure.is_none() {
                step.latency.record(latency_ns);
            }
        }
        self.count_traffic(went.traffic);
    }

    /// A request of a stream is sent.
    pub(crate) fn count_request(&mut self, bytes: u64) {
        self.count_traffic(Traffic { sent: 1, bytes_sent: bytes, ..Traffic::default() });
    }

    /// Responses of a stream have come.
    pub(crate) fn count_responses(&mut self, batch: &Batch) {
        let Batch { count, bytes, first_ns, replies } = batch;
        self.count_traffic(Traffic { received: *count, bytes_received: *bytes, ..Traffic::default() });
        if let Some(first_ns) = first_ns {
            self.tally.first.record(*first_ns);
        }
        for &Replies { took_ns, count } in replies {
            self.tally.replies.record_many(took_ns, count);
            self.recent.replies.record_many(took_ns, count);
        }
    }

    fn count_traffic(&mut self, traffic: Traffic) {
        self.tally.traffic += traffic;
        self.recent.traffic += traffic;
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
