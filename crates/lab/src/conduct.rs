//! Conducts a study: measures its points in turn and keeps what was found as it comes.

use std::time::{Duration, Instant, SystemTime};

use crate::execute::{Execute, ExecuteError};
use crate::plan::{Point, Study, Work};
use crate::results::{
    LAB_SCHEMA, LabResults, Machine, NotWritable, Outcome, PointResult, ResultsDirectory, Settings,
    StackInfo, Versions,
};
use crate::stack::{Pair, Stack};

/// Told how a study goes on.
pub trait Observe {
    /// The point is measured next; `left` is what it and those after it will take.
    fn begins(&mut self, point: &Point, left: Duration);
    /// The point is done.
    fn ended(&mut self, result: &PointResult);
}

/// What ended a study.
#[derive(Debug)]
pub struct Conducted {
    /// What was found, also when the study was cut short.
    pub results: LabResults,
    /// Why not every point was tried.
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

/// Measures every point of the study with `executor`, and saves all that was found after each.
pub fn conduct(
    study: &Study,
    settings: Settings,
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
        planned: study.points.len(),
        machine: Machine::this(),
        versions: Versions::this(),
        settings,
        stacks: vec![StackInfo {
            stack: Stack::ours(),
            version: format!("thalweg {}", env!("CARGO_PKG_VERSION")),
        }],
        left_out: Vec::new(),
        aa: Vec::new(),
        points: Vec::with_capacity(study.points.len()),
        system_calls: Vec::new(),
    };
    let cut_short = measure_all(study, executor, directory, observer, &mut results).err();
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
    for point in &study.points {
        observer.begins(point, pace.left());
        let outcome = match executor.run(point) {
            Ok(result) => Outcome::Measured(Box::new(result)),
            Err(ExecuteError::Point(reason)) => Outcome::Failed(reason),
            Err(ExecuteError::Study(reason)) => return Err(CutShort::Failed(reason)),
            Err(ExecuteError::Interrupted) => return Err(CutShort::Interrupted),
        };
        let result = PointResult { point: point.clone(), pair: pair(point), round: 0, outcome, usage: None };
        observer.ended(&result);
        results.points.push(result);
        results.ended = timestamp(SystemTime::now());
        directory.save(results)?;
        pace.done(point);
    }
    Ok(())
}

fn pair(point: &Point) -> Option<Pair> {
    matches!(point.work, Work::Call(_)).then(Pair::ours)
}

/// How long the rest takes: the plan's figure, corrected by how long the points so far really took.
struct Pace {
    started: Instant,
    planned_done: Duration,
    planned_left: Duration,
}

impl Pace {
    fn new(study: &Study) -> Self {
        let planned_left = study.points.iter().map(Point::total).sum();
        Self { started: Instant::now(), planned_done: Duration::ZERO, planned_left }
    }

    fn done(&mut self, point: &Point) {
        self.planned_done += point.total();
        self.planned_left = self.planned_left.saturating_sub(point.total());
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
