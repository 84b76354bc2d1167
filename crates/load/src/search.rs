//! Search for the highest rate that meets conditions.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use thalweg_measure::wording::counted;
use tokio::task::JoinHandle;

use crate::arrivals::Spacing;
use crate::conditions::Condition;
use crate::drive::{DriveError, drive};
use crate::observer::Observer;
use crate::plan::{Pace, Plan, Stop};
use crate::run::{Flows, Interval, LoadRun, Search, Try};
use crate::running::Running;
use crate::scenario::Scenario;
use crate::schedule::Schedule;

/// Maximum ratio between the lowest rate that was too high and the result.
const BOUNDS_RATIO_MAX: f64 = 1.05;
/// Minimum share of the rate that must be reached. Below it the rate is too high, whatever the latency.
const REACHED_MIN: f64 = 0.98;
/// Standard deviations by which the backlog must grow from half the time to the end. A count of n has √n.
const DEVIATIONS: f64 = 2.0;
/// Lowest tried rate, in calls or flows per second.
const RATE_MIN: f64 = 0.5;
/// The rate that was found is driven once more, for this many times the duration.
const CONFIRMED_FOR: u32 = 2;

/// Search settings.
#[derive(Clone, Debug)]
pub struct SearchOptions {
    /// Conditions to meet.
    pub conditions: Vec<Condition>,
    /// First tried rate in calls per second; flows in a scenario.
    pub first: f64,
    /// Arrival process.
    pub spacing: Spacing,
    /// Seed of random arrivals.
    pub seed: u64,
}

/// Outcome of a tried rate.
enum TryOutcome {
    Passed(LoadRun),
    TooHigh(LoadRun),
    /// Interrupted, so it shows nothing.
    Interrupted(LoadRun),
}

/// Searches for the highest rate that meets the conditions. Each rate is driven by `plan`, except for its pace.
///
/// The first rate is doubled until it is too high, or halved until it is not. Then the bounds are narrowed to within
/// 5 %. A rate is too high if it is not reached or a condition is not met, twice in a row; one disturbed try is
/// ignored. The found rate is driven again for twice the time, and that run is the result. If it does not meet the
/// conditions, the search goes on below it.
///
/// A rate is not reached if more than 2 % of the starts never happened. It is not reached either if more calls are in
/// flight or waiting at the end than at half the time. Then a queue grows, even if all its calls finish in the end.
/// Calls that take longer than half the time look the same.
///
/// A rate that was interrupted is not part of the tries.
///
/// # Errors
///
/// The errors of [`drive`].
pub async fn find_max(
    plan: &Plan,
    scenario: &Arc<Scenario>,
    options: &SearchOptions,
    interrupt: impl Future<Output = ()>,
    observer: &mut impl Observer,
) -> Result<LoadRun, DriveError> {
    let interrupted = Cell::new(false);
    let mut interrupt = std::pin::pin!(async {
        interrupt.await;
        interrupted.set(true);
    });
    let (interrupted, bounds) = (&interrupted, RateBounds::default());
    let mut search = RateSearch { plan, scenario, options, interrupted, bounds, tries: Vec::new() };
    let mut rate = options.first.max(RATE_MIN);
    let mut run = loop {
        let mut outcome = search.drive(rate, 1, interrupt.as_mut(), observer).await?;
        if matches!(outcome, TryOutcome::TooHigh(_)) {
            outcome = search.drive(rate, 1, interrupt.as_mut(), observer).await?;
        }
        if let TryOutcome::Passed(_) = &outcome {
            search.bounds.passed(rate);
            if search.bounds.is_narrow_enough(rate) {
                outcome = search.drive(rate, CONFIRMED_FOR, interrupt.as_mut(), observer).await?;
                if let TryOutcome::Passed(run) = outcome {
                    break run;
                }
            }
        }
        let last = match outcome {
            TryOutcome::Interrupted(run) => break run,
            TryOutcome::Passed(run) => run,
            TryOutcome::TooHigh(run) => {
                search.bounds.too_high(rate);
                run
            }
        };
        match search.bounds.next() {
            Some(next) => rate = next,
            None => break last,
        }
    };
    run.search = Some(search.summary());
    Ok(run)
}

/// Known bounds of the highest rate.
#[derive(Debug, Default)]
struct RateBounds {
    /// Highest rate that was kept, and not too high since.
    low: Option<f64>,
    /// Lowest rate that was too high.
    high: Option<f64>,
    /// Number of times a kept rate was too high later.
    setbacks: u32,
}

impl RateBounds {
    fn passed(&mut self, rate: f64) {
        self.low = Some(rate);
    }

    fn too_high(&mut self, rate: f64) {
        self.high = Some(rate);
        if self.low.is_some_and(|low| low >= rate) {
            (self.low, self.setbacks) = (None, self.setbacks + 1);
        }
    }

    /// Returns whether this kept rate is the result, if it is kept for longer too.
    fn is_narrow_enough(&self, rate: f64) -> bool {
        self.setbacks > 0 || self.high.is_some_and(|high| high / rate <= BOUNDS_RATIO_MAX)
    }

    /// Returns the rate to try next, or `None` if not even the lowest was kept.
    fn next(&self) -> Option<f64> {
        let rate = match (self.low, self.high) {
            (Some(low), None) => low * 2.0,
            (Some(low), Some(high)) if high / low > BOUNDS_RATIO_MAX => (low * high).sqrt(),
            // The lower one was kept before; confirm it.
            (Some(low), Some(_)) => low,
            // Larger steps each time, so that the search ends even on a machine that is never idle.
            (None, Some(high)) if self.setbacks > 0 => {
                high / BOUNDS_RATIO_MAX.powi(1 << self.setbacks.min(4))
            }
            (None, Some(high)) => high / 2.0,
            (None, None) => return None,
        };
        (rate >= RATE_MIN).then_some(rate)
    }
}

/// Adds the tries so far to each run passed to the observer.
struct SearchObserver<'o, O> {
    observer: &'o mut O,
    search: Arc<Search>,
    backlogs: Option<JoinHandle<[u64; 2]>>,
}

impl<O: Observer> Observer for SearchObserver<'_, O> {
    fn begins(&mut self, running: &Running) {
        self.backlogs = Some(tokio::spawn(running.clone().backlogs()));
        self.observer.begins(&running.within(&self.search));
    }

    fn interval(&mut self, interval: &Interval, running: &Running) {
        self.observer.interval(interval, &running.within(&self.search));
    }
}

/// An ongoing search.
struct RateSearch<'a> {
    plan: &'a Plan,
    scenario: &'a Arc<Scenario>,
    options: &'a SearchOptions,
    interrupted: &'a Cell<bool>,
    bounds: RateBounds,
    tries: Vec<Try>,
}

impl RateSearch<'_> {
    /// Returns the tries so far and the found rate.
    fn summary(&self) -> Search {
        Search {
            conditions: self.options.conditions.iter().map(ToString::to_string).collect(),
            found_per_s: self.bounds.low,
            tries: self.tries.clone(),
        }
    }

    async fn drive(
        &mut self,
        rate: f64,
        times: u32,
        interrupt: impl Future<Output = ()>,
        observer: &mut impl Observer,
    ) -> Result<TryOutcome, DriveError> {
        let SearchOptions { conditions, spacing, seed, .. } = self.options;
        let stop = match self.plan.stop {
            Stop::After(window) => Stop::After(window * times),
            Stop::Calls(calls) => Stop::Calls(calls * u64::from(times)),
            Stop::Messages(messages) => Stop::Messages(messages * u64::from(times)),
        };
        let pace = Pace::Open { schedule: Schedule::constant(rate), spacing: *spacing, seed: *seed };
        let plan = Plan { pace, stop, ..self.plan.clone() };
        let mut observer = SearchObserver { observer, search: Arc::new(self.summary()), backlogs: None };
        let run = drive(&plan, self.scenario, interrupt, &mut observer).await?;
        if self.interrupted.get() {
            observer.backlogs.inspect(JoinHandle::abort);
            return Ok(TryOutcome::Interrupted(run));
        }
        let backlogs = match observer.backlogs {
            Some(backlogs) => backlogs.await.ok(),
            None => None,
        };
        let mut is_met = true;
        let mut figures = Vec::new();
        for condition in conditions {
            let result = condition.check(&run);
            is_met &= result.is_met;
            figures.push(format!("{}: {}", result.condition, result.figure));
        }
        if let Some(reason) = run.not_valid.reasons.first() {
            is_met = false;
            figures.push(reason.text.clone());
        }
        if let Some(why) = not_reached(&run, rate, backlogs.unwrap_or_default()) {
            is_met = false;
            figures.push(format!("not reached: {why}"));
        }
        self.tries.push(Try { rate_per_s: rate, reached_per_s: run.starts_per_s(), is_met, figures });
        Ok(if is_met { TryOutcome::Passed(run) } else { TryOutcome::TooHigh(run) })
    }
}

/// Returns why the rate was not reached, if so.
fn not_reached(run: &LoadRun, rate: f64, backlogs: [u64; 2]) -> Option<String> {
    let seconds = Duration::from_nanos(run.duration_ns).as_secs_f64();
    let Flows { ok, failed, .. } = run.starts();
    if run.dropped > 0 && ((ok + failed) as f64) < REACHED_MIN * rate * seconds {
        return Some(format!("{} did not start", counted(run.dropped, run.unit())));
    }
    let [half, end] = backlogs;
    grows(rate * seconds / 2.0, backlogs)
        .then(|| format!("{half} calls waited or were in flight at half the time, and {end} at the end"))
}

/// Returns whether the backlog grows significantly from half the time to the end: by a share of the starts in between,
/// plus random variation.
fn grows(starts: f64, [half, end]: [u64; 2]) -> bool {
    let (half, end) = (half as f64, end as f64);
    end - half > (1.0 - REACHED_MIN) * starts + DEVIATIONS * (half + end).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the found rate if each is kept up to `capacity` per second, but for longer only up to `lasting`.
    fn found(first: f64, capacity: f64, lasting: f64) -> Option<f64> {
        let (mut bounds, mut rate) = (RateBounds::default(), first);
        for _ in 0..100 {
            if rate > capacity {
                bounds.too_high(rate);
            } else {
                bounds.passed(rate);
                if bounds.is_narrow_enough(rate) {
                    if rate <= lasting {
                        return bounds.low;
                    }
                    bounds.too_high(rate);
                }
            }
            match bounds.next() {
                Some(next) => rate = next,
                None => return bounds.low,
            }
        }
        panic!("a search of {capacity} from {first} on does not end");
    }

    #[test]
    fn search_finds_highest_sustained_rate() {
        for first in [0.5, 10.0, 100.0, 5000.0] {
            for capacity in [1.0, 70.0, 100.0, 777.0] {
                let found_all = found(first, capacity, capacity).unwrap();
                assert!(
                    (capacity / BOUNDS_RATIO_MAX..=capacity).contains(&found_all),
                    "{found_all} of {capacity}"
                );
            }
            let lasting = found(first, 777.0, 600.0).unwrap();
            assert!((300.0..=600.0).contains(&lasting), "{lasting}");
            assert_eq!(found(first, 0.1, 0.1), None);
        }
    }

    #[test]
    fn unsustained_rate_is_not_result_of_search() {
        let mut bounds = RateBounds::default();
        bounds.passed(100.0);
        bounds.too_high(104.0);
        assert_eq!(bounds.low, Some(100.0));
        // The confirmation for a longer time fails.
        bounds.too_high(100.0);
        assert_eq!((bounds.low, bounds.high), (None, Some(100.0)));
        assert!(bounds.next().unwrap() < 100.0);
    }

    #[test]
    fn growing_queue_is_distinguished_from_fluctuation() {
        for (starts, half, end, expected) in [
            // 1,100 calls/s on a server that completes 1,000, for 5 s: the backlog grows by 100 each second.
            (2750.0, 250, 500, true),
            (2525.0, 62, 125, false),
            // 1,000 calls/s of 1 s each: the number in flight is constant.
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
