//! How a study's time is divided among its windows, and in which order they come.

use std::time::Duration;

use super::plan::PlanError;

/// How long a window of weight 1 may be, warm-up included.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    /// At least this much of it is warm-up.
    pub(crate) warmup_min: Duration,
    /// One part in so many of it is warm-up, if that is more.
    pub(crate) warmup_share: u32,
    /// Shorter than this it says nothing.
    pub(crate) min: Duration,
    /// Longer than this it says nothing new.
    pub(crate) max: Duration,
}

impl Length {
    /// What a window of weight 1 may take of the budget. `fixed` is what the study takes besides, overheads and
    /// whatever does not stretch; `weights` the sum of what does.
    pub(crate) fn fit(
        self,
        budget: Duration,
        windows: usize,
        fixed: Duration,
        weights: u32,
    ) -> Result<Duration, PlanError> {
        let weights = weights.max(1);
        let length = budget.saturating_sub(fixed) / weights;
        if length < self.min {
            let least = fixed + self.min * weights;
            return Err(PlanError::BudgetTooSmall {
                windows,
                budget_s: budget.as_secs(),
                least_s: least.as_secs_f64().ceil() as u64,
            });
        }
        Ok(length.min(self.max))
    }
}

/// There, back, there, back, each with the number of its round. So each is measured as early, on average, as any other,
/// and a machine that gets slower or faster meanwhile does it to all of them.
pub(crate) fn interleaved<T: Clone>(compared: &[T], rounds: u32) -> Vec<(u32, T)> {
    let mut windows = Vec::with_capacity(compared.len() * rounds as usize);
    for round in 0..rounds {
        let of_round = compared.iter().cloned().map(|window| (round, window));
        if round % 2 == 0 { windows.extend(of_round) } else { windows.extend(of_round.rev()) }
    }
    windows
}
