//! Division of a study's time among its windows, and their order.

use std::time::Duration;

use super::plan::PlanError;

/// Bounds for a window of weight 1, warm-up included.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    /// Least warm-up.
    pub(crate) warmup_min: Duration,
    /// Warm-up is at least 1 ÷ this of the window.
    pub(crate) warmup_share: u32,
    /// Least useful length.
    pub(crate) min: Duration,
    /// Length above which nothing is gained.
    pub(crate) max: Duration,
}

impl Length {
    /// Returns the time of a window of weight 1 within the budget. `fixed` is the study's time that does not stretch,
    /// with overheads. `weights` is the sum of weights.
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

/// Returns windows in alternating order, each with its round. Every window is equally early on average, so a machine
/// that changes speed affects all alike.
pub(crate) fn interleaved<T: Clone>(compared: &[T], rounds: u32) -> Vec<(u32, T)> {
    let mut windows = Vec::with_capacity(compared.len() * rounds as usize);
    for round in 0..rounds {
        let of_round = compared.iter().cloned().map(|window| (round, window));
        if round % 2 == 0 { windows.extend(of_round) } else { windows.extend(of_round.rev()) }
    }
    windows
}
