//! A study of sizes, analysed: what every exporter writes down.

use super::choice::Choices;
use super::compare::{Comparison, compare};
use super::findings::{findings, noisy};
use super::lines::{Analysis, analyse};
use crate::findings::{Doubt, Finding};
use crate::load::LabResults;
use crate::load::doubts::doubts;

/// What its results say.
#[derive(Debug)]
pub struct SizesAnalysis<'r> {
    pub(super) results: &'r LabResults,
    /// Of our own pair.
    pub(super) lines: Analysis,
    /// Which call and which transport to use; empty where stacks are compared, because a round of that holds one call.
    pub(super) choices: Choices,
    /// With the other pairs, where there are any.
    pub(super) comparison: Option<Comparison>,
    pub(super) findings: Vec<Finding>,
    pub(super) doubts: Vec<Doubt>,
}

impl<'r> SizesAnalysis<'r> {
    pub(super) fn of(results: &'r LabResults) -> Self {
        let lines = analyse(results);
        let is_comparison = results.is_comparison();
        let choices = if is_comparison { Choices::default() } else { Choices::of(&lines) };
        Self {
            results,
            comparison: is_comparison.then(|| compare(results, &lines)),
            findings: findings(&lines, &choices),
            doubts: noisy(&lines.noise).into_iter().chain(doubts(results)).collect(),
            choices,
            lines,
        }
    }
}
