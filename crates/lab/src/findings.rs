//! Findings of a study and doubts about its figures, as text.

use std::fmt;

use serde::Serialize;
use thalweg_measure::figures::percent;
use thalweg_measure::wording::counted;

/// One finding of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// A short heading.
    pub(crate) topic: &'static str,
    /// A few sentences.
    pub(crate) text: String,
}

/// Returns a finding for each topic that has a text.
pub(crate) fn collect_findings(
    texts: impl IntoIterator<Item = (&'static str, Option<String>)>,
) -> Vec<Finding> {
    texts.into_iter().filter_map(|(topic, text)| Some(Finding { topic, text: text? })).collect()
}

/// A caveat about a study's figures, in one or two sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt(pub(crate) String);

impl AsRef<str> for Doubt {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Doubt {
    /// Notes that not all planned windows were measured.
    pub(crate) fn cut_short(done: usize, planned: usize) -> Self {
        let planned = counted(planned as u64, "window");
        Self(format!("The study was cut short: {done} of {planned} were measured."))
    }

    /// Notes that the program was built without optimizations.
    pub(crate) fn build(build: &str) -> Self {
        Self(format!("This is a {build} build; use --release for meaningful figures."))
    }

    /// Notes that other programs ran when the study started.
    pub(crate) fn busy(load_average: f64, cores: usize) -> Self {
        Self(format!(
            "Other programs were running when the study started (load average {load_average:.1} on {}); repeat it on \
             an idle machine.",
            counted(cores as u64, "core")
        ))
    }

    /// Notes that the noise floor, as a ratio such as 1.3, is high. `scope` names the figures if not all are affected.
    pub(crate) fn noisy(scope: Option<&str>, floor: f64) -> Self {
        let differed = |start: &str| {
            format!(
                "{start}easured against itself, the same variant differed by up to {}",
                percent(floor - 1.0)
            )
        };
        let (difference, here) = match scope {
            None => (differed("M"), ""),
            Some(scope) => (format!("{scope}: {}", differed("m")), " here"),
        };
        Self(format!(
            "{difference}: this is the noise floor{here}, and smaller differences are not significant."
        ))
    }

    /// Notes that something could not be measured.
    pub(crate) fn left_out(what: &impl fmt::Display, reason: &str) -> Self {
        Self(format!("{what}: {reason}"))
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
