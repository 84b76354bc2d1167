//! What a ratio of two windows' figures amounts to.

use thalweg_measure::figures::{interval_figure, ratio_figure, ratio_text};
use thalweg_measure::statistics::Ratio;

/// A ratio, and what it amounts to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compared {
    /// Ours ÷ theirs, or one way ÷ another; `None` without a round in which both were measured.
    pub(crate) ratio: Option<Ratio>,
    /// See [`Verdict`].
    pub(crate) verdict: Verdict,
}

/// What a ratio amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Verdict {
    /// Ours is faster: the interval does not hold 1, and the ratio lies outside the noise floor.
    Faster,
    /// Neither is faster, and the whole interval lies within [`MARGIN`] of 1: the two are equivalent.
    NoDifference,
    /// Theirs is faster.
    Slower,
    /// Neither is faster, and the interval reaches beyond [`MARGIN`], or there are too few pairs of windows for one: a
    /// difference of that size may be there, or not.
    CannotTell,
    /// One of the two has no window that can be used.
    NotMeasured,
}

impl Verdict {
    /// The name in JSON and in words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::NoDifference => "no difference",
            Self::Slower => "slower",
            Self::CannotTell => "cannot tell",
            Self::NotMeasured => "not measured",
        }
    }
}

/// What is called no difference: a ratio that is known to lie between 1 ÷ this and this.
pub(crate) const MARGIN: f64 = 1.1;

/// Which way of a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Rates.
    More,
    /// Times.
    Less,
}

impl Compared {
    /// `floor`: a log ratio that is no farther from 0 is no difference.
    pub(crate) fn new(ratio: Option<Ratio>, floor: f64, better: Better) -> Self {
        let verdict = match ratio {
            None => Verdict::NotMeasured,
            Some(Ratio { interval: None, .. }) => Verdict::CannotTell,
            Some(Ratio { ratio, interval: Some(interval), .. }) => {
                let differs = !interval.contains(1.0) && ratio.ln().abs() > floor;
                match (differs, (ratio > 1.0) == (better == Better::More)) {
                    (true, true) => Verdict::Faster,
                    (true, false) => Verdict::Slower,
                    (false, _) if interval.is_within_factor(MARGIN) => Verdict::NoDifference,
                    (false, _) => Verdict::CannotTell,
                }
            }
        };
        Self { ratio, verdict }
    }

    /// One of them is faster.
    pub(crate) fn differs(self) -> bool {
        matches!(self.verdict, Verdict::Faster | Verdict::Slower)
    }

    /// The ratio in a sentence, with what it amounts to where it shows no difference: `1.45 × (1.28–1.66)`,
    /// `1.27 × (0.98–1.57: no difference is shown)`.
    pub(crate) fn factor(self) -> Option<String> {
        let ratio = self.ratio?;
        let amounts_to = match self.verdict {
            Verdict::NoDifference => "no difference",
            Verdict::CannotTell => "no difference is shown",
            Verdict::Faster | Verdict::Slower | Verdict::NotMeasured => return Some(ratio_text(ratio)),
        };
        let interval = interval_figure(ratio).map(|interval| format!("{interval}: ")).unwrap_or_default();
        Some(format!("{} × ({interval}{amounts_to})", ratio_figure(ratio.ratio)))
    }
}

#[cfg(test)]
mod tests {
    use thalweg_measure::statistics::Interval;

    use super::*;

    #[test]
    fn a_ratio_is_worded_by_what_it_amounts_to() {
        let check = |ratio: f64, ends: Option<(f64, f64)>, floor: f64, expected: &str| {
            let interval = ends.map(|(low, high)| Interval { low, high });
            let compared = Compared::new(Some(Ratio { ratio, interval, pairs: 6 }), floor, Better::Less);
            assert_eq!(compared.factor().unwrap(), expected);
            assert_eq!(compared.differs(), !expected.contains("no difference"));
        };
        check(1.45, Some((1.28, 1.66)), 0.1, "1.45 × (1.28–1.66)");
        check(1.45, Some((1.28, 1.66)), 0.5, "1.45 × (1.28–1.66: no difference is shown)");
        check(1.27, Some((0.98, 1.57)), 0.0, "1.27 × (0.98–1.57: no difference is shown)");
        check(1.02, Some((0.98, 1.06)), 0.0, "1.02 × (0.98–1.06: no difference)");
        check(1.27, None, 0.0, "1.27 × (no difference is shown)");
        assert_eq!(Compared::new(None, 0.0, Better::Less).factor(), None);
    }
}
