//! Verdict on a ratio.

use std::fmt;

use serde::Serialize;
use thalweg_measure::statistics::Interval;

use crate::figure::Figure;

/// Verdict on the ratio of a figure, B ÷ A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is better: the interval excludes 1 and extends beyond the margin.
    Better,
    /// B is worse: the interval excludes 1 and extends beyond the margin.
    Worse,
    /// The whole interval lies within the margin.
    Same,
    /// The interval includes 1 and extends beyond the margin, or there is no interval.
    CannotTell,
}

impl Verdict {
    /// Judges an interval. A `margin` of 0.05 treats ratios between 1 ÷ 1.05 and 1.05 as equal.
    pub fn of(figure: Figure, interval: Option<Interval>, margin: f64) -> Self {
        match interval {
            None => Self::CannotTell,
            Some(interval) if interval.is_within_factor(1.0 + margin) => Self::Same,
            Some(interval) if interval.contains(1.0) => Self::CannotTell,
            Some(interval) if (interval.low > 1.0) == figure.higher_is_better() => Self::Better,
            Some(_) => Self::Worse,
        }
    }

    /// Returns whether the whole interval lies beyond the margin, on either side.
    pub fn is_beyond(interval: Option<Interval>, margin: f64) -> bool {
        interval.is_some_and(|interval| interval.low > 1.0 + margin || interval.high < 1.0 / (1.0 + margin))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "the same within the margin",
            Self::CannotTell => "can't tell",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_follows_position_of_interval() {
        let check = |figure: Figure, (low, high): (f64, f64), expected: Verdict, beyond: bool| {
            let interval = Some(Interval { low, high });
            let found = (Verdict::of(figure, interval, 0.05), Verdict::is_beyond(interval, 0.05));
            assert_eq!(found, (expected, beyond), "{figure}: {low} to {high}");
        };
        check(Figure::Rate, (1.10, 1.20), Verdict::Better, true);
        check(Figure::Rate, (1.02, 1.20), Verdict::Better, false);
        check(Figure::Rate, (0.80, 0.90), Verdict::Worse, true);
        check(Figure::Rate, (0.80, 0.97), Verdict::Worse, false);
        check(Figure::P99, (1.10, 1.20), Verdict::Worse, true);
        check(Figure::P99, (1.01, 1.20), Verdict::Worse, false);
        check(Figure::P99, (0.80, 0.90), Verdict::Better, true);
        check(Figure::P99, (0.96, 1.04), Verdict::Same, false);
        // Excludes 1, but lies within the margin.
        check(Figure::P99, (1.01, 1.04), Verdict::Same, false);
        check(Figure::P99, (0.90, 1.10), Verdict::CannotTell, false);
        assert_eq!(Verdict::of(Figure::Rate, None, 0.05), Verdict::CannotTell);
        assert!(!Verdict::is_beyond(None, 0.05));
    }
}
