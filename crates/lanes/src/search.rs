//! Selects the next number of lanes to try.

use super::measure::Measurement;

/// Measurements of a load with each number of lanes tried.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// Sorted by number of lanes.
    tried: Vec<TriedLanes>,
    best: TriedLanes,
    pub(super) goal: SearchGoal,
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
pub(super) enum SearchGoal {
    /// A new or increased load.
    More,
    /// A decreased or different load.
    Less,
    /// A steady load: only neighbouring numbers are tried.
    RetryMore,
    RetryLess,
}

#[derive(Clone, Copy, Debug)]
struct TriedLanes {
    lanes: usize,
    measured: Measurement,
    /// Whether its trial ended undecided: it may be better than the best.
    is_doubtful: bool,
}

/// Outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialOutcome {
    /// Significantly better than the previous best.
    Better,
    NotBetter,
    /// Perhaps better.
    InDoubt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStep {
    Try(usize),
    Done(usize),
}

/// Bounds of the next step.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchBounds {
    pub(super) lanes_min: usize,
    pub(super) lanes_max: usize,
    /// Whether a signal says that more lanes than tried might help.
    pub(super) more_may_help: bool,
    /// Whether so much of a call's time is outside the network that a failed trial proves nothing.
    pub(super) far_more_may_help: bool,
    pub(super) loss_max: f64,
    pub(super) latency_weight: f64,
}

impl Search {
    pub(super) fn new(goal: SearchGoal, lanes: usize, measured: Measurement) -> Self {
        let best = TriedLanes { lanes, measured, is_doubtful: false };
        Self { tried: vec![best], best, goal, is_refined: false, start: Some(lanes) }
    }

    /// Records a trial.
    pub(super) fn record_trial(&mut self, lanes: usize, measured: Measurement, outcome: TrialOutcome) {
        let tried = TriedLanes { lanes, measured, is_doubtful: outcome == TrialOutcome::InDoubt };
        self.start = self.start.filter(|start| *start != lanes);
        let index = self.tried.partition_point(|tried| tried.lanes < lanes);
        self.is_refined |= lanes > self.best.lanes && index < self.tried.len();
        self.tried.retain(|tried| tried.lanes != lanes);
        self.tried.insert(index, tried);
        if outcome == TrialOutcome::Better {
            self.best = tried;
        }
    }

    /// Replaces a trial's measurement by a longer one. Returns whether another number is significantly better; the best
    /// such number becomes the best.
    pub(super) fn revise(
        &mut self,
        lanes: usize,
        measured: Measurement,
        is_better: impl Fn(&Measurement, &Measurement) -> bool,
        bounds: &SearchBounds,
    ) -> bool {
        if let Some(tried) = self.tried.iter_mut().find(|tried| tried.lanes == lanes) {
            tried.measured = measured;
        }
        let gain = |tried: &TriedLanes| tried.measured.gain_over(&measured, bounds.latency_weight).0;
        let better = self.tried.iter().filter(|tried| is_better(&tried.measured, &measured));
        let Some(best) = better.max_by(|a, b| gain(a).total_cmp(&gain(b))) else { return false };
        self.best = *best;
        true
    }

    /// Returns the fewest tried lanes that do as well as the best.
    fn fewest_sufficient(&self, bounds: &SearchBounds) -> usize {
        // Includes uncertain rates, so that the result is not smaller than the best by chance alone.
        let is_enough = |tried: &&TriedLanes| {
            tried.lanes == self.best.lanes || self.loss(tried, bounds) <= bounds.loss_max
        };
        self.tried.iter().find(is_enough).unwrap_or(&self.best).lanes
    }

    /// Returns the loss relative to the best.
    fn loss(&self, tried: &TriedLanes, bounds: &SearchBounds) -> f64 {
        -tried.measured.gain_over(&self.best.measured, bounds.latency_weight).0
    }

    /// Returns the best number of lanes, with which trials are compared.
    pub(super) fn best(&self) -> (usize, Measurement) {
        (self.best.lanes, self.best.measured)
    }

    pub(super) fn measurement_of(&self, lanes: usize) -> Option<Measurement> {
        self.tried.iter().find(|tried| tried.lanes == lanes).map(|tried| tried.measured)
    }

    /// Returns the highest number tried.
    pub(super) fn highest(&self) -> (usize, Measurement) {
        let highest = self.tried.last().expect("never empty");
        (highest.lanes, highest.measured)
    }

    pub(super) fn next_step(&self, bounds: &SearchBounds) -> SearchStep {
        let more = self.next_higher(bounds);
        if more > self.highest().0 {
            return SearchStep::Try(more);
        }
        if let Some(between) = self.between_best_and_next(bounds) {
            return SearchStep::Try(between);
        }
        let sufficient =
            if self.goal == SearchGoal::RetryMore { self.best.lanes } else { self.fewest_sufficient(bounds) };
        let too_few = self.tried.iter().rev().find(|tried| tried.lanes < sufficient);
        let fewest = match (too_few, self.goal) {
            // The lanes of a steady load should not fluctuate: one trial.
            (_, SearchGoal::RetryMore | SearchGoal::RetryLess) if self.tried.len() > 1 => sufficient,
            (Some(few), _) => {
                // More lanes do not make a lane faster, so they must make up for what the fewer ones lack.
                let needed = few.lanes as f64 * (self.loss(few, bounds) - bounds.loss_max).exp();
                (needed.ceil() as usize).clamp(few.lanes + 1, sufficient)
            }
            (None, SearchGoal::Less | SearchGoal::RetryLess) => bounds.lanes_min,
            (None, SearchGoal::More | SearchGoal::RetryMore) => sufficient,
        };
        let fewest = fewest.max(bounds.lanes_min);
        if fewest >= sufficient {
            return self
                .start_to_recheck(sufficient, bounds)
                .map_or(SearchStep::Done(sufficient.max(bounds.lanes_min)), SearchStep::Try);
        }
        let fewer = match self.goal {
            SearchGoal::RetryLess => sufficient - (sufficient / 4).max(1),
            // They lack almost nothing.
            _ if too_few.is_some_and(|few| self.loss(few, bounds) < 2.0 * bounds.loss_max) => fewest,
            _ => usize::midpoint(fewest, sufficient - 1),
        };
        SearchStep::Try(fewer.max(fewest))
    }

    /// Returns the initial number, if a slightly better result has not been compared with it again.
    fn start_to_recheck(&self, sufficient: usize, bounds: &SearchBounds) -> Option<usize> {
        let start = self.start.filter(|start| *start < sufficient && *start >= bounds.lanes_min)?;
        let tried = self.tried.iter().find(|tried| tried.lanes == start)?;
        (self.goal == SearchGoal::More && self.loss(tried, bounds) < SURE_GAIN).then_some(start)
    }

    /// Returns a higher number than tried so far, or 0 if that is not worth a trial.
    fn next_higher(&self, bounds: &SearchBounds) -> usize {
        let highest = self.highest().0;
        let more = match self.goal {
            SearchGoal::More => highest * 2,
            SearchGoal::RetryMore if self.tried.len() == 1 => highest + (highest / 2).max(1),
            SearchGoal::RetryMore | SearchGoal::Less | SearchGoal::RetryLess => 0,
        };
        // Two lanes may interfere with each other when three do not, so one failure is tolerated, as is one undecided
        // trial.
        let mut failures = self.tried.iter().filter(|tried| tried.lanes > self.best.lanes);
        let is_worth_it = match (failures.next(), failures.next()) {
            (None, _) => bounds.more_may_help,
            (Some(failure), None) => {
                let may_help = bounds.far_more_may_help || (failure.is_doubtful && bounds.more_may_help);
                may_help && self.goal == SearchGoal::More && !self.is_refined
            }
            _ => {
                bounds.far_more_may_help
                    && self.goal == SearchGoal::More
                    && !self.is_refined
                    && self.is_dip(bounds)
            }
        };
        if is_worth_it { more.min(bounds.lanes_max) } else { 0 }
    }

    /// Returns whether slightly more lanes than the best do worse, but twice as many do no worse than these.
    fn is_dip(&self, bounds: &SearchBounds) -> bool {
        let above = self.tried.iter().rev().take_while(|tried| tried.lanes > self.best.lanes);
        let (Some(highest), Some(below)) = (above.clone().next(), above.clone().nth(1)) else { return false };
        let (gain, error) = highest.measured.gain_over(&below.measured, bounds.latency_weight);
        gain + error > -bounds.loss_max
            && above.last().is_some_and(|first| self.loss(first, bounds) > DIP_LOSS_MIN)
    }

    /// Returns, once, a number in the gap above the best, which may contain the peak. If there is no gap, but a dip
    /// follows, returns one in the next gap.
    fn between_best_and_next(&self, bounds: &SearchBounds) -> Option<usize> {
        if self.goal != SearchGoal::More || self.is_refined {
            return None;
        }
        let best = self.best.lanes;
        let mut above = self.tried.iter().map(|tried| tried.lanes).filter(|lanes| *lanes > best);
        let (next, after) = (above.next()?, above.next());
        if next - best >= 2 {
            return Some(usize::midpoint(best, next));
        }
        let after = after.filter(|after| after - next >= 2 && self.is_dip(bounds))?;
        Some(usize::midpoint(next, after))
    }
}
