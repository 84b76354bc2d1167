//! Selects the next number of lanes to try.

use super::measure::Measured;

/// Measurements of a load with each number of lanes tried.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// Sorted by number of lanes.
    known: Vec<Known>,
    best: Known,
    pub(super) goal: Goal,
    /// Whether a number between the best and the next higher one was tried.
    is_refined: bool,
    /// The initial number, unless it was tried again.
    start: Option<usize>,
}

/// Maximum gain, as a logarithm, that must be confirmed by trying the initial number again, as its first measurement
/// may have been unlucky.
const SURE_GAIN: f64 = 0.4;

/// Minimum loss, as a logarithm, of the first lanes above the best for a dip, beyond which there may be better numbers.
const DIP_LOSS_MIN: f64 = 0.1;

/// Goal of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A new or increased load.
    More,
    /// A decreased or different load.
    Less,
    /// A steady load: only neighbouring numbers are tried.
    RetryMore,
    RetryLess,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    lanes: usize,
    measured: Measured,
    /// Whether its trial ended undecided: it may be better than the best.
    is_doubtful: bool,
}

/// Outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Significantly better than the previous best.
    Better,
    NotBetter,
    /// Perhaps better.
    InDoubt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Try(usize),
    Done(usize),
}

/// Bounds of the next step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least: usize,
    pub(super) most: usize,
    /// Whether a signal says that more lanes than tried might help.
    pub(super) more_may_help: bool,
    /// Whether so much of a call's time is outside the network that a failed trial proves nothing.
    pub(super) far_more_may_help: bool,
    pub(super) loss_max: f64,
    pub(super) latency_weight: f64,
}

impl Search {
    pub(super) fn new(goal: Goal, lanes: usize, measured: Measured) -> Self {
        let best = Known { lanes, measured, is_doubtful: false };
        Self { known: vec![best], best, goal, is_refined: false, start: Some(lanes) }
    }

    /// Records a trial.
    pub(super) fn learn(&mut self, lanes: usize, measured: Measured, outcome: Outcome) {
        let known = Known { lanes, measured, is_doubtful: outcome == Outcome::InDoubt };
        self.start = self.start.filter(|start| *start != lanes);
        let index = self.known.partition_point(|known| known.lanes < lanes);
        self.is_refined |= lanes > self.best.lanes && index < self.known.len();
        self.known.retain(|known| known.lanes != lanes);
        self.known.insert(index, known);
        if outcome == Outcome::Better {
            self.best = known;
        }
    }

    /// Replaces a trial's measurement by a longer one. Returns whether another number is significantly better; the best
    /// such number becomes the best.
    pub(super) fn revise(
        &mut self,
        lanes: usize,
        measured: Measured,
        is_better: impl Fn(&Measured, &Measured) -> bool,
        bounds: &Bounds,
    ) -> bool {
        if let Some(known) = self.known.iter_mut().find(|known| known.lanes == lanes) {
            known.measured = measured;
        }
        let gain = |known: &Known| known.measured.gain_over(&measured, bounds.latency_weight).0;
        let better = self.known.iter().filter(|known| is_better(&known.measured, &measured));
        let Some(best) = better.max_by(|a, b| gain(a).total_cmp(&gain(b))) else { return false };
        self.best = *best;
        true
    }

    /// Returns the fewest tried lanes that do as well as the best.
    fn enough(&self, bounds: &Bounds) -> usize {
        // Includes uncertain rates, so that the result is not smaller than the best by chance alone.
        let is_enough =
            |known: &&Known| known.lanes == self.best.lanes || self.loss(known, bounds) <= bounds.loss_max;
        self.known.iter().find(is_enough).unwrap_or(&self.best).lanes
    }

    /// Returns the loss relative to the best.
    fn loss(&self, known: &Known, bounds: &Bounds) -> f64 {
        -known.measured.gain_over(&self.best.measured, bounds.latency_weight).0
    }

    /// Returns the best number of lanes, with which trials are compared.
    pub(super) fn best(&self) -> (usize, Measured) {
        (self.best.lanes, self.best.measured)
    }

    pub(super) fn known(&self, lanes: usize) -> Option<Measured> {
        self.known.iter().find(|known| known.lanes == lanes).map(|known| known.measured)
    }

    /// Returns the highest number tried.
    pub(super) fn top(&self) -> (usize, Measured) {
        let top = self.known.last().expect("there is always the first");
        (top.lanes, top.measured)
    }

    pub(super) fn next(&self, bounds: &Bounds) -> Step {
        let more = self.more(bounds);
        if more > self.top().0 {
            return Step::Try(more);
        }
        if let Some(between) = self.between_best_and_next(bounds) {
            return Step::Try(between);
        }
        let good = if self.goal == Goal::RetryMore { self.best.lanes } else { self.enough(bounds) };
        let too_few = self.known.iter().rev().find(|known| known.lanes < good);
        let fewest = match (too_few, self.goal) {
            // The lanes of a steady load should not fluctuate: one trial.
            (_, Goal::RetryMore | Goal::RetryLess) if self.known.len() > 1 => good,
            (Some(few), _) => {
                // More lanes do not make a lane faster, so they must make up for what the fewer ones lack.
                let lacking = few.lanes as f64 * (self.loss(few, bounds) - bounds.loss_max).exp();
                (lacking.ceil() as usize).clamp(few.lanes + 1, good)
            }
            (None, Goal::Less | Goal::RetryLess) => bounds.least,
            (None, Goal::More | Goal::RetryMore) => good,
        };
        let fewest = fewest.max(bounds.least);
        if fewest >= good {
            return self.doubted_start(good, bounds).map_or(Step::Done(good.max(bounds.least)), Step::Try);
        }
        let fewer = match self.goal {
            Goal::RetryLess => good - (good / 4).max(1),
            // They lack almost nothing.
            _ if too_few.is_some_and(|few| self.loss(few, bounds) < 2.0 * bounds.loss_max) => fewest,
            _ => usize::midpoint(fewest, good - 1),
        };
        Step::Try(fewer.max(fewest))
    }

    /// Returns the initial number, if a slightly better result has not been compared with it again.
    fn doubted_start(&self, good: usize, bounds: &Bounds) -> Option<usize> {
        let start = self.start.filter(|start| *start < good && *start >= bounds.least)?;
        let known = self.known.iter().find(|known| known.lanes == start)?;
        (self.goal == Goal::More && self.loss(known, bounds) < SURE_GAIN).then_some(start)
    }

    /// Returns a higher number than tried so far, or 0 if that is not worth a trial.
    fn more(&self, bounds: &Bounds) -> usize {
        let top = self.top().0;
        let more = match self.goal {
            Goal::More => top * 2,
            Goal::RetryMore if self.known.len() == 1 => top + (top / 2).max(1),
            Goal::RetryMore | Goal::Less | Goal::RetryLess => 0,
        };
        // Two lanes may interfere with each other when three do not, so one failure is tolerated, as is one undecided
        // trial.
        let mut failures = self.known.iter().filter(|known| known.lanes > self.best.lanes);
        let is_worth_it = match (failures.next(), failures.next()) {
            (None, _) => bounds.more_may_help,
            (Some(failure), None) => {
                let may_help = bounds.far_more_may_help || (failure.is_doubtful && bounds.more_may_help);
                may_help && self.goal == Goal::More && !self.is_refined
            }
            _ => {
                bounds.far_more_may_help && self.goal == Goal::More && !self.is_refined && self.is_dip(bounds)
            }
        };
        if is_worth_it { more.min(bounds.most) } else { 0 }
    }

    /// Returns whether slightly more lanes than the best do worse, but twice as many do no worse than these.
    fn is_dip(&self, bounds: &Bounds) -> bool {
        let above = self.known.iter().rev().take_while(|known| known.lanes > self.best.lanes);
        let (Some(top), Some(below)) = (above.clone().next(), above.clone().nth(1)) else { return false };
        let (gain, error) = top.measured.gain_over(&below.measured, bounds.latency_weight);
        gain + error > -bounds.loss_max
            && above.last().is_some_and(|first| self.loss(first, bounds) > DIP_LOSS_MIN)
    }

    /// Returns, once, a number in the gap above the best, which may contain the peak. If there is no gap, but a dip
    /// follows, returns one in the next gap.
    fn between_best_and_next(&self, bounds: &Bounds) -> Option<usize> {
        if self.goal != Goal::More || self.is_refined {
            return None;
        }
        let best = self.best.lanes;
        let mut above = self.known.iter().map(|known| known.lanes).filter(|lanes| *lanes > best);
        let (next, after) = (above.next()?, above.next());
        if next - best >= 2 {
            return Some(usize::midpoint(best, next));
        }
        let after = after.filter(|after| after - next >= 2 && self.is_dip(bounds))?;
        Some(usize::midpoint(next, after))
    }
}
