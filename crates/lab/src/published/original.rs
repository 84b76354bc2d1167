//! What there is to know of a publication, and the studies that try it again.

use super::claim::Claim;
use super::evidence::Evidence;
use super::grid::Table;

/// What was published, and how it is tried again.
pub(crate) struct Original {
    pub(crate) title: &'static str,
    /// Whose it is, where and when.
    pub(crate) source: &'static str,
    /// What was measured, with what, and how.
    pub(crate) method: &'static [&'static str],
    pub(crate) claims: &'static [Claim],
    /// What went wrong in it, or is left open by it, and what is done here instead.
    pub(crate) flaws: &'static [Flaw],
    /// The studies that try it again.
    pub(crate) runs: fn(Extent) -> Vec<Run>,
    /// What else its figures say: beside which the claims were judged.
    pub(crate) tables: fn(&Evidence) -> Vec<Table>,
}

/// Something that a measurement does not show, or shows wrongly.
pub(crate) struct Flaw {
    /// What.
    pub(crate) what: &'static str,
    /// What it does to the figures, and what is done here.
    pub(crate) instead: &'static str,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A look: all four within a quarter of an hour.
    Quick,
    /// All that the claims are about.
    Whole,
}

/// A study that this laboratory makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The name of its folder.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    /// What `thalweg` is told.
    pub arguments: Vec<String>,
    /// The log of its virtual machines is kept beside its results, and read.
    pub keeps_jvm_logs: bool,
}

impl Run {
    pub(crate) fn new(name: &'static str, about: &'static str, words: &str) -> Self {
        let arguments = words.split_whitespace().map(str::to_owned).collect();
        Self { name, about, arguments, keeps_jvm_logs: false }
    }
}
