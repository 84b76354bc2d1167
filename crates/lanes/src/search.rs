//! Which number of lanes to try next.

use super::measure::Measured;

/// What is known of a load: how the channel did with each number of lanes that was tried.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// By number of lanes.
    known: Vec<Known>,
    best: Known,
    pub(super) goal: Goal,
    /// A number between the best and the next one above was looked at.
    is_refined: bool,
    /// The number that it began with, unless that was looked at again.
    start: Option<usize>,
}

/// What was measured at first may have been a bad moment: a gain below this, as a logarithm, is believed only if the
/// first number does no better the second time.
const SURE_GAIN: f64 = 0.4;

/// What the first lanes above the best must lose, as a logarithm, for a dip behind which there may be better ones.
const DIP_LOSS_MIN: f64 = 0.1;

/// What the search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A load that is new or has grown.
    More,
    /// A load that has become less, or other.
    Less,
    /// A load that has been steady: a look at the neighbours only.
    RetryMore,
    RetryLess,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    lanes: usize,
    measured: Measured,
    /// Its trial ended in doubt: it may be better than what was the best.
    is_doubtful: bool,
}

/// What a trial has shown of a number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Better than the best until then, beyond doubt.
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

/// What the next step is to keep to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least: usize,
    pub(super) most: usize,
    /// A signal says that more lanes than the most that were tried might help.
    pub(super) more_may_help: bool,
    /// So much of a call's time is not the network's that a number which did not help is no proof.
    pub(super) far_more_may_help: bool,
    pub(super) loss_max: f64,
    pub(super) latency_weight: f64,
}

impl Search {
    pub(super) fn new(goal: Goal, lanes: usize, measured: Measured) -> Self {
        let best = Known { lanes, measured, is_doubtful: false };
        Self { known: vec![best], best, goal, is_refined: false, start: Some(lanes) }
    }

    /// Takes note of a trial.
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

    /// What was measured of a number after its trial, and for longer, takes the place of that. Says whether another
    /// does better, beyond doubt; the best of those is the best then.
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

    /// The fewest that were tried and do as well as the best.
    fn enough(&self, bounds: &Bounds) -> usize {
        // Unproved rates count here: what is said to be enough must not be less than the best by chance alone.
        let is_enough =
            |known: &&Known| known.lanes == self.best.lanes || self.loss(known, bounds) <= bounds.loss_max;
        self.known.iter().find(is_enough).unwrap_or(&self.best).lanes
    }

    /// What it lacks beside the best.
    fn loss(&self, known: &Known, bounds: &Bounds) -> f64 {
        -known.measured.gain_over(&self.best.measured, bounds.latency_weight).0
    }

    /// The best number of lanes, with which a trial is compared.
    pub(super) fn best(&self) -> (usize, Measured) {
        (self.best.lanes, self.best.measured)
    }

    pub(super) fn known(&self, lanes: usize) -> Option<Measured> {
        self.known.iter().find(|known| known.lanes == lanes).map(|known| known.measured)
    }

    /// The most lanes that were tried.
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
            // A steady load's lanes are not to come and go: one trial.
            (_, Goal::RetryMore | Goal::RetryLess) if self.known.len() > 1 => good,
            (Some(few), _) => {
                // A lane moves no more when it has company: what the few lack, more of them must bring.
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
            // They lack next to nothing.
            _ if too_few.is_some_and(|few| self.loss(few, bounds) < 2.0 * bounds.loss_max) => fewest,
            _ => usize::midpoint(fewest, good - 1),
        };
        Step::Try(fewer.max(fewest))
    }

    /// The number that the search began with, if what seems better by a little has not been compared with it a second
    /// time.
    fn doubted_start(&self, good: usize, bounds: &Bounds) -> Option<usize> {
        let start = self.start.filter(|start| *start < good && *start >= bounds.least)?;
        let known = self.known.iter().find(|known| known.lanes == start)?;
        (self.goal == Goal::More && self.loss(known, bounds) < SURE_GAIN).then_some(start)
    }

    /// More than were tried, if the most that were tried are the best.
    fn more(&self, bounds: &Bounds) -> usize {
        let top = self.top().0;
        let more = match self.goal {
            Goal::More => top * 2,
            Goal::RetryMore if self.known.len() == 1 => top + (top / 2).max(1),
            Goal::RetryMore | Goal::Less | Goal::RetryLess => 0,
        };
        // Two lanes may stand in each other's way where three do not: one failure is forgiven, and so is one in doubt.
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

    /// Whether a few more lanes than the best do worse, and twice as many no worse than these: no hill that goes down.
    fn is_dip(&self, bounds: &Bounds) -> bool {
        let above = self.known.iter().rev().take_while(|known| known.lanes > self.best.lanes);
        let (Some(top), Some(below)) = (above.clone().next(), above.clone().nth(1)) else { return false };
        let (gain, error) = top.measured.gain_over(&below.measured, bounds.latency_weight);
        gain + error > -bounds.loss_max
            && above.last().is_some_and(|first| self.loss(first, bounds) > DIP_LOSS_MIN)
    }

    /// Once, a number in the gap above the best: the peak may lie in it. If there is none, and what follows is a dip,
    /// in the gap after that.
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
