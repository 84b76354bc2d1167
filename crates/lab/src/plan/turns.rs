//! How a study's time is divided among its windows, and in which order they come.

use std::time::Duration;

use super::{PlanError, STUDY_OVERHEAD};

/// How long a window of weight 1 is, warm-up included.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Shorter than this it says nothing.
    pub(super) min: Duration,
    /// Longer than this it says nothing new.
    pub(super) max: Duration,
}

impl Slot {
    /// What a window of weight 1 may take of the budget. `fixed` is what the `windows` take besides, their overheads and
    /// whatever does not stretch; `weights` the sum of what does.
    pub(super) fn fit(
        self,
        budget: Duration,
        windows: usize,
        fixed: Duration,
        weights: u32,
    ) -> Result<Duration, PlanError> {
        let (fixed, weights) = (STUDY_OVERHEAD + fixed, weights.max(1));
        let slot = budget.saturating_sub(fixed) / weights;
        if slot < self.min {
            let least = fixed + self.min * weights;
            return Err(PlanError::BudgetTooSmall {
                windows,
                budget_s: budget.as_secs(),
                least_s: least.as_secs_f64().ceil() as u64,
            });
        }
        Ok(slot.min(self.max))
    }
}

/// There, back, there, back, each with the number of its round. So each is measured as early, on average, as any other,
/// and a machine that gets slower or faster meanwhile does it to all of them.
pub(super) fn there_and_back<T: Clone>(turn: &[T], rounds: u32) -> Vec<(u32, T)> {
    let mut windows = Vec::with_capacity(turn.len() * rounds as usize);
    for round in 0..rounds {
        let turn = turn.iter().cloned().map(|window| (round, window));
        if round % 2 == 0 { windows.extend(turn) } else { windows.extend(turn.rev()) }
    }
    windows
}
