//! Windows whose length is still to be found, and the plan that they fit together.

use std::time::Duration;

use super::plan::{Plan, PlanError, Window};
use super::rounds::{Length, interleaved};

/// A window that takes its time, and so many times as long as others besides.
#[derive(Clone, Debug)]
pub(crate) struct Draft<W> {
    /// With the time that it takes in any case.
    pub(crate) window: W,
    /// 0: it does not stretch.
    pub(crate) weight: u32,
}

/// A window whose round and length a plan finds.
pub(crate) trait Planned: Window + Clone {
    /// It comes so many rounds later.
    fn later(&mut self, rounds: u32);

    /// It is driven for so long before it is measured, and measured for so long, besides what it has.
    fn stretch(&mut self, warmup: Duration, measured: Duration);
}

/// In each round a window of each, there and back.
pub(crate) fn in_rounds<W: Planned>(compared: &[Draft<W>], rounds: u32) -> Vec<Draft<W>> {
    let in_round = |(round, mut draft): (u32, Draft<W>)| {
        draft.window.later(round);
        draft
    };
    interleaved(compared, rounds).into_iter().map(in_round).collect()
}

/// The windows with the time that the budget allows. `length`: of a window of weight 1. `overhead` is spent once;
/// `budget` is told of what the windows take that does not stretch, and of the sum of weights.
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
