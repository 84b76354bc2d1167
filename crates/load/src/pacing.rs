//! Paces the starts of a run by its schedule.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};

use crate::pacer::{Due, RunClock, pace};
use crate::plan::{Plan, Stop};
use crate::starts::starts;
use crate::worker::Shared;

/// Time for workers to take starts that were due just before the end.
pub(crate) const LAST_STROKE: Duration = Duration::from_millis(50);

/// Makes starts due, and ends an open loop's run after the last one. Does nothing in a closed loop.
///
/// # Errors
///
/// If the kernel's timer fails, which an open loop requires.
pub(crate) async fn paced(shared: Arc<Shared>, plan: Plan) -> io::Result<()> {
    let Some(due) = &shared.due else { return Ok(()) };
    let clock = RunClock::new(shared.base)?;
    // A run that starts during the warm-up joins for the rest of it.
    let missed_ns = plan.start_at.map_or(0, |_| shared.now_ns()).min(shared.from_ns);
    let starts = starts(&plan).skip_while(move |&(_, at_ns)| at_ns < missed_ns);
    let starts = starts.inspect(|&(_, at_ns)| {
        if at_ns >= shared.until_ns {
            shared.remaining_starts.store(true, Relaxed);
        }
    });
    let work = || shared.started.0.load(Relaxed) + due.ended();
    pace(due, starts, &clock, shared.until_ns, work).await?;
    if shared.until_ns == u64::MAX {
        all_taken(due, None).await;
        // The last start is followed by as much time as the others.
        let until_ns = plan.measured_until_ns();
        if until_ns < u64::MAX {
            sleep_until((shared.base + Duration::from_nanos(until_ns)).into()).await;
        }
    } else {
        // Starts due just before the end are still made.
        let until = shared.base + Duration::from_nanos(shared.until_ns);
        all_taken(due, Some(plan.cut_at(shared.base).unwrap_or(until + LAST_STROKE))).await;
        if matches!(plan.stop, Stop::Calls(_)) && !due.is_empty() {
            shared.remaining_starts.store(true, Relaxed);
        }
        // The time after the last start is part of the run, and so of its rate.
        if matches!(plan.stop, Stop::After(_)) || shared.remaining_starts.load(Relaxed) {
            sleep_until(until.into()).await;
        }
    }
    due.close();
    Ok(())
}

/// Waits until workers have taken all due starts, or until this time.
async fn all_taken(due: &Due, until: Option<Instant>) {
    while !due.is_empty() && until.is_none_or(|until| Instant::now() < until) {
        sleep(Duration::from_millis(1)).await;
    }
}
