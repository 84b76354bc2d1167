//! Windows and plans.

use std::fmt;
use std::time::Duration;

/// One measurement. `Display` describes it.
pub trait Window: fmt::Display {
    /// Returns the total time, including starting and stopping processes.
    fn total(&self) -> Duration;

    /// Returns the name of the group of windows that take turns with it.
    fn group(&self) -> String;

    /// Returns whether the window runs within its group without being compared there.
    fn is_reference(&self) -> bool {
        false
    }
}

/// Windows in the order of measuring.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<W> {
    /// The windows.
    pub windows: Vec<W>,
    /// Time spent once, for starting servers and writing the report.
    pub(crate) overhead: Duration,
}

impl<W: Window> Plan<W> {
    /// Returns the total time, including starting and stopping processes.
    pub fn total(&self) -> Duration {
        self.overhead + self.windows.iter().map(Window::total).sum::<Duration>()
    }
}

/// Error that prevents a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// One of the lists of values is empty.
    #[error("nothing to measure; use at least one value for each list")]
    NothingToMeasure,
    /// Zero calls in flight or zero connections.
    #[error("-c and --connections must be at least 1; for `lab sizes`, -c must be at least --connections")]
    NoLoad,
    /// The windows do not fit the budget.
    #[error(
        "{windows} windows take at least {least_s} s, but --budget is {budget_s} s; use a longer --budget, or fewer \
         sizes, call types, transports or stacks"
    )]
    BudgetTooSmall {
        /// Number of windows.
        windows: usize,
        /// Budget, s.
        budget_s: u64,
        /// Least time they need, s.
        least_s: u64,
    },
}
