//! Findings of a study, and doubts about its figures, as texts.

use std::fmt;

use serde::Serialize;
use thalweg_measure::figures::percent;
use thalweg_measure::wording::counted;

/// One thing that a study found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// A short heading.
    pub(crate) topic: &'static str,
    /// A few sentences.
    pub(crate) text: String,
}

/// Returns a finding for each topic that has a text.
pub(crate) fn found(texts: impl IntoIterator<Item = (&'static str, Option<String>)>) -> Vec<Finding> {
    texts.into_iter().filter_map(|(topic, text)| Some(Finding { topic, text: text? })).collect()
}

/// What a reader must know before using the figures of a study, in one or two sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt(pub(crate) String);

impl AsRef<str> for Doubt {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Doubt {
    /// Not all planned windows were measured.
    pub(crate) fn cut_short(done: usize, planned: usize) -> Self {
        let planned = counted(planned as u64, "window");
        Self(format!("The study was cut short: {done} of {planned} were measured."))
    }

    /// The program was built without optimizations.
    pub(crate) fn build(build: &str) -> Self {
        Self(format!("This is a {build} build; use --release for meaningful figures."))
    }

    /// Other programs ran when the study started.
    pub(crate) fn busy(load_average: f64, cores: usize) -> Self {
        Self(format!(
            "Other programs were running when the study started (load average {load_average:.1} on {}); repeat it on \
             an idle machine.",
            counted(cores as u64, "core")
        ))
    }

    /// The noise floor, as a ratio such as 1.3, is high; `scope`: of which figures, if not of all.
    pub(crate) fn noisy(scope: Option<&str>, floor: f64) -> Self {
        let differed = |start: &str| {
            format!(
                "{start}easured against itself, the same variant differed by up to {}",
                percent(floor - 1.0)
            )
        };
        let (said, place) = match scope {
            None => (differed("M"), ""),
            Some(scope) => (format!("{scope}: {}", differed("m")), " here"),
        };
        Self(format!("{said}: this is the noise floor{place}, and smaller differences are not significant."))
    }

    /// Something could not be measured.
    pub(crate) fn left_out(what: &impl fmt::Display, reason: &str) -> Self {
        Self(format!("{what}: {reason}"))
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
