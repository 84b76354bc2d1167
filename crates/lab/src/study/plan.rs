//! Windows, and a plan of them.

use std::fmt;
use std::time::Duration;

/// What is measured at once. Shown, it says what.
pub trait Window: fmt::Display {
    /// How long it takes, starts and ends of processes included.
    fn total(&self) -> Duration;

    /// What the windows that take turns with it have in common.
    fn group(&self) -> String;

    /// It stands among those of a group without being one of those that are compared there.
    fn is_beside(&self) -> bool {
        false
    }
}

/// Windows to measure, in the order of measuring.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<W> {
    /// What to measure.
    pub windows: Vec<W>,
    /// What is spent once: servers start, the report is written.
    pub(crate) overhead: Duration,
}

impl<W: Window> Plan<W> {
    /// How long the whole takes, starts and ends of processes included.
    pub fn total(&self) -> Duration {
        self.overhead + self.windows.iter().map(Window::total).sum::<Duration>()
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A list that the study multiplies is empty.
    #[error("nothing to measure; give at least one value for each list")]
    NothingToMeasure,
    /// Zero in flight or zero connections.
    #[error("-c and --connections must be at least 1; for `lab sizes`, -c must be at least --connections")]
    NoLoad,
    /// More windows than the time allows.
    #[error(
        "{windows} windows take at least {least_s} s, but --budget is {budget_s} s; use a longer --budget, or fewer \
         sizes, call types, transports or stacks"
    )]
    BudgetTooSmall {
        /// How many there are.
        windows: usize,
        /// How long they may take, s.
        budget_s: u64,
        /// How long they take, s.
        least_s: u64,
    },
}
