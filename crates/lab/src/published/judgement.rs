//! What came of a claim: a verdict, and the figures that it was told from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A claim with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) id: String,
    pub(crate) claim: String,
    pub(crate) published: String,
    pub(crate) verdict: Verdict,
    /// What was found.
    pub(crate) ours: String,
    /// Why it is so; of a claim that cannot be tried, why not.
    pub(crate) cause: String,
    /// What the verdict was told from; nothing of a claim that cannot be tried.
    pub(crate) figures: Vec<Figure>,
}

/// What trying again amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The effect is there, and as large as was published.
    Confirmed,
    /// The effect is there, and of another size.
    InDirection,
    /// It is not there, or the other way round.
    NotConfirmed,
    /// This machine, or this run, cannot show it.
    CannotBeTried,
}

impl Verdict {
    const ALL: [Self; 4] = [Self::Confirmed, Self::InDirection, Self::NotConfirmed, Self::CannotBeTried];

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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// How many claims came to what: `2 confirmed, 1 not confirmed`.
pub(crate) fn counts<'c>(claims: impl IntoIterator<Item = &'c Judged>) -> String {
    let verdicts: Vec<Verdict> = claims.into_iter().map(|claim| claim.verdict).collect();
    let count = |verdict: Verdict| (verdicts.iter().filter(|it| **it == verdict).count(), verdict);
    let counts = Verdict::ALL.into_iter().map(count).filter(|(count, _)| *count > 0);
    counts.map(|(count, verdict)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
}

/// A figure with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// Of what.
    pub(crate) name: String,
    /// In `unit`.
    pub(crate) value: f64,
    /// `ns`, `1/s`, `B/s`, `B`; empty for ratios and counts.
    pub(crate) unit: String,
    /// As it is read.
    pub(crate) text: String,
}
