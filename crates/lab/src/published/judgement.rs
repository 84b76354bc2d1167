//! Judgement of a claim: a verdict with its figures.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JudgedClaim {
    pub(crate) id: String,
    pub(crate) claim: String,
    pub(crate) published: String,
    pub(crate) verdict: ClaimVerdict,
    /// Findings of the runs.
    pub(crate) ours: String,
    /// Cause of the finding, or why the claim cannot be tried.
    pub(crate) cause: String,
    /// Figures behind the verdict; empty if the claim cannot be tried.
    pub(crate) figures: Vec<ClaimFigure>,
}

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClaimVerdict {
    /// The effect exists and is as large as published.
    Confirmed,
    /// The effect exists but differs in size.
    InDirection,
    /// The effect is absent or reversed.
    NotConfirmed,
    /// This machine or run cannot show it.
    CannotBeTried,
}

impl ClaimVerdict {
    const ALL: [Self; 4] = [Self::Confirmed, Self::InDirection, Self::NotConfirmed, Self::CannotBeTried];

    /// Returns whether the effect exists.
    pub(crate) fn is_shown(self) -> bool {
        matches!(self, Self::Confirmed | Self::InDirection)
    }

    /// Returns the verdict as text.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::InDirection => "confirmed in direction",
            Self::NotConfirmed => "not confirmed",
            Self::CannotBeTried => "cannot be tried here",
        }
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// Returns the number of claims by verdict: `2 confirmed, 1 not confirmed`.
pub(crate) fn counts<'c>(claims: impl IntoIterator<Item = &'c JudgedClaim>) -> String {
    let verdicts: Vec<ClaimVerdict> = claims.into_iter().map(|claim| claim.verdict).collect();
    let count = |verdict: ClaimVerdict| (verdicts.iter().filter(|it| **it == verdict).count(), verdict);
    let counts = ClaimVerdict::ALL.into_iter().map(count).filter(|(count, _)| *count > 0);
    counts.map(|(count, verdict)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
}

/// A named figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClaimFigure {
    pub(crate) name: String,
    /// Value in `unit`.
    pub(crate) value: f64,
    /// `ns`, `1/s`, `B/s`, `B`; empty for ratios and counts.
    pub(crate) unit: String,
    pub(crate) text: String,
}
