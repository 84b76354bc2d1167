//! Draft windows without a final length, and their fitting into a plan.

use std::time::Duration;

use super::plan::{Plan, PlanError, Window};
use super::rounds::{Length, interleaved};

/// A window with a fixed time and a weight for its share of the remaining time.
#[derive(Clone, Debug)]
pub(crate) struct Draft<W> {
    /// The window, with its fixed time.
    pub(crate) window: W,
    /// Weight; 0 for a window that does not stretch.
    pub(crate) weight: u32,
}

/// A window whose round and length are set by a plan.
pub(crate) trait Planned: Window + Clone {
    /// Moves the window to a later round.
    fn delay_rounds(&mut self, rounds: u32);

    /// Extends warm-up and measured time.
    fn stretch(&mut self, warmup: Duration, measured: Duration);
}

/// Returns a window of each draft per round, in alternating order.
pub(crate) fn in_rounds<W: Planned>(compared: &[Draft<W>], rounds: u32) -> Vec<Draft<W>> {
    let in_round = |(round, mut draft): (u32, Draft<W>)| {
        draft.window.delay_rounds(round);
        draft
    };
    interleaved(compared, rounds).into_iter().map(in_round).collect()
}

/// Returns the windows with the time that the budget allows. `length` is for weight 1, and `overhead` is spent once.
/// `budget` is called with the fixed time of all windows and the sum of weights.
pub(crate) fn fitted<W: Planned>(
    drafts: Vec<Draft<W>>,
    length: Length,
    overhead: Duration,
    budget: impl FnOnce(Duration, u32) -> Duration,
) -> Result<Plan<W>, PlanError> {
    if drafts.is_empty() {
        return Err(PlanError::NothingToMeasure);
    }
    let fixed = overhead + drafts.iter().map(|draft| draft.window.total()).sum::<Duration>();
    let weights = drafts.iter().map(|draft| draft.weight).sum();
    let of_one = length.fit(budget(fixed, weights), drafts.len(), fixed, weights)?;
    let stretched = |Draft { mut window, weight }: Draft<W>| {
        let whole = of_one * weight;
        if weight > 0 {
            let warmup = length.warmup_min.max(whole / length.warmup_share);
            window.stretch(warmup, whole.saturating_sub(warmup));
        }
        window
    };
    Ok(Plan { windows: drafts.into_iter().map(stretched).collect(), overhead })
}
