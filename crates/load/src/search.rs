//! Looks for the highest rate that keeps to conditions.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::arrivals::Spacing;
use crate::drive::{DriveError, drive};
use crate::gates::Gate;
use crate::observer::Observer;
use crate::plan::{Pace, Plan, Stop};
use crate::run::{Interval, LoadRun, Search, Try};
use crate::running::Running;
use crate::scenario::Scenario;
use crate::schedule::Schedule;

/// The rate that was found and the one that was too high lie no farther apart.
const APART_MAX: f64 = 1.05;
/// A rate that is not reached to so much of it is too high, whatever the latency of what was begun.
const REACHED_MIN: f64 = 0.98;
/// No lower rate is tried, calls a second.
const RATE_MIN: f64 = 0.5;
/// The rate that was found is driven once more, for so much longer.
const CONFIRMED_FOR: u32 = 2;

/// The highest rate that is looked for.
#[derive(Clone, Debug)]
pub struct Ceiling {
    /// What it has to keep to.
    pub conditions: Vec<Gate>,
    /// The rate that is tried first, calls a second.
    pub first: f64,
    /// How starts lie about it.
    pub spacing: Spacing,
    /// From which they are drawn.
    pub seed: u64,
}

/// What a rate that was tried has shown.
enum Shown {
    Kept(LoadRun),
    TooHigh(LoadRun),
}

/// Looks for the highest rate that keeps to conditions. Each rate is driven as `plan` says but for its pace.
///
/// From the first rate on it is doubled until it is too high, or halved until it is not; then the two are brought
/// together, to a twentieth. A rate is too high if a condition is not kept, or if the rate is not reached, twice one
/// after the other: a machine that was busy with something else once decides nothing. The rate that is found is driven
/// again for twice the time: that run is the result; if it does not keep to the conditions a lower one is looked for.
///
/// # Errors
///
/// As [`drive`].
pub async fn find_max(
    plan: &Plan,
    scenario: &Arc<Scenario>,
    ceiling: &Ceiling,
    interrupt: impl Future<Output = ()>,
    observer: &mut impl Observer,
) -> Result<LoadRun, DriveError> {
    let interrupted = Cell::new(false);
    let mut interrupt = std::pin::pin!(async {
        interrupt.await;
        interrupted.set(true);
    });
    let mut tries = Vec::new();
    let (mut low, mut high): (Option<f64>, Option<f64>) = (None, None);
    let mut rate = ceiling.first.max(RATE_MIN);
    // How often the rate that was found did not keep to the conditions for longer.
    let mut setbacks = 0;
    let (found, mut run) = loop {
        let mut attempt = Attempt { plan, scenario, ceiling, tries: &mut tries };
        let mut shown = attempt.drive(rate, 1, interrupt.as_mut(), observer).await?;
        if matches!(shown, Shown::TooHigh(_)) && !interrupted.get() {
            shown = attempt.drive(rate, 1, interrupt.as_mut(), observer).await?;
        }
        let (mut kept, mut last) = match shown {
            Shown::Kept(run) => (true, run),
            Shown::TooHigh(run) => (false, run),
        };
        if interrupted.get() {
            break (low, last);
        }
        if kept && (setbacks > 0 || high.is_some_and(|high| high / rate <= APART_MAX)) {
            // Near enough: once more, for longer.
            match attempt.drive(rate, CONFIRMED_FOR, interrupt.as_mut(), observer).await? {
                Shown::Kept(run) => break (Some(rate), run),
                Shown::TooHigh(run) => (kept, last) = (false, run),
            }
            if interrupted.get() {
                break (low, last);
            }
            (low, setbacks) = (None, setbacks + 1);
        }
        if kept {
            low = Some(rate);
        } else {
            high = Some(rate);
        }
        rate = match (low, high) {
            (Some(low), None) => low * 2.0,
            (Some(low), Some(high)) if high / low > APART_MAX => (low * high).sqrt(),
            // The lower one was found before; confirm it.
            (Some(low), Some(_)) => low,
            // Farther down each time: a machine that is never quiet ends the search all the same.
            (None, Some(high)) if setbacks > 0 => high / APART_MAX.powi(1 << setbacks.min(4)),
            (None, Some(high)) => high / 2.0,
            (None, None) => rate,
        };
        if rate < RATE_MIN {
            break (None, last);
        }
    };
    let search = Attempt { plan, scenario, ceiling, tries: &mut tries }.search();
    run.search = Some(Search { found_per_s: found, ..search });
    Ok(run)
}

/// Has the tries so far with each run that it is told of.
struct OfSearch<'o, O> {
    observer: &'o mut O,
    search: Arc<Search>,
}

impl<O: Observer> Observer for OfSearch<'_, O> {
    fn begins(&mut self, running: &Running) {
        self.observer.begins(&running.within(&self.search));
    }

    fn interval(&mut self, interval: &Interval, running: &Running) {
        self.observer.interval(interval, &running.within(&self.search));
    }
}

struct Attempt<'a> {
    plan: &'a Plan,
    scenario: &'a Arc<Scenario>,
    ceiling: &'a Ceiling,
    tries: &'a mut Vec<Try>,
}

impl Attempt<'_> {
    /// What has been tried so far, and the highest rate of it that keeps to the conditions.
    fn search(&self) -> Search {
        let kept = self.tries.iter().filter(|tried| tried.is_kept).map(|tried| tried.rate_per_s);
        Search {
            conditions: self.ceiling.conditions.iter().map(ToString::to_string).collect(),
            found_per_s: kept.reduce(f64::max),
            tries: self.tries.clone(),
        }
    }

    /// Drives this rate.
    async fn drive(
        &mut self,
        rate: f64,
        times: u32,
        interrupt: impl Future<Output = ()>,
        observer: &mut impl Observer,
    ) -> Result<Shown, DriveError> {
        let Ceiling { conditions, spacing, seed, .. } = self.ceiling;
        let stop = match self.plan.stop {
            Stop::After(window) => Stop::After(window * times),
            Stop::Calls(calls) => Stop::Calls(calls * u64::from(times)),
        };
        let pace = Pace::Open { schedule: Schedule::constant(rate), spacing: *spacing, seed: *seed };
        let plan = Plan { pace, stop, ..self.plan.clone() };
        let mut observer = OfSearch { observer, search: Arc::new(self.search()) };
        let run = drive(&plan, self.scenario, interrupt, &mut observer).await?;
        let mut is_kept = true;
        let mut figures = Vec::new();
        for condition in conditions {
            let judged = condition.judge(&run);
            is_kept &= judged.is_kept;
            figures.push(format!("{}: {}", judged.gate, judged.figure));
        }
        if let Some(note) = run.notes.iter().find(|note| note.invalidates) {
            is_kept = false;
            figures.push(note.text.clone());
        }
        let ended = run.calls() as f64 / Duration::from_nanos(run.duration_ns).as_secs_f64().max(1e-9);
        let is_reached = run.dropped == 0 || ended >= REACHED_MIN * rate;
        if !is_reached {
            is_kept = false;
            figures.push(format!("not reached: {} calls never began", run.dropped));
        }
        self.tries.push(Try { rate_per_s: rate, reached_per_s: run.rate_per_s, is_kept, figures });
        Ok(if is_kept { Shown::Kept(run) } else { Shown::TooHigh(run) })
    }
}
