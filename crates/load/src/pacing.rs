//! The starts of a run by a schedule, until there are no more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};

use crate::pacer::{Due, RunClock, pace};
use crate::plan::{Plan, Stop};
use crate::starts::starts;
use crate::worker::Shared;

/// Starts that were due within the time have so long to be taken.
pub(crate) const LAST_STROKE: Duration = Duration::from_millis(50);

/// Makes starts due, and ends the run of an open loop when there are no more. A closed loop has none.
///
/// # Errors
///
/// Where the kernel's timer fails: without it there is no open loop.
pub(crate) async fn paced(shared: Arc<Shared>, plan: Plan) -> io::Result<()> {
    let Some(due) = &shared.due else { return Ok(()) };
    let clock = RunClock::new(shared.base)?;
    // Who comes when the warm-up is under way takes part in what is left of it.
    let missed_ns = plan.start_at.map_or(0, |_| shared.now_ns()).min(shared.from_ns);
    let starts = starts(&plan).skip_while(move |&(_, at_ns)| at_ns < missed_ns);
    let starts = starts.inspect(|&(_, at_ns)| {
        if at_ns >= shared.until_ns {
            shared.left_starts.store(true, Relaxed);
        }
    });
    let work = || shared.begun.0.load(Relaxed) + due.ended();
    pace(due, starts, &clock, shared.until_ns, work).await?;
    if shared.until_ns == u64::MAX {
        all_taken(due, None).await;
        // The last start is followed by as much time as the others.
        let until_ns = plan.measured_until_ns();
        if until_ns < u64::MAX {
            sleep_until((shared.base + Duration::from_nanos(until_ns)).into()).await;
        }
    } else {
        // What is due with the last stroke is begun all the same.
        let until = shared.base + Duration::from_nanos(shared.until_ns);
        all_taken(due, Some(plan.cut_at(shared.base).unwrap_or(until + LAST_STROKE))).await;
        if matches!(plan.stop, Stop::Calls(_)) && !due.is_empty() {
            shared.left_starts.store(true, Relaxed);
        }
        // The time behind the last start is a part of the run: without it the rate would be another.
        if matches!(plan.stop, Stop::After(_)) || shared.left_starts.load(Relaxed) {
            sleep_until(until.into()).await;
        }
    }
    due.close();
    Ok(())
}

/// Waits until workers have taken all starts that are due, until this time at the longest.
async fn all_taken(due: &Due, until: Option<Instant>) {
    while !due.is_empty() && until.is_none_or(|until| Instant::now() < until) {
        sleep(Duration::from_millis(1)).await;
    }
}
