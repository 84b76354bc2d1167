//! Compares the shares of calls that failed or never started.

use thalweg_measure::statistics::{Estimate, Interval, PAIRS_MIN};

use crate::cell::{Calls, Cell, Round};
use crate::verdict::Verdict;

/// Tolerated increase of B's share over A's: one percentage point.
const MARGIN: f64 = 0.01;

/// Shares of calls that failed or never started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailedShares {
    /// Share of A's calls, over all rounds.
    pub a: f64,
    /// Share of B's calls.
    pub b: f64,
    /// Confidence interval of the difference, B − A.
    pub difference: Interval,
}

impl FailedShares {
    /// Compares the shares round by round.
    ///
    /// Failures come in bursts: one stall drops many calls. Calls of a round are therefore not independent, and the
    /// interval reflects how much rounds differ (Student's t, or Welch's if rounds are not pairs). It is at least as
    /// wide as for independent calls, because a few rounds with rare failures may agree by chance. With fewer than
    /// [`PAIRS_MIN`] rounds there is no spread, so calls count as independent.
    ///
    /// The interval is widened to be one of `comparisons`.
    pub(crate) fn compared(a: &Cell, b: &Cell, are_pairs: bool, comparisons: usize) -> Self {
        let (of_a, of_b) = (a.calls(), b.calls());
        let by_calls = standard_error(of_a, of_b);
        let by_rounds = if are_pairs { paired(a, b) } else { unpaired(a, b) };
        let estimate = by_rounds.unwrap_or_else(|| Estimate {
            mean: of_b.failed_share() - of_a.failed_share(),
            error: by_calls,
            df: f64::INFINITY,
        });
        let estimate = Estimate { error: estimate.error.max(by_calls), ..estimate };
        Self {
            a: of_a.failed_share(),
            b: of_b.failed_share(),
            difference: estimate.mean_corrected_for(comparisons),
        }
    }

    /// Returns the verdict on the difference, with a margin of one percentage point.
    pub fn verdict(self) -> Verdict {
        let Interval { low, high } = self.difference;
        match () {
            () if low >= -MARGIN && high <= MARGIN => Verdict::Same,
            () if self.difference.contains(0.0) => Verdict::CannotTell,
            () if low > 0.0 => Verdict::Worse,
            () => Verdict::Better,
        }
    }

    /// Returns whether B fails: the whole interval of the difference lies above the margin.
    pub fn fails(self) -> bool {
        self.difference.low > MARGIN
    }
}

/// Returns the standard error of the difference of both shares, assuming independent calls.
fn standard_error(a: Calls, b: Calls) -> f64 {
    let share = (a + b).failed_share();
    let variance = |calls: Calls| share * (1.0 - share) / calls.total().max(1) as f64;
    (variance(a) + variance(b)).sqrt()
}

fn paired(a: &Cell, b: &Cell) -> Option<Estimate> {
    let pair = |round: &Round| {
        let other = b.rounds.iter().find(|other| other.number == round.number)?;
        let are_counted = round.calls.total() > 0 && other.calls.total() > 0;
        are_counted.then(|| other.calls.failed_share() - round.calls.failed_share())
    };
    by_rounds(&a.rounds.iter().filter_map(pair).collect::<Vec<_>>())
}

fn unpaired(a: &Cell, b: &Cell) -> Option<Estimate> {
    let shares = |cell: &Cell| -> Vec<f64> {
        let counted = cell.rounds.iter().filter(|round| round.calls.total() > 0);
        counted.map(|round| round.calls.failed_share()).collect()
    };
    Some(by_rounds(&shares(b))?.minus(by_rounds(&shares(a))?))
}

fn by_rounds(values: &[f64]) -> Option<Estimate> {
    Estimate::of(values).filter(|_| values.len() >= PAIRS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Conditions;

    /// Returns a cell with one round per value, each of 1,000 calls with that many failures.
    fn cell(failed: &[u64]) -> Cell {
        let round = |(number, &failed): (u32, &u64)| Round {
            number,
            calls: Calls { ok: 1000 - failed, failed, dropped: 0 },
            ..Round::default()
        };
        Cell {
            conditions: Conditions::default(),
            is_open: false,
            rounds: (0..).zip(failed).map(round).collect(),
            request_bytes: None,
        }
    }

    #[test]
    fn difference_is_judged_by_rounds() {
        let check = |a: &[u64], b: &[u64], expected: Verdict, fails: bool| {
            for are_pairs in [true, false] {
                let shares = FailedShares::compared(&cell(a), &cell(b), are_pairs, 1);
                assert_eq!((shares.verdict(), shares.fails()), (expected, fails), "{a:?}, {b:?}: {shares:?}");
            }
        };
        check(&[0; 10], &[0; 10], Verdict::Same, false);
        check(&[0; 10], &[50; 10], Verdict::Worse, true);
        check(&[50; 10], &[0; 10], Verdict::Better, false);
        // Above the margin in total, but only because of one stall in one round.
        check(&[0; 5], &[0, 0, 200, 0, 0], Verdict::CannotTell, false);
        check(&[0; 5], &[60, 40, 55, 45, 50], Verdict::Worse, true);
        // Rounds may agree by chance: for independent calls, 1.3 % of 3,000 is 1.3 % ± 0.4 %.
        check(&[0; 3], &[13; 3], Verdict::Worse, false);
    }

    #[test]
    fn fewer_rounds_than_three_are_judged_by_calls() {
        let shares = |b: u64| FailedShares::compared(&cell(&[0]), &cell(&[b]), false, 1);
        assert!(shares(100).fails() && !shares(12).fails());
        assert_eq!(shares(12).verdict(), Verdict::Worse);
        assert_eq!(shares(0).verdict(), Verdict::Same);
    }
}
