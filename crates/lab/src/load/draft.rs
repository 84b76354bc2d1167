//! Windows whose length is still to be found, and the plan that they fit together.

use std::time::Duration;

use super::point::Point;
use super::window::{Label, Purpose, Window};
use crate::study::rounds::{Length, interleaved};
use crate::study::{Plan, PlanError, Window as _};

/// What is spent once: the servers start, the report is written.
const PLAN_OVERHEAD: Duration = Duration::from_secs(1);
/// This part of a window is warm-up.
const WARMUP_SHARE: u32 = 5;
/// How long system calls are counted.
const COUNTED: Duration = Duration::from_millis(320);

/// A window that is driven as long as its point says, and so many times as long as others besides.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// With the time that it takes in any case.
    pub(crate) window: Window,
    /// 0: it does not stretch.
    pub(crate) weight: u32,
}

impl Draft {
    /// The same for its system calls, which are counted for a fixed time.
    pub(crate) fn counted(mut self) -> Self {
        self.window.purpose = Purpose::SystemCalls;
        self.window.point.duration = COUNTED;
        Self { weight: 0, ..self }
    }

    /// The two sides of an A/A comparison.
    pub(crate) fn sides(&self) -> [Self; 2] {
        [Label::A, Label::B].map(|label| {
            let mut side = self.clone();
            side.window.purpose = Purpose::NoiseFloor(label);
            side
        })
    }

    /// `length`: of a window of weight 1.
    fn stretched(self, length: Duration, warmup_min: Duration) -> Window {
        let Window { point, .. } = self.window;
        let length = length * self.weight;
        let warmup = if length.is_zero() { length } else { warmup_min.max(length / WARMUP_SHARE) };
        let duration = point.duration + length.saturating_sub(warmup);
        let point = Point { warmup: point.warmup + warmup, duration, ..point };
        Window { point, ..self.window }
    }
}

/// In each round a window of each, there and back.
pub(crate) fn in_rounds(compared: &[Draft], rounds: u32) -> Vec<Draft> {
    let in_round = |(round, draft): (u32, Draft)| Draft { window: Window { round, ..draft.window }, ..draft };
    interleaved(compared, rounds).into_iter().map(in_round).collect()
}

/// The windows with the time that the budget allows. `length`: of a window of weight 1.
pub(crate) fn fitted(
    drafts: Vec<Draft>,
    length: Length,
    budget: Duration,
) -> Result<Plan<Window>, PlanError> {
    if drafts.is_empty() {
        return Err(PlanError::NothingToMeasure);
    }
    let fixed = PLAN_OVERHEAD + drafts.iter().map(|draft| draft.window.total()).sum::<Duration>();
    let weights = drafts.iter().map(|draft| draft.weight).sum();
    let of_one = length.fit(budget, drafts.len(), fixed, weights)?;
    let windows: Vec<Window> =
        drafts.into_iter().map(|draft| draft.stretched(of_one, length.warmup_min)).collect();
    let is_compared = windows.iter().any(|window| window.purpose != Purpose::Figures);
    Ok(Plan { windows, overhead: PLAN_OVERHEAD, is_compared })
}
