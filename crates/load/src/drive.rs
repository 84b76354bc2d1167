//! Drives a plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use thalweg_lab::shards::Apart;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, sleep, sleep_until};

use crate::agreed;
use crate::observer::Observer;
use crate::pacer::{self, Due};
use crate::plan::{Pace, Plan, PlanError, Stop, UnderWay};
use crate::run::LoadRun;
use crate::running::{End, Running};
use crate::scenario::{Flow, Scenario};
use crate::starts::{starts, too_few};
use crate::tally::Shards;
use crate::worker::{Shared, work};

/// Starts that were due within the time have so long to be taken.
const LAST_STROKE: Duration = Duration::from_millis(50);
/// After an interrupt, calls under way have so long to come back.
const INTERRUPTED_PATIENCE: Duration = Duration::from_secs(1);

/// Drives `scenario` as `plan` says, until that ends it or `interrupt` comes. `observer` is told of it
/// when it begins, and of each interval when it has ended.
///
/// It runs on the caller's tokio runtime. Each call ends by its deadline (`options.timeout`): without one a server that
/// never answers keeps the run from ending.
///
/// # Errors
///
/// For a plan that makes no run.
pub async fn drive(
    plan: &Plan,
    scenario: &Arc<Scenario>,
    interrupt: impl Future<Output = ()>,
    observer: &mut impl Observer,
) -> Result<LoadRun, PlanError> {
    plan.check()?;
    let is_chosen = |flow: &Flow| flow.weight > 0;
    if !scenario.flows.iter().any(is_chosen) || scenario.flows.iter().any(|flow| flow.steps.is_empty()) {
        return Err(PlanError::NothingToCall);
    }
    let threads = tokio::runtime::Handle::current().metrics().num_workers();
    let mut interrupt = std::pin::pin!(interrupt);
    let mut interrupted_at: Option<Instant> = None;
    let mut is_given_up = false;
    let mut base = Instant::now();
    if let Some(start_at) = plan.start_at {
        agreed::check(start_at, SystemTime::now())?;
        tokio::select! {
            begins = agreed::warm_up_begins(start_at, plan.warm_up) => base = begins,
            () = &mut interrupt => interrupted_at = Some(Instant::now()),
        }
    }
    let (from_ns, until_ns) = (plan.warm_up.as_nanos() as u64, plan.until_ns());
    let may_cut = plan.under_way.is_cut() && until_ns < u64::MAX;
    let cut_at = may_cut.then(|| base + Duration::from_nanos(until_ns));
    let shared = Arc::new(Shared {
        scenario: scenario.clone(),
        base,
        from_ns,
        until_ns,
        counted_until_ns: plan.counted_until_ns(),
        cut_at: cut_at.filter(|_| plan.under_way == UnderWay::Close),
        due: matches!(plan.pace, Pace::Open { .. }).then(|| Due::new(from_ns)),
        workers: match &plan.pace {
            Pace::Closed { workers } => workers.clone(),
            Pace::Open { .. } => None,
        },
        left: match (&plan.pace, plan.stop) {
            (Pace::Closed { .. }, Stop::Calls(calls)) => {
                Some(AtomicU64::new(plan.share.map_or(calls, |share| share.of_calls(calls))))
            }
            _ => None,
        },
        share: plan.share,
        stopped: AtomicBool::new(false),
        left_starts: AtomicBool::new(false),
        begun: Apart::default(),
        under_way: Apart::default(),
        shards: Shards::new(threads, scenario.steps().count()),
    });
    if interrupted_at.is_some() {
        shared.stop();
    }
    let running = Running::new(plan, &shared, threads);
    observer.begins(&running);
    let mut workers = JoinSet::new();
    for worker in 0..plan.in_flight as usize {
        workers.spawn(work(shared.clone(), worker));
    }
    let pacing = tokio::spawn(paced(shared.clone(), plan.clone()));
    // Those that count as failed end by themselves; who thinks is not waited for.
    let patience = if plan.under_way == UnderWay::Close { LAST_STROKE } else { Duration::ZERO };
    let cut = async {
        match cut_at {
            Some(at) => sleep_until((at + patience).into()).await,
            None => std::future::pending().await,
        }
    };
    let mut cut = std::pin::pin!(cut);
    let mut is_cut = false;

    let mut warm_up = std::pin::pin!(sleep_until((base + plan.warm_up).into()));
    let mut warm = false;
    let first = base + plan.warm_up + plan.interval;
    let mut ticks = tokio::time::interval_at(first.into(), plan.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !workers.is_empty() {
        tokio::select! {
            ended = workers.join_next() => {
                if let Some(Err(error)) = ended && error.is_panic() {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
            () = &mut warm_up, if !warm => {
                warm = true;
                running.measuring_begins();
            }
            _ = ticks.tick() => {
                // What is left of the last interval, and what is only waited for, are told at the end.
                if shared.now_ns() < until_ns && interrupted_at.is_none() {
                    observer.interval(&running.end_interval(), &running);
                }
            }
            () = &mut interrupt, if interrupted_at.is_none() => {
                interrupted_at = Some(Instant::now());
                shared.stop();
            }
            () = &mut cut, if !is_cut => {
                is_cut = true;
                shared.stop();
                workers.abort_all();
            }
            () = sleep_until((interrupted_at.unwrap_or(base) + INTERRUPTED_PATIENCE).into()),
                if interrupted_at.is_some() && !is_given_up =>
            {
                is_given_up = true;
                workers.abort_all();
            }
        }
    }
    pacing.abort();
    observer.interval(&running.end_interval(), &running);
    let is_by_number = matches!(plan.stop, Stop::Calls(_));
    Ok(running.result(match interrupted_at {
        Some(_) => End::Interrupted,
        None if is_by_number && (is_cut || shared.has_left_starts()) => End::TimeUp,
        None => too_few(plan).map_or(End::AsPlanned, End::ScheduleOver),
    }))
}

/// Makes starts due, and ends the run of an open loop when there are no more.
async fn paced(shared: Arc<Shared>, plan: Plan) {
    let Some(due) = &shared.due else { return };
    // Who comes when the warm-up is under way takes part in what is left of it.
    let missed_ns = plan.start_at.map_or(0, |_| shared.now_ns()).min(shared.from_ns);
    let starts = starts(&plan).skip_while(move |&(_, at_ns)| at_ns < missed_ns);
    let starts = starts.inspect(|&(_, at_ns)| {
        if at_ns >= shared.until_ns {
            shared.left_starts.store(true, Relaxed);
        }
    });
    // The two are read one after the other: more may be under way than had begun.
    let work = || (2 * shared.begun.0.load(Relaxed)).wrapping_sub(shared.under_way.0.load(Relaxed));
    // Without the kernel's timers there is no open loop; whoever waits sees that nothing was begun.
    let _ = pacer::pace(due, starts, shared.base, shared.until_ns, work).await;
    if shared.until_ns == u64::MAX {
        while !due.is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        // The last start is followed by as much time as the others.
        let until_ns = plan.measured_until_ns();
        if until_ns < u64::MAX {
            sleep_until((shared.base + Duration::from_nanos(until_ns)).into()).await;
        }
    } else {
        // What is due with the last stroke is begun all the same.
        let until = shared.base + Duration::from_nanos(shared.until_ns);
        let closing = if plan.under_way.is_cut() { until } else { until + LAST_STROKE };
        while !due.is_empty() && Instant::now() < closing {
            sleep(Duration::from_millis(1)).await;
        }
        if matches!(plan.stop, Stop::Calls(_)) && !due.is_empty() {
            shared.left_starts.store(true, Relaxed);
        }
        // The time behind the last start is a part of the run: without it the rate would be another.
        if matches!(plan.stop, Stop::After(_)) || shared.left_starts.load(Relaxed) {
            sleep_until(until.into()).await;
        }
    }
    due.close();
}
