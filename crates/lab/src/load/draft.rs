//! Draft windows of calls.

use std::time::Duration;

use super::window::{AaSide, Purpose, Window};
use crate::study::draft::{self, Planned, fitted};
use crate::study::rounds::Length;
use crate::study::{Plan, PlanError};

/// Time for starting the servers and writing the report, spent once per study.
const PLAN_OVERHEAD: Duration = Duration::from_secs(1);
/// Length of a window that counts system calls.
const COUNTED: Duration = Duration::from_millis(320);

/// A window of calls whose length is not yet determined.
pub(crate) type Draft = draft::Draft<Window>;

impl Draft {
    /// Returns the same window for counting system calls, with a fixed length.
    pub(crate) fn counted(mut self) -> Self {
        self.window.purpose = Purpose::SystemCalls;
        self.window.point.duration = COUNTED;
        Self { weight: 0, ..self }
    }

    /// Returns the two sides of an A/A comparison.
    pub(crate) fn sides(&self) -> [Self; 2] {
        [AaSide::A, AaSide::B].map(|label| {
            let mut side = self.clone();
            side.window.purpose = Purpose::NoiseFloor(label);
            side
        })
    }
}

impl Planned for Window {
    fn delay_rounds(&mut self, rounds: u32) {
        self.round += rounds;
    }

    fn stretch(&mut self, warmup: Duration, measured: Duration) {
        self.point.warmup += warmup;
        self.point.duration += measured;
    }
}

/// Returns the plan with the window length that the budget allows.
pub(crate) fn planned(
    drafts: Vec<Draft>,
    length: Length,
    budget: Duration,
) -> Result<Plan<Window>, PlanError> {
    fitted(drafts, length, PLAN_OVERHEAD, |_, _| budget)
}
