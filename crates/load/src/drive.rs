//! Drives a plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use thalweg_lab::record::{CpuTime, code_name};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::arrivals::Arrivals;
use crate::call::Callee;
use crate::intervals::Intervals;
use crate::pacer::{self, Due};
use crate::plan::{Pace, Plan, PlanError, Stop};
use crate::run::{Interval, LoadRun, RunNote, SCHEMA, Timing};
use crate::tally::{LATE_NS, Shards};
use crate::worker::{Shared, work};

/// A client that used more of its processors than this was the limit of what it measured.
const BUSY_SHARE_MAX: f64 = 0.95;
/// Calls that began late by more than this share say that the client did not keep to its schedule.
const LATE_SHARE_MAX: f64 = 0.01;
/// After an interrupt, calls under way have so long to come back.
const INTERRUPTED_PATIENCE: Duration = Duration::from_secs(1);

/// Drives `callee` as `plan` says, until that ends it or `interrupt` comes. `observe` is told each interval when it has
/// ended.
///
/// It runs on the caller's tokio runtime. Each call ends by its deadline (`callee.options.timeout`): without one a
/// server that never answers keeps the run from ending.
///
/// # Errors
///
/// For a plan that makes no run.
pub async fn drive(
    plan: &Plan,
    callee: Callee,
    interrupt: impl Future<Output = ()>,
    mut observe: impl FnMut(&Interval),
) -> Result<LoadRun, PlanError> {
    plan.check()?;
    let threads = tokio::runtime::Handle::current().metrics().num_workers();
    let base = Instant::now();
    let from_ns = plan.warm_up.as_nanos() as u64;
    let until_ns = match plan.stop {
        Stop::After(duration) => from_ns.saturating_add(duration.as_nanos() as u64),
        Stop::Calls(_) => u64::MAX,
    };
    let shared = Arc::new(Shared {
        callee,
        base,
        from_ns,
        until_ns,
        due: matches!(plan.pace, Pace::Open { .. }).then(Due::new),
        left: match (&plan.pace, plan.stop) {
            (Pace::Closed, Stop::Calls(calls)) => Some(AtomicU64::new(calls)),
            _ => None,
        },
        stopped: AtomicBool::new(false),
        begun: AtomicU64::new(0),
        under_way: AtomicU64::new(0),
        shards: Shards::new(threads),
    });
    let mut workers = JoinSet::new();
    for worker in 0..plan.in_flight as usize {
        workers.spawn(work(shared.clone(), worker));
    }
    let pacing = tokio::spawn(paced(shared.clone(), plan.clone()));

    let mut interrupt = std::pin::pin!(interrupt);
    let mut warm_up = std::pin::pin!(tokio::time::sleep_until((base + plan.warm_up).into()));
    let mut before = (CpuTime::of_this_process().unwrap_or_default(), thalweg::looked_in_vain());
    let mut started = SystemTime::now();
    let mut warm = false;
    let first = base + plan.warm_up + plan.interval;
    let mut ticks = tokio::time::interval_at(first.into(), plan.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut intervals = Intervals::new(plan.interval);
    let mut since_ns = from_ns;
    let mut interrupted_at: Option<Instant> = None;
    let mut end_interval = |intervals: &mut Intervals, since_ns: u64, now_ns: u64| {
        let scheduled =
            plan.scheduled_between(since_ns - from_ns, now_ns.min(until_ns).max(since_ns) - from_ns);
        let recent = shared.shards.take_recent();
        let in_flight = shared.under_way.load(Relaxed);
        let interval = intervals.push(since_ns - from_ns, &recent, in_flight, scheduled);
        observe(&interval);
    };
    while !workers.is_empty() {
        tokio::select! {
            ended = workers.join_next() => {
                if let Some(Err(error)) = ended && error.is_panic() {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
            () = &mut warm_up, if !warm => {
                warm = true;
                before = (CpuTime::of_this_process().unwrap_or_default(), thalweg::looked_in_vain());
                started = SystemTime::now();
            }
            _ = ticks.tick() => {
                let now_ns = shared.now_ns();
                // What is left of the last interval, and what is only waited for, are told at the end.
                if now_ns < until_ns && interrupted_at.is_none() {
                    end_interval(&mut intervals, since_ns, now_ns);
                    since_ns = now_ns;
                }
            }
            () = &mut interrupt, if interrupted_at.is_none() => {
                interrupted_at = Some(Instant::now());
                shared.stop();
            }
            () = tokio::time::sleep(INTERRUPTED_PATIENCE), if interrupted_at.is_some() => {
                if interrupted_at.is_some_and(|at| at.elapsed() >= INTERRUPTED_PATIENCE) {
                    workers.abort_all();
                }
            }
        }
    }
    pacing.abort();
    let ended_ns = shared.now_ns();
    end_interval(&mut intervals, since_ns, ended_ns);
    let measured_ns = match plan.stop {
        Stop::After(_) => ended_ns.min(until_ns).saturating_sub(from_ns),
        Stop::Calls(_) => ended_ns.saturating_sub(from_ns),
    };
    let cpu = CpuTime::of_this_process().unwrap_or_default() - before.0;
    let spun = shared.due.as_ref().map_or(Duration::ZERO, Due::spun);
    let looked = thalweg::looked_in_vain().saturating_sub(before.1);
    let outcome = Outcome {
        started,
        measured_ns,
        drain_ns: ended_ns.saturating_sub(until_ns),
        cpu,
        looked,
        spun,
        threads,
        was_interrupted: interrupted_at.is_some(),
    };
    Ok(finish(plan, &shared, &intervals, &outcome))
}

/// Makes starts due, and ends the run of an open loop when there are no more.
async fn paced(shared: Arc<Shared>, plan: Plan) {
    let Pace::Open { schedule, spacing, seed } = plan.pace else { return };
    let Some(due) = &shared.due else { return };
    let arrivals = Arrivals::new(schedule.after(plan.warm_up), spacing, seed);
    let (from_ns, mut left) = (
        shared.from_ns,
        match plan.stop {
            Stop::Calls(calls) => calls,
            Stop::After(_) => u64::MAX,
        },
    );
    let arrivals = arrivals.take_while(move |&start| {
        let counts = start >= from_ns;
        let is_left = !counts || left > 0;
        left = left.saturating_sub(u64::from(counts));
        is_left
    });
    let work = || 2 * shared.begun.load(Relaxed) - shared.under_way.load(Relaxed);
    // Without the kernel's timers there is no open loop; whoever waits sees that nothing was begun.
    let _ = pacer::pace(due, arrivals, shared.base, shared.until_ns, work).await;
    if shared.until_ns == u64::MAX {
        while !due.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    } else {
        // What is due with the last stroke is begun all the same.
        let closing = Duration::from_nanos(shared.until_ns.saturating_add(LATE_NS));
        tokio::time::sleep_until((shared.base + closing).into()).await;
    }
    due.close();
}

impl Plan {
    /// Calls that the schedule has between these times, ns since measuring began.
    fn scheduled_between(&self, from_ns: u64, until_ns: u64) -> f64 {
        match &self.pace {
            Pace::Closed => 0.0,
            Pace::Open { schedule, .. } => {
                schedule.begun_after(until_ns as f64 / 1e9) - schedule.begun_after(from_ns as f64 / 1e9)
            }
        }
    }
}

struct Outcome {
    started: SystemTime,
    measured_ns: u64,
    drain_ns: u64,
    cpu: CpuTime,
    looked: Duration,
    spun: Duration,
    threads: usize,
    was_interrupted: bool,
}

/// Without the time in which the clock was looked at, part of which is the kernel's.
fn without(cpu: CpuTime, spun: Duration) -> CpuTime {
    let (spun_ns, all_ns) = (spun.as_nanos() as f64, cpu.user_ns + cpu.system_ns);
    if all_ns <= 0.0 { cpu } else { cpu / (all_ns / (all_ns - spun_ns).max(1.0)) }
}

fn finish(plan: &Plan, shared: &Shared, intervals: &Intervals, outcome: &Outcome) -> LoadRun {
    let tally = shared.shards.merged();
    let seconds = outcome.measured_ns as f64 / 1e9;
    let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let (ok, failed) = (tally.codes[0], tally.failures());
    let dropped = shared.due.as_ref().map_or(0, Due::dropped);
    let (schedule, spacing) = match &plan.pace {
        Pace::Closed => (None, None),
        Pace::Open { schedule, spacing, .. } => (Some(schedule), Some(*spacing)),
    };
    let mut notes = Vec::new();
    let mut note = |text: String, invalidates: bool| notes.push(RunNote { text, invalidates });
    if let Some((_, failure)) = &tally.first_failure {
        note(format!("the first failed call ended with {failure}"), false);
    }
    if ok + failed == 0 {
        note("no call ended within the measured time".to_owned(), true);
    }
    let of_calls = without(outcome.cpu, outcome.spun);
    let busy_ns = of_calls.user_ns + of_calls.system_ns - outcome.looked.as_nanos() as f64;
    let busy_share = busy_ns / (outcome.measured_ns as f64 * outcome.threads as f64);
    if busy_share > BUSY_SHARE_MAX {
        note(
            format!(
                "the client's processors were busy for {:.0} % of the time: the client was the limit, not the server",
                busy_share.min(1.0) * 100.0
            ),
            true,
        );
    }
    let late_share = tally.late as f64 / (ok + failed).max(1) as f64;
    if dropped > 0 || late_share > LATE_SHARE_MAX {
        note(
            format!(
                "{} of {} calls began more than 1 ms late, and {dropped} never: with {} in flight at the most the \
                 server did not keep up with the schedule (latency has the waiting in it)",
                tally.late,
                ok + failed,
                plan.in_flight
            ),
            false,
        );
    }
    if outcome.was_interrupted {
        note("the run was interrupted before its end".to_owned(), false);
    }
    let errors = (0..).zip(&tally.codes).skip(1).filter(|(_, count)| **count > 0);
    let ended = outcome.started + Duration::from_nanos(outcome.measured_ns);
    LoadRun {
        schema: SCHEMA.to_owned(),
        targets: shared.callee.targets.clone(),
        method: shared.callee.method.path().trim_start_matches('/').to_owned(),
        kind: shared.callee.kind.name().to_owned(),
        loop_kind: if schedule.is_some() { "open" } else { "closed" }.to_owned(),
        schedule: schedule.map(ToString::to_string),
        spacing: spacing.map(|spacing| spacing.name().to_owned()),
        in_flight: plan.in_flight,
        connections: shared.callee.connections,
        connections_established: None,
        warmup_ns: plan.warm_up.as_nanos() as u64,
        started: humantime::format_rfc3339_millis(outcome.started).to_string(),
        ended: humantime::format_rfc3339_millis(ended).to_string(),
        duration_ns: outcome.measured_ns,
        drain_ns: outcome.drain_ns,
        rate_per_s: per_second(ok as f64),
        scheduled_per_s: schedule.map(|_| per_second(plan.scheduled_between(0, outcome.measured_ns))),
        ok,
        failed,
        errors: errors.map(|(code, count)| (code_name(code).to_owned(), *count)).collect(),
        late: tally.late,
        dropped,
        messages_sent: tally.sent,
        messages_received: tally.received,
        bytes_sent: tally.bytes_sent,
        bytes_received: tally.bytes_received,
        latency: Timing::of(&tally.latency),
        service: schedule.and_then(|_| Timing::of(&tally.service)),
        wait: schedule.and_then(|_| Timing::of(&tally.wait)),
        failed_latency: Timing::of(&tally.failed),
        first_message: Timing::of(&tally.first),
        reply: Timing::of(&tally.replies),
        interval_ns: intervals.length().as_nanos() as u64,
        intervals: intervals.all(),
        spun_ns: outcome.spun.as_nanos() as u64,
        client_cpu: outcome.cpu,
        client_cpu_per_call: (ok > 0).then(|| of_calls / ok as f64),
        gates: Vec::new(),
        notes,
    }
}
