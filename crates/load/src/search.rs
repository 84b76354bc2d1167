//! Looks for the highest rate that keeps to conditions.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use thalweg_measure::wording::counted;
use tokio::task::JoinHandle;

use crate::arrivals::Spacing;
use crate::drive::{DriveError, drive};
use crate::gates::Gate;
use crate::observer::Observer;
use crate::plan::{Pace, Plan, Stop};
use crate::run::{Flows, Interval, LoadRun, Search, Try};
use crate::running::Running;
use crate::scenario::Scenario;
use crate::schedule::Schedule;

/// The rate that was found and the one that was too high lie no farther apart.
const APART_MAX: f64 = 1.05;
/// A rate that is not reached to so much of it is too high, whatever the latency of what was begun.
const REACHED_MIN: f64 = 0.98;
/// What waits is more at the end than at half the time if it is so many standard deviations more: a count of n has √n.
const DEVIATIONS: f64 = 2.0;
/// No lower rate is tried, calls or flows a second.
const RATE_MIN: f64 = 0.5;
/// The rate that was found is driven once more, for so much longer.
const CONFIRMED_FOR: u32 = 2;

/// The highest rate that is looked for.
#[derive(Clone, Debug)]
pub struct Ceiling {
    /// What it has to keep to.
    pub conditions: Vec<Gate>,
    /// The rate that is tried first, calls a second; of a scenario flows.
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
    /// Nothing: it did not come to its end.
    Interrupted(LoadRun),
}

/// Looks for the highest rate that keeps to conditions. Each rate is driven as `plan` says but for its pace.
///
/// From the first rate on it is doubled until it is too high, or halved until it is not; then the two are brought
/// together, to a twentieth. A rate is too high if a condition is not kept, or if the rate is not reached, twice one
/// after the other: a machine that was busy with something else once decides nothing. The rate that is found is driven
/// again for twice the time: that run is the result; if it does not keep to the conditions a lower one is looked for.
///
/// A rate is not reached if starts never began, more than a fiftieth of them, or if more calls are under way, or wait
/// to begin, at the end of its time than at half of it: what comes faster than it goes is a queue that grows, for all
/// that the calls in it end in the end. Calls that take longer than half the time look the same.
///
/// A rate that an interrupt has ended has shown nothing, and is not among those that were tried.
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
    let (interrupted, known) = (&interrupted, Known::default());
    let mut looking = Looking { plan, scenario, ceiling, interrupted, known, tries: Vec::new() };
    let mut rate = ceiling.first.max(RATE_MIN);
    let mut run = loop {
        let mut shown = looking.drive(rate, 1, interrupt.as_mut(), observer).await?;
        if matches!(shown, Shown::TooHigh(_)) {
            shown = looking.drive(rate, 1, interrupt.as_mut(), observer).await?;
        }
        if let Shown::Kept(_) = &shown {
            looking.known.kept(rate);
            if looking.known.is_near_enough(rate) {
                shown = looking.drive(rate, CONFIRMED_FOR, interrupt.as_mut(), observer).await?;
                if let Shown::Kept(run) = shown {
                    break run;
                }
            }
        }
        let last = match shown {
            Shown::Interrupted(run) => break run,
            Shown::Kept(run) => run,
            Shown::TooHigh(run) => {
                looking.known.too_high(rate);
                run
            }
        };
        match looking.known.next() {
            Some(next) => rate = next,
            None => break last,
        }
    };
    run.search = Some(looking.search());
    Ok(run)
}

/// What is known of the highest rate.
#[derive(Debug, Default)]
struct Known {
    /// The highest one that was kept, and not too high since.
    low: Option<f64>,
    /// The lowest one that was too high.
    high: Option<f64>,
    /// How often a rate was too high that had been kept before.
    setbacks: u32,
}

impl Known {
    fn kept(&mut self, rate: f64) {
        self.low = Some(rate);
    }

    fn too_high(&mut self, rate: f64) {
        self.high = Some(rate);
        if self.low.is_some_and(|low| low >= rate) {
            (self.low, self.setbacks) = (None, self.setbacks + 1);
        }
    }

    /// Whether this rate, which was kept, is the one that is looked for if it is kept for longer.
    fn is_near_enough(&self, rate: f64) -> bool {
        self.setbacks > 0 || self.high.is_some_and(|high| high / rate <= APART_MAX)
    }

    /// The one that is tried next; none if not even the lowest was kept.
    fn next(&self) -> Option<f64> {
        let rate = match (self.low, self.high) {
            (Some(low), None) => low * 2.0,
            (Some(low), Some(high)) if high / low > APART_MAX => (low * high).sqrt(),
            // The lower one was found before; confirm it.
            (Some(low), Some(_)) => low,
            // Farther down each time: a machine that is never quiet ends the search all the same.
            (None, Some(high)) if self.setbacks > 0 => high / APART_MAX.powi(1 << self.setbacks.min(4)),
            (None, Some(high)) => high / 2.0,
            (None, None) => return None,
        };
        (rate >= RATE_MIN).then_some(rate)
    }
}

/// Has the tries so far with each run that it is told of.
struct OfSearch<'o, O> {
    observer: &'o mut O,
    search: Arc<Search>,
    backlogs: Option<JoinHandle<[u64; 2]>>,
}

impl<O: Observer> Observer for OfSearch<'_, O> {
    fn begins(&mut self, running: &Running) {
        self.backlogs = Some(tokio::spawn(running.clone().backlogs()));
        self.observer.begins(&running.within(&self.search));
    }

    fn interval(&mut self, interval: &Interval, running: &Running) {
        self.observer.interval(interval, &running.within(&self.search));
    }
}

/// A search that goes on.
struct Looking<'a> {
    plan: &'a Plan,
    scenario: &'a Arc<Scenario>,
    ceiling: &'a Ceiling,
    interrupted: &'a Cell<bool>,
    known: Known,
    tries: Vec<Try>,
}

impl Looking<'_> {
    /// What has been tried so far, and what is known by it.
    fn search(&self) -> Search {
        Search {
            conditions: self.ceiling.conditions.iter().map(ToString::to_string).collect(),
            found_per_s: self.known.low,
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
            Stop::Messages(messages) => Stop::Messages(messages * u64::from(times)),
        };
        let pace = Pace::Open { schedule: Schedule::constant(rate), spacing: *spacing, seed: *seed };
        let plan = Plan { pace, stop, ..self.plan.clone() };
        let mut observer = OfSearch { observer, search: Arc::new(self.search()), backlogs: None };
        let run = drive(&plan, self.scenario, interrupt, &mut observer).await?;
        if self.interrupted.get() {
            observer.backlogs.inspect(JoinHandle::abort);
            return Ok(Shown::Interrupted(run));
        }
        let backlogs = match observer.backlogs {
            Some(backlogs) => backlogs.await.ok(),
            None => None,
        };
        let mut is_kept = true;
        let mut figures = Vec::new();
        for condition in conditions {
            let judged = condition.judge(&run);
            is_kept &= judged.is_kept;
            figures.push(format!("{}: {}", judged.gate, judged.figure));
        }
        if let Some(reason) = run.not_valid.reasons.first() {
            is_kept = false;
            figures.push(reason.text.clone());
        }
        if let Some(why) = not_reached(&run, rate, backlogs.unwrap_or_default()) {
            is_kept = false;
            figures.push(format!("not reached: {why}"));
        }
        self.tries.push(Try { rate_per_s: rate, reached_per_s: run.starts_per_s(), is_kept, figures });
        Ok(if is_kept { Shown::Kept(run) } else { Shown::TooHigh(run) })
    }
}

/// Why the rate is too high, whatever the latency of what was begun.
fn not_reached(run: &LoadRun, rate: f64, backlogs: [u64; 2]) -> Option<String> {
    let seconds = Duration::from_nanos(run.duration_ns).as_secs_f64();
    let Flows { ok, failed, .. } = run.starts();
    if run.dropped > 0 && ((ok + failed) as f64) < REACHED_MIN * rate * seconds {
        return Some(format!("{} did not start", counted(run.dropped, run.unit())));
    }
    let [half, end] = backlogs;
    grows(rate * seconds / 2.0, backlogs)
        .then(|| format!("{half} calls waited or were under way at half the time, and {end} at its end"))
}

/// Whether more wait at the end than at half the time, by a share of the starts in between that is not to be missed and
/// by more than chance: those who come and go at the same rate are not always as many.
fn grows(starts: f64, [half, end]: [u64; 2]) -> bool {
    let (half, end) = (half as f64, end as f64);
    end - half > (1.0 - REACHED_MIN) * starts + DEVIATIONS * (half + end).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate that is found where each is kept up to `capacity` a second, but for longer only up to `lasting`.
    fn found(first: f64, capacity: f64, lasting: f64) -> Option<f64> {
        let (mut known, mut rate) = (Known::default(), first);
        for _ in 0..100 {
            if rate > capacity {
                known.too_high(rate);
            } else {
                known.kept(rate);
                if known.is_near_enough(rate) {
                    if rate <= lasting {
                        return known.low;
                    }
                    known.too_high(rate);
                }
            }
            match known.next() {
                Some(next) => rate = next,
                None => return known.low,
            }
        }
        panic!("a search of {capacity} from {first} on does not end");
    }

    #[test]
    fn a_search_ends_with_a_rate_that_lasts() {
        for first in [0.5, 10.0, 100.0, 5000.0] {
            for capacity in [1.0, 70.0, 100.0, 777.0] {
                let found_all = found(first, capacity, capacity).unwrap();
                assert!((capacity / APART_MAX..=capacity).contains(&found_all), "{found_all} of {capacity}");
            }
            let lasting = found(first, 777.0, 600.0).unwrap();
            assert!((300.0..=600.0).contains(&lasting), "{lasting}");
            assert_eq!(found(first, 0.1, 0.1), None);
        }
    }

    #[test]
    fn a_rate_that_did_not_last_is_not_the_highest_that_was_found() {
        let mut known = Known::default();
        known.kept(100.0);
        known.too_high(104.0);
        assert_eq!(known.low, Some(100.0));
        // Once more, for longer.
        known.too_high(100.0);
        assert_eq!((known.low, known.high), (None, Some(100.0)));
        assert!(known.next().unwrap() < 100.0);
    }

    #[test]
    fn a_queue_that_grows_is_told_from_one_that_goes_up_and_down() {
        for (starts, half, end, expected) in [
            // 1,100 a second of a server that does 1,000, for 5 s: 100 more each second.
            (2750.0, 250, 500, true),
            (2525.0, 62, 125, false),
            // Calls of a second, 1,000 of them a second: as many are under way all the time.
            (2500.0, 1000, 1000, false),
            (2500.0, 1000, 1070, false),
            (2500.0, 1000, 1200, true),
            (250.0, 0, 3, false),
            (250.0, 0, 60, true),
            (250.0, 60, 0, false),
        ] {
            assert_eq!(grows(starts, [half, end]), expected, "{half} and {end} of {starts}");
        }
    }
}
