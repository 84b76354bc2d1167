//! Verdict on a ratio of two cells.

use thalweg_measure::figures::{interval_figure, ratio_figure, ratio_text};
use thalweg_measure::statistics::Ratio;

/// A ratio and its verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JudgedRatio {
    /// Ours ÷ theirs, or one variant ÷ another; `None` if no round measured both.
    pub(crate) ratio: Option<Ratio>,
    pub(crate) verdict: Verdict,
}

/// Verdict on a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Verdict {
    /// Ours is faster: the interval excludes 1, and the ratio lies outside the noise floor.
    Faster,
    /// Neither is faster, and the whole interval lies within [`MARGIN`] of 1.
    NoDifference,
    /// Theirs is faster.
    Slower,
    /// Neither is faster, and the interval reaches beyond [`MARGIN`] or there are too few pairs of windows for one. A
    /// difference of that size is possible.
    CannotTell,
    /// One of the two has no usable window.
    NotMeasured,
}

impl Verdict {
    /// Returns the name in JSON and in text.
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

/// Largest ratio, in either direction, that counts as no difference.
pub(crate) const MARGIN: f64 = 1.1;

/// Whether higher or lower values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Higher is better, as for rates.
    More,
    /// Lower is better, as for times.
    Less,
}

impl JudgedRatio {
    /// Judges a ratio. `floor`: largest log ratio, in either direction, that counts as no difference.
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

    /// Returns whether one of the two is faster.
    pub(crate) fn differs(self) -> bool {
        matches!(self.verdict, Verdict::Faster | Verdict::Slower)
    }

    /// Returns the ratio as text, with the verdict if it shows no difference: `1.45 × (1.28–1.66)`, `1.27 × (0.98–1.57:
    /// no difference is shown)`.
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
    fn ratio_text_includes_verdict() {
        let check = |ratio: f64, ends: Option<(f64, f64)>, floor: f64, expected: &str| {
            let interval = ends.map(|(low, high)| Interval { low, high });
            let compared = JudgedRatio::new(Some(Ratio { ratio, interval, pairs: 6 }), floor, Better::Less);
            assert_eq!(compared.factor().unwrap(), expected);
            assert_eq!(compared.differs(), !expected.contains("no difference"));
        };
        check(1.45, Some((1.28, 1.66)), 0.1, "1.45 × (1.28–1.66)");
        check(1.45, Some((1.28, 1.66)), 0.5, "1.45 × (1.28–1.66: no difference is shown)");
        check(1.27, Some((0.98, 1.57)), 0.0, "1.27 × (0.98–1.57: no difference is shown)");
        check(1.02, Some((0.98, 1.06)), 0.0, "1.02 × (0.98–1.06: no difference)");
        check(1.27, None, 0.0, "1.27 × (no difference is shown)");
        assert_eq!(JudgedRatio::new(None, 0.0, Better::Less).factor(), None);
    }
}
