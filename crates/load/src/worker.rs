//! Workers, each with one call in flight.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thalweg::Status;
use thalweg_measure::shards::CachePadded;

use crate::bytes_form::Bytes;
use crate::call::{CallKind, Calls};
use crate::call_context::CallContext;
use crate::call_outcome::{CallOutcome, Failure};
use crate::pacer::Due;
use crate::perform::{perform, unary};
use crate::plan::{Pace, Plan, Stop, UnfinishedCalls};
use crate::progress::Progress;
use crate::scenario::{Channels, Scenario};
use crate::schedule::Schedule;
use crate::share::Share;
use crate::tally::{Shards, StepOfFlow, Times};
use crate::worker_counters::{ByServer, WorkerCounters};

/// Pause of a closed-loop worker after a failed call, to avoid hammering a server that refuses everything.
const FAILURE_PAUSE: Duration = Duration::from_millis(10);
/// Interval at which an inactive worker checks whether it is active.
const ACTIVE_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// State shared by the workers of a run.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) base: Instant,
    /// Calls due earlier are not counted. All times here are ns since `base`.
    pub(crate) from_ns: u64,
    /// End of starts.
    pub(crate) until_ns: u64,
    /// Calls of a closed loop that end later are not counted.
    pub(crate) counted_until_ns: u64,
    /// Time at which calls in flight are cancelled, if at all.
    pub(crate) cut_at: Option<Instant>,
    /// Starts of an open loop.
    pub(crate) due: Option<Due>,
    /// Schedule of active workers in a closed loop over the measured time; `None` means all.
    pub(crate) workers: Option<Schedule>,
    /// Remaining starts, if a number ends a closed loop.
    pub(crate) left: Option<AtomicU64>,
    /// Remaining stream messages, if their number ends the run.
    pub(crate) messages_left: Option<Arc<AtomicU64>>,
    /// Part of a distributed load.
    pub(crate) share: Option<Share>,
    pub(crate) stopped: Arc<AtomicBool>,
    /// Whether a schedule had starts after the end of the time.
    pub(crate) remaining_starts: AtomicBool,
    /// Set apart from the rest, as all threads write it with each call and only read the others.
    pub(crate) started: CachePadded<AtomicU64>,
    pub(crate) progresses: Mutex<Vec<Arc<Progress>>>,
    pub(crate) shards: Arc<Shards>,
    pub(crate) has_several_servers: bool,
}

impl Shared {
    /// Creates the state of a run on `threads` threads, whose clock starts at `base`.
    pub(crate) fn new(plan: &Plan, scenario: &Arc<Scenario>, base: Instant, threads: usize) -> Self {
        let (from_ns, until_ns) = (plan.warm_up.as_nanos() as u64, plan.until_ns());
        let workers = match &plan.pace {
            Pace::Closed { workers } => workers.clone(),
            Pace::Open { .. } => None,
        };
        let left = match (&plan.pace, plan.stop) {
            (Pace::Closed { .. }, Stop::Calls(calls)) => {
                Some(AtomicU64::new(plan.share.map_or(calls, |share| share.of_calls(calls))))
            }
            _ => None,
        };
        let is_open = matches!(plan.pace, Pace::Open { .. });
        let messages_left = match plan.own_stop() {
            Stop::Messages(messages) => Some(Arc::new(AtomicU64::new(messages))),
            _ => None,
        };
        Self {
            scenario: scenario.clone(),
            base,
            from_ns,
            until_ns,
            counted_until_ns: plan.counted_until_ns(),
            cut_at: plan.cut_at(base).filter(|_| plan.unfinished_calls == UnfinishedCalls::Close),
            due: is_open.then(|| Due::new(from_ns, plan.in_flight)),
            workers,
            left,
            messages_left,
            share: plan.share,
            stopped: Arc::default(),
            remaining_starts: AtomicBool::new(false),
            started: CachePadded::default(),
            progresses: Mutex::default(),
            shards: Arc::new(Shards::new(threads, scenario.steps().count(), is_open, plan.has_intervals())),
            has_several_servers: scenario.has_several_servers(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.base.elapsed().as_nanos() as u64
    }

    /// Returns the number of calls in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        let all = self.progresses.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|progress| progress.since_ns().is_some()).count() as u64
    }

    /// Adds a worker.
    pub(crate) fn progress(&self) -> Arc<Progress> {
        let mut all = self.progresses.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::default());
        all.last().cloned().unwrap_or_default()
    }

    fn counters(&self, progress: Arc<Progress>) -> Arc<WorkerCounters> {
        Arc::new(WorkerCounters {
            shards: self.shards.clone(),
            base: self.base,
            from_ns: self.from_ns,
            messages_left: self.messages_left.clone(),
            stopped: self.stopped.clone(),
            progress,
            by_server: self
                .has_several_servers
                .then(|| ByServer::new(self.scenario.steps().map(|(_, step)| &step.call.options))),
        })
    }

    /// Counts a call awaited since `since_ns` as failed.
    pub(crate) fn fail(&self, since_ns: u64, status: Status) {
        self.counters(Arc::default()).take_failed();
        let ended_ns = self.now_ns();
        if ended_ns >= self.from_ns {
            let times = Times { intended_ns: since_ns, began_ns: since_ns, ended_ns };
            let step = StepOfFlow { index: 0, is_first: true, is_last: true };
            self.shards.own().count(step, times, &CallOutcome::failed(Failure::Status(status)));
        }
    }

    /// Stops starting calls.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        if let Some(due) = &self.due {
            due.close();
        }
    }

    /// Returns whether starts remain, of a closed loop that ends by number, or of a schedule.
    pub(crate) fn has_remaining_starts(&self) -> bool {
        let is_left = self.left.as_ref().is_some_and(|left| left.load(Relaxed) > 0);
        is_left || self.remaining_starts.load(Relaxed)
    }

    /// Returns whether no more calls start.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        let has_none = |left: &AtomicU64| left.load(Relaxed) == 0;
        let is_done = || {
            self.left.as_ref().is_some_and(has_none) || self.messages_left.as_deref().is_some_and(has_none)
        };
        self.stopped.load(Relaxed) || now_ns >= self.until_ns || is_done()
    }

    /// Waits for a think time. In a closed loop it ends with the run; in an open loop, flows in progress run to their
    /// end.
    async fn think(&self, time: Duration) {
        let left = match &self.due {
            Some(_) => Duration::MAX,
            None => Duration::from_nanos(self.until_ns.saturating_sub(self.now_ns())),
        };
        tokio::time::sleep(time.min(left)).await;
    }

    /// Takes one of the remaining starts, if a number ends a closed loop. Those of the warm-up do not count.
    fn take_start(&self, counts: bool) -> bool {
        match &self.left {
            Some(left) if counts => left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok(),
            _ => true,
        }
    }

    fn context<'w>(
        &self,
        worker: usize,
        number: u64,
        counted: Range<u64>,
        counters: &'w Arc<WorkerCounters>,
    ) -> CallContext<'w> {
        CallContext {
            worker,
            number,
            variables: None,
            options: None,
            cut_at: self.cut_at,
            until_ns: self.until_ns,
            counted,
            counters,
            connects_per_call: matches!(self.scenario.channels, Channels::PerCall(_)),
        }
    }

    /// Returns whether this worker is active at this time.
    fn is_active(&self, worker: usize, now_ns: u64) -> bool {
        self.workers.as_ref().is_none_or(|workers| {
            let seconds = now_ns.saturating_sub(self.from_ns) as f64 / 1e9;
            worker < workers.rate_at(seconds).round() as usize
        })
    }
}

/// Makes calls until the run is over.
pub(crate) async fn work(shared: Arc<Shared>, worker: usize, progress: Arc<Progress>) {
    let counters = &shared.counters(progress);
    match &shared.due {
        Some(due) => {
            while let Some((number, intended_ns)) = due.next().await {
                let counted = if intended_ns >= shared.from_ns { ALWAYS } else { NEVER };
                let context = shared.context(worker, number, counted, counters);
                shared.started.0.fetch_add(1, Relaxed);
                flow(&shared, context, intended_ns, shared.now_ns()).await;
                due.done();
            }
        }
        None => repeat(&shared, worker, counters).await,
    }
}

/// Runs a closed loop. The end of a call is the start of the next, so one reading of the clock serves both.
async fn repeat(shared: &Shared, worker: usize, counters: &Arc<WorkerCounters>) {
    let mut began_ns = shared.now_ns();
    while !shared.is_over(began_ns) {
        if !shared.is_active(worker, began_ns) {
            tokio::time::sleep(ACTIVE_CHECK_INTERVAL).await;
            began_ns = shared.now_ns();
            continue;
        }
        let counts = began_ns >= shared.from_ns;
        if !shared.take_start(counts) {
            break;
        }
        // If a number ends the loop, calls of the warm-up do not count.
        let is_none = shared.left.is_some() && !counts;
        let counted = if is_none { NEVER } else { shared.from_ns..shared.counted_until_ns };
        let own = shared.started.0.fetch_add(1, Relaxed);
        let number = shared.share.map_or(own, |share| share.number(own));
        let context = shared.context(worker, number, counted, counters);
        let ended = flow(shared, context, began_ns, began_ns).await;
        began_ns = ended.at_ns;
        if !ended.is_ok {
            tokio::time::sleep(FAILURE_PAUSE).await;
            began_ns = shared.now_ns();
        }
    }
}

/// Ranges in which all or no messages count, in ns of the run's clock.
const ALWAYS: Range<u64> = 0..u64::MAX;
const NEVER: Range<u64> = 0..0;

struct FlowEnd {
    at_ns: u64,
    is_ok: bool,
}

/// Runs the steps of one flow, until one fails.
async fn flow(shared: &Shared, mut context: CallContext<'_>, intended_ns: u64, began_ns: u64) -> FlowEnd {
    let scenario = &shared.scenario;
    let (first, flow) = scenario.flow_of(context.number);
    let (mut intended, mut began) = (intended_ns, began_ns);
    for (place, step) in flow.steps.iter().enumerate() {
        context.counters.progress.waits_since(began);
        if let Some(by_server) = &context.counters.by_server {
            context.options = by_server.options.get(first + place);
        }
        let (start, call) =
            (shared.share.map_or(context.number, |share| share.own(context.number)), &step.call);
        let outcome = match (scenario.channel(start, context.worker), &call.calls) {
            (Err(status), _) => CallOutcome::failed(Failure::Status(status)),
            (Ok(channel), Calls::Benchmark(benchmark)) if call.kind == CallKind::Unary => {
                unary(benchmark, call, &channel, &mut context).await
            }
            (Ok(channel), Calls::Bytes(requests)) if call.kind == CallKind::Unary => {
                unary(&Bytes { call, requests }, call, &channel, &mut context).await
            }
            (Ok(channel), _) => perform(call, &channel, &mut context).await,
        };
        context.counters.progress.rests();
        let ended_ns = shared.now_ns();
        let server = context.counters.by_server.as_ref().and_then(|by_server| by_server.peer.take());
        // A stream that lasts to the end of the run ends after it.
        let is_counted = context.counted.contains(&ended_ns)
            || step.call.stream.lasts_to_end && (context.counted.start..u64::MAX).contains(&ended_ns);
        // The run was over before the first message of the stream, so it does not count.
        let is_nothing = step.call.stream.lasts_to_end && outcome.failure.is_none() && !outcome.has_traffic;
        if outcome.failure.is_some() && !outcome.has_traffic {
            context.counters.take_failed();
        }
        if is_counted && !is_nothing {
            let times = Times { intended_ns: intended, began_ns: began, ended_ns };
            let step = StepOfFlow {
                index: first + place,
                is_first: place == 0,
                is_last: place + 1 == flow.steps.len(),
            };
            let mut shard = shared.shards.own();
            shard.count(step, times, &outcome);
            if let Some(server) = &server {
                shard.count_server(server, outcome.failure.is_none(), ended_ns.saturating_sub(intended));
            }
        }
        if outcome.failure.is_some() || place + 1 == flow.steps.len() {
            let is_ok = outcome.failure.is_none();
            if is_ok && flow.steps.len() > 1 && context.counted.contains(&ended_ns) {
                shared.shards.own().count_flow(ended_ns.saturating_sub(intended_ns));
            }
            // In an open loop the next start does not wait for this flow.
            if let Some(think) = step.think.filter(|_| shared.due.is_none() && !shared.is_over(ended_ns)) {
                shared.think(scenario.think(think, context.number, place)).await;
                return FlowEnd { at_ns: shared.now_ns(), is_ok };
            }
            return FlowEnd { at_ns: ended_ns, is_ok };
        }
        intended = ended_ns;
        if let Some(think) = step.think {
            shared.think(scenario.think(think, context.number, place)).await;
            intended = shared.now_ns();
        }
        let is_over = shared.due.is_none() && intended >= shared.until_ns;
        if is_over || shared.stopped.load(Relaxed) {
            return FlowEnd { at_ns: intended, is_ok: true };
        }
        began = intended;
    }
    FlowEnd { at_ns: intended, is_ok: true }
}
