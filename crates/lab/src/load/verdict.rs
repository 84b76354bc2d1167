//! What a ratio of two windows' figures amounts to.

use crate::statistics::Ratio;

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
                    (false, _) if interval.is_within(MARGIN) => Verdict::NoDifference,
                    (false, _) => Verdict::CannotTell,
                }
            }
        };
        Self { ratio, verdict }
    }
}
