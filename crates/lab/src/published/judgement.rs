//! What came of a claim: a verdict, and the figures that it was told from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What came of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    /// What was found, in a few words with their figures.
    pub(crate) ours: String,
    /// Why it is so.
    pub(crate) cause: String,
    /// What the verdict was told from.
    pub(crate) figures: Vec<Figure>,
}

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
    /// The effect is there, and as large as was published, within [`NEAR`].
    Confirmed,
    /// The effect is there, and of another size.
    InDirection,
    /// It is not there, or the other way round.
    NotConfirmed,
    /// This machine, or this run, cannot show it.
    CannotBeTried,
}

/// A figure beside a published one is as large where neither is more than so many times the other: machines differ.
pub(crate) const NEAR: f64 = 1.5;

/// Whether a figure is as large as the one that was published.
pub(crate) fn is_near(ours: f64, published: f64) -> bool {
    ours > 0.0 && published > 0.0 && (ours / published).ln().abs() <= NEAR.ln()
}

impl Verdict {
    pub(crate) const ALL: [Self; 4] =
        [Self::Confirmed, Self::InDirection, Self::NotConfirmed, Self::CannotBeTried];

    /// In words.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::InDirection => "confirmed in direction",
            Self::NotConfirmed => "not confirmed",
            Self::CannotBeTried => "cannot be tried here",
        }
    }

    /// Of an effect that is there or not, and as large as published or not.
    pub(crate) fn of(is_there: bool, is_as_large: bool) -> Self {
        match (is_there, is_as_large) {
            (true, true) => Self::Confirmed,
            (true, false) => Self::InDirection,
            (false, _) => Self::NotConfirmed,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
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

impl Figure {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &str, text: impl Into<String>) -> Self {
        Self { name: name.into(), value, unit: unit.to_owned(), text: text.into() }
    }

    /// A time, ns.
    pub(crate) fn time(name: impl Into<String>, ns: f64) -> Self {
        Self::new(name, ns, "ns", thalweg_measure::figures::time(ns))
    }

    /// Operations per second.
    pub(crate) fn rate(name: impl Into<String>, per_s: f64) -> Self {
        Self::new(name, per_s, "1/s", format!("{}/s", thalweg_measure::figures::count(per_s)))
    }

    /// Payload bytes per second.
    pub(crate) fn throughput(name: impl Into<String>, bytes_per_s: f64) -> Self {
        Self::new(name, bytes_per_s, "B/s", thalweg_measure::figures::throughput(bytes_per_s))
    }

    /// One figure ÷ another.
    pub(crate) fn ratio(name: impl Into<String>, ratio: f64) -> Self {
        Self::new(name, ratio, "", thalweg_measure::figures::times(ratio))
    }

    /// A number of something.
    pub(crate) fn number(name: impl Into<String>, number: f64) -> Self {
        Self::new(name, number, "", thalweg_measure::figures::grouped(number))
    }

    /// Bytes of a message.
    pub(crate) fn bytes(name: impl Into<String>, bytes: f64) -> Self {
        Self::new(name, bytes, "B", format!("{} B", thalweg_measure::figures::grouped(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn as_large_is_within_a_factor() {
        for (ours, published, expected) in
            [(7.0, 7.0, true), (4.7, 7.0, true), (10.4, 7.0, true), (4.6, 7.0, false), (0.0, 7.0, false)]
        {
            assert_eq!(is_near(ours, published), expected, "{ours}");
        }
    }
}
