//! Drafts of windows of calls.

use std::time::Duration;

use super::window::{Label, Purpose, Window};
use crate::study::draft::{self, Planned, fitted};
use crate::study::rounds::Length;
use crate::study::{Plan, PlanError};

/// What is spent once: the servers start, the report is written.
const PLAN_OVERHEAD: Duration = Duration::from_secs(1);
/// How long system calls are counted.
const COUNTED: Duration = Duration::from_millis(320);

/// A window of calls whose length is still to be found.
pub(crate) type Draft = draft::Draft<Window>;

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
}

impl Planned for Window {
    fn later(&mut self, rounds: u32) {
        self.round += rounds;
    }

    fn stretch(&mut self, warmup: Duration, measured: Duration) {
        self.point.warmup += warmup;
        self.point.duration += measured;
    }
}

/// The windows with the time that the budget allows.
pub(crate) fn planned(
    drafts: Vec<Draft>,
    length: Length,
    budget: Duration,
) -> Result<Plan<Window>, PlanError> {
    fitted(drafts, length, PLAN_OVERHEAD, |_, _| budget)
}
