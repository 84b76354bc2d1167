//! What came of a claim: a verdict, and the figures that it was told from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A claim with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) id: String,
    pub(crate) claim: String,
    pub(crate) published: String,
    pub(crate) verdict: ClaimVerdict,
    /// What was found.
    pub(crate) ours: String,
    /// Why it is so; of a claim that cannot be tried, why not.
    pub(crate) cause: String,
    /// What the verdict was told from; nothing of a claim that cannot be tried.
    pub(crate) figures: Vec<ClaimFigure>,
}

/// What trying again amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClaimVerdict {
    /// The effect is there, and as large as was published.
    Confirmed,
    /// The effect is there, and of another size.
    InDirection,
    /// It is not there, or the other way round.
    NotConfirmed,
    /// This machine, or this run, cannot show it.
    CannotBeTried,
}

impl ClaimVerdict {
    const ALL: [Self; 4] = [Self::Confirmed, Self::InDirection, Self::NotConfirmed, Self::CannotBeTried];

    /// The effect is there.
    pub(crate) fn is_shown(self) -> bool {
        matches!(self, Self::Confirmed | Self::InDirection)
    }

    /// In words.
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

/// How many claims came to what: `2 confirmed, 1 not confirmed`.
pub(crate) fn counts<'c>(claims: impl IntoIterator<Item = &'c Judged>) -> String {
    let verdicts: Vec<ClaimVerdict> = claims.into_iter().map(|claim| claim.verdict).collect();
    let count = |verdict: ClaimVerdict| (verdicts.iter().filter(|it| **it == verdict).count(), verdict);
    let counts = ClaimVerdict::ALL.into_iter().map(count).filter(|(count, _)| *count > 0);
    counts.map(|(count, verdict)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
}

/// A figure with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClaimFigure {
    /// Of what.
    pub(crate) name: String,
    /// In `unit`.
    pub(crate) value: f64,
    /// `ns`, `1/s`, `B/s`, `B`; empty for ratios and counts.
    pub(crate) unit: String,
    /// As it is read.
    pub(crate) text: String,
}
