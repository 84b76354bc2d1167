//! Conducts a study: measures its windows in turn and keeps what was found as it comes.

use std::time::{Duration, Instant, SystemTime};

use crate::execute::{Execute, ExecuteError, Measured};
use crate::plan::{Purpose, Study, Window};
use crate::results::{
    AaResult, LAB_SCHEMA, LabResults, LeftOut, Machine, NotWritable, Outcome, PointResult, ResultsDirectory,
    Settings, StackInfo, SystemCallsOutcome, SystemCallsResult, Versions, WireOutcome, WireResult,
};

/// How long results may lie unsaved while windows are short; and saving, which takes longer the more there is, may
/// take one part in so many of the time.
const SAVE_EVERY: Duration = Duration::from_secs(2);
const SAVING_PARTS: u32 = 50;

/// Told how a study goes on.
pub trait Observe {
    /// The window is measured next; `left` is what it and those after it will take.
    fn begins(&mut self, window: &Window, left: Duration);
    /// The window is done.
    fn ended(&mut self, window: &Window, came_of_it: CameOfIt<'_>);
}

/// What came of a window.
#[derive(Clone, Copy, Debug)]
pub enum CameOfIt<'r> {
    /// Figures, or none.
    Outcome(&'r Outcome),
    /// System calls, or none.
    SystemCalls(&'r SystemCallsOutcome),
    /// What was seen on the wire, or nothing.
    Wire(&'r WireOutcome),
}

/// What stands in the results besides what is found.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How it is measured.
    pub settings: Settings,
    /// What is measured, ours first.
    pub stacks: Vec<StackInfo>,
    /// What was asked for and is not.
    pub left_out: Vec<LeftOut>,
}

/// What ended a study.
#[derive(Debug)]
pub struct Conducted {
    /// What was found, also when the study was cut short.
    pub results: LabResults,
    /// Why not every window was tried.
    pub cut_short: Option<CutShort>,
}

/// Why a study did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum CutShort {
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Nothing more can be measured.
    #[error("{0}")]
    Failed(String),
    /// What was found cannot be kept.
    #[error(transparent)]
    NotWritable(#[from] NotWritable),
}

/// Measures every window of the study with `executor`, and saves what was found now and then, and at the end.
pub fn conduct(
    study: &Study,
    setup: Setup,
    executor: &mut dyn Execute,
    directory: &ResultsDirectory,
    observer: &mut dyn Observe,
) -> Conducted {
    let began = SystemTime::now();
    let mut results = LabResults {
        schema: LAB_SCHEMA.to_owned(),
        study: study.name.to_owned(),
        started: timestamp(began),
        ended: timestamp(began),
        planned: study.figures(),
        machine: Machine::this(),
        versions: Versions::this(),
        settings: setup.settings,
        stacks: setup.stacks,
        left_out: setup.left_out,
        aa: Vec::new(),
        points: Vec::with_capacity(study.figures()),
        system_calls: Vec::new(),
        wire: Vec::new(),
    };
    let measured = measure_all(study, executor, directory, observer, &mut results);
    let saved = directory.save(&results);
    let cut_short = measured.and(saved.map_err(CutShort::from)).err();
    Conducted { results, cut_short }
}

fn measure_all(
    study: &Study,
    executor: &mut dyn Execute,
    directory: &ResultsDirectory,
    observer: &mut dyn Observe,
    results: &mut LabResults,
) -> Result<(), CutShort> {
    let mut pace = Pace::new(study);
    let mut saving = Saving::new();
    for window in &study.windows {
        observer.begins(window, pace.left());
        match window.purpose {
            Purpose::Figures => {
                let result = measure(window, executor)?;
                observer.ended(window, CameOfIt::Outcome(&result.outcome));
                results.points.push(result);
            }
            Purpose::NoiseFloor(label) => {
                let result = AaResult { label, window: measure(window, executor)? };
                observer.ended(window, CameOfIt::Outcome(&result.window.outcome));
                results.aa.push(result);
            }
            Purpose::SystemCalls => {
                let result = count_system_calls(window, executor)?;
                observer.ended(window, CameOfIt::SystemCalls(&result.outcome));
                results.system_calls.push(result);
            }
            Purpose::Wire => {
                let result = watch_wire(window, executor)?;
                observer.ended(window, CameOfIt::Wire(&result.outcome));
                results.wire.push(result);
            }
        }
        results.ended = timestamp(SystemTime::now());
        saving.save_if_due(directory, results)?;
        pace.done(window);
    }
    Ok(())
}

fn measure(window: &Window, executor: &mut dyn Execute) -> Result<PointResult, CutShort> {
    let (outcome, usage) = match went_on(executor.run(window))? {
        Ok(Measured { load, usage }) => (Outcome::Measured(Box::new(load)), usage),
        Err(reason) => (Outcome::Failed(reason), None),
    };
    let Window { point, pair, strategy, round, .. } = window.clone();
    Ok(PointResult { point, pair, strategy, round, outcome, usage })
}

fn count_system_calls(window: &Window, executor: &mut dyn Execute) -> Result<SystemCallsResult, CutShort> {
    let outcome = match went_on(executor.count_system_calls(window))? {
        Ok(counted) => SystemCallsOutcome::Counted(counted),
        Err(reason) => SystemCallsOutcome::Failed(reason),
    };
    let pair = window.pair.clone().expect("system calls are counted of pairs");
    Ok(SystemCallsResult { point: window.point.clone(), pair, strategy: window.strategy, outcome })
}

fn watch_wire(window: &Window, executor: &mut dyn Execute) -> Result<WireResult, CutShort> {
    let outcome = match went_on(executor.watch_wire(window))? {
        Ok(seen) => WireOutcome::Watched(Box::new(seen)),
        Err(reason) => WireOutcome::Failed(reason),
    };
    let pair = window.pair.clone().expect("the wire is watched of pairs");
    Ok(WireResult { point: window.point.clone(), pair, strategy: window.strategy, outcome })
}

/// What a window found or why it failed, unless it was the last one.
fn went_on<T>(executed: Result<T, ExecuteError>) -> Result<Result<T, String>, CutShort> {
    match executed {
        Ok(found) => Ok(Ok(found)),
        Err(ExecuteError::Window(reason)) => Ok(Err(reason)),
        Err(ExecuteError::Study(reason)) => Err(CutShort::Failed(reason)),
        Err(ExecuteError::Interrupted) => Err(CutShort::Interrupted),
    }
}

/// When to save.
struct Saving {
    due: Instant,
}

impl Saving {
    fn new() -> Self {
        Self { due: Instant::now() }
    }

    fn save_if_due(&mut self, directory: &ResultsDirectory, results: &LabResults) -> Result<(), NotWritable> {
        let began = Instant::now();
        if began >= self.due {
            directory.save(results)?;
            self.due = Instant::now() + SAVE_EVERY.max(began.elapsed() * SAVING_PARTS);
        }
        Ok(())
    }
}

/// How long the rest takes: the plan's figure, corrected by how long the windows so far really took.
struct Pace {
    started: Instant,
    planned_done: Duration,
    planned_left: Duration,
}

impl Pace {
    fn new(study: &Study) -> Self {
        let planned_left = study.windows.iter().map(Window::total).sum();
        Self { started: Instant::now(), planned_done: Duration::ZERO, planned_left }
    }

    fn done(&mut self, window: &Window) {
        self.planned_done += window.total();
        self.planned_left = self.planned_left.saturating_sub(window.total());
    }

    fn left(&self) -> Duration {
        if self.planned_done.is_zero() {
            return self.planned_left;
        }
        self.planned_left.mul_f64(self.started.elapsed().as_secs_f64() / self.planned_done.as_secs_f64())
    }
}

fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
