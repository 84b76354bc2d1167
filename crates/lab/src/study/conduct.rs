//! Conducts a study: measures its windows in turn and saves results along the way.

use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use thalweg_measure::programs::ProgramWatch;

use super::directory::{NotWritable, ResultsDirectory};
use super::plan::{Plan, Window};
use super::results::{StudyResults, StudyTables, WindowOutcome};

/// Longest time between saves while windows are short. Saving takes longer with more results and may use at most 1 ÷
/// `SAVING_PARTS` of the time.
const SAVE_EVERY: Duration = Duration::from_secs(2);
const SAVING_PARTS: u32 = 50;

/// Executor that measures windows. It prints nothing.
pub trait Execute {
    /// Window type.
    type Window;
    /// Result type.
    type Measurement;

    /// Measures one window.
    fn measure(&mut self, window: &Self::Window) -> Result<Self::Measurement, ExecuteError>;
}

impl<E: Execute + ?Sized> Execute for Box<E> {
    type Window = E::Window;
    type Measurement = E::Measurement;

    fn measure(&mut self, window: &E::Window) -> Result<E::Measurement, ExecuteError> {
        (**self).measure(window)
    }
}

/// Error that prevented a window from being measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecuteError {
    /// This window failed; others may succeed.
    #[error("{0}")]
    Window(String),
    /// No further window can be measured.
    #[error("{0}")]
    Study(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Observer of a study's progress.
pub trait Observe<W, F> {
    /// Called before a window is measured; `left` is the expected time of it and all later windows.
    fn window_started(&mut self, window: &W, left: Duration);
    /// Called after a window.
    fn window_ended(&mut self, window: &W, outcome: &WindowOutcome<F>);
}

/// Outcome of a study.
#[derive(Debug)]
pub struct Conducted<R> {
    /// Results, which are partial if the study was cut short.
    pub results: R,
    /// Reason why not every window was tried.
    pub cut_short: Option<CutShort>,
}

/// Reason for an early end of a study.
#[derive(Debug, thiserror::Error)]
pub enum CutShort {
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Nothing more can be measured.
    #[error("{0}")]
    Failed(String),
    /// The results cannot be saved.
    #[error(transparent)]
    NotWritable(#[from] NotWritable),
}

/// Measures every window of the plan with `executor`. Saves the results periodically and at the end.
pub fn conduct<S: Serialize, T: StudyTables>(
    plan: &Plan<T::Window>,
    mut results: StudyResults<S, T>,
    executor: &mut dyn Execute<Window = T::Window, Measurement = T::Measurement>,
    directory: &ResultsDirectory,
    observer: &mut dyn Observe<T::Window, T::Measurement>,
) -> Conducted<StudyResults<S, T>> {
    let others = ProgramWatch::start();
    let measured = measure_all(plan, executor, directory, observer, &mut results);
    results.others = others.busy();
    let saved = directory.save(&results);
    let cut_short = measured.and(saved.map_err(CutShort::from)).err();
    Conducted { results, cut_short }
}

fn measure_all<S: Serialize, T: StudyTables>(
    plan: &Plan<T::Window>,
    executor: &mut dyn Execute<Window = T::Window, Measurement = T::Measurement>,
    directory: &ResultsDirectory,
    observer: &mut dyn Observe<T::Window, T::Measurement>,
    results: &mut StudyResults<S, T>,
) -> Result<(), CutShort> {
    let mut estimate = Estimate::new(plan);
    let mut saving = Saving::new();
    for window in &plan.windows {
        observer.window_started(window, estimate.left());
        let outcome = match executor.measure(window) {
            Ok(found) => Ok(found),
            Err(ExecuteError::Window(reason)) => Err(reason),
            Err(ExecuteError::Study(reason)) => return Err(CutShort::Failed(reason)),
            Err(ExecuteError::Interrupted) => return Err(CutShort::Interrupted),
        };
        observer.window_ended(window, &outcome);
        results.record(window, outcome, SystemTime::now());
        saving.save_if_due(directory, results)?;
        estimate.done(window);
    }
    Ok(())
}

/// Schedule of saves.
struct Saving {
    due: Instant,
}

impl Saving {
    fn new() -> Self {
        Self { due: Instant::now() }
    }

    fn save_if_due(
        &mut self,
        directory: &ResultsDirectory,
        results: &impl Serialize,
    ) -> Result<(), NotWritable> {
        let began = Instant::now();
        if began >= self.due {
            directory.save(results)?;
            self.due = Instant::now() + SAVE_EVERY.max(began.elapsed() * SAVING_PARTS);
        }
        Ok(())
    }
}

/// Estimate of the remaining time: the planned time, plus each window's average overrun so far. The overrun comes from
/// starting and ending a window, independent of its length. A thousand windows of microseconds thus do not affect the
/// estimate for one of seconds.
struct Estimate {
    started: Instant,
    windows_done: u32,
    windows_left: u32,
    planned_done: Duration,
    planned_left: Duration,
}

impl Estimate {
    fn new<W: Window>(plan: &Plan<W>) -> Self {
        Self {
            started: Instant::now(),
            windows_done: 0,
            windows_left: u32::try_from(plan.windows.len()).unwrap_or(u32::MAX),
            planned_done: Duration::ZERO,
            planned_left: plan.windows.iter().map(Window::total).sum(),
        }
    }

    fn done(&mut self, window: &impl Window) {
        self.windows_done += 1;
        self.windows_left = self.windows_left.saturating_sub(1);
        self.planned_done += window.total();
        self.planned_left = self.planned_left.saturating_sub(window.total());
    }

    fn left(&self) -> Duration {
        self.left_after(self.started.elapsed())
    }

    fn left_after(&self, elapsed: Duration) -> Duration {
        let windows = f64::from(self.windows_done.max(1));
        let beyond_s = (elapsed.as_secs_f64() - self.planned_done.as_secs_f64()) / windows;
        let left_s = self.planned_left.as_secs_f64() + beyond_s * f64::from(self.windows_left);
        Duration::from_secs_f64(left_s.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(windows: (u32, u32), planned_s: (u64, u64), elapsed_s: u64, left_s: u64) {
        let estimate = Estimate {
            started: Instant::now(),
            windows_done: windows.0,
            windows_left: windows.1,
            planned_done: Duration::from_secs(planned_s.0),
            planned_left: Duration::from_secs(planned_s.1),
        };
        let left = estimate.left_after(Duration::from_secs(elapsed_s));
        assert_eq!(left.as_secs_f64().round() as u64, left_s, "{windows:?} {planned_s:?} {elapsed_s}");
    }

    #[test]
    fn slow_windows_increase_remaining_time() {
        check((0, 10), (0, 100), 0, 100);
        check((5, 5), (50, 50), 60, 60);
        check((5, 5), (50, 50), 40, 40);
        // A thousand very short windows, and one long one.
        check((1000, 1), (0, 600), 10, 600);
        // The remaining time is never negative.
        check((1, 9), (60, 9), 10, 0);
    }
}
