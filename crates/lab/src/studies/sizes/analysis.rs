//! A study of sizes, analysed: what every exporter writes down.

use super::choice::Choices;
use super::compare::{Comparison, compare, findings as compared};
use super::findings::{Headline, answer, findings, headlines, noisy};
use super::lines::{Analysis, analyse};
use crate::findings::{Doubt, Finding};
use crate::load::LabResults;
use crate::load::doubts::doubts;

/// What its results say.
#[derive(Debug)]
pub(crate) struct SizesAnalysis<'r> {
    pub(super) results: &'r LabResults,
    /// Of our own pair.
    pub(super) lines: Analysis,
    /// Which call and which transport to use; empty where stacks are compared, because a round of that holds one call.
    pub(super) choices: Choices,
    /// With the other pairs, where there are any.
    pub(super) comparison: Option<Comparison>,
    /// The study in a sentence; `None` where nothing can be claimed.
    pub(super) answer: Option<String>,
    /// Figures that are worth a glance, of our own pair.
    pub(super) headlines: Vec<Headline>,
    pub(super) findings: Vec<Finding>,
    pub(super) doubts: Vec<Doubt>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

impl<'r> SizesAnalysis<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let lines = analyse(results);
        let sure = lines.sure();
        let comparison = results.is_comparison().then(|| compare(results, &lines));
        let choices = if comparison.is_some() { Choices::default() } else { Choices::of(&lines) };
        let (answer, is_told) = match &comparison {
            Some(comparison) => (compared::answer(comparison), comparison.is_told()),
            None => (answer(&sure), choices.is_empty() || choices.is_told()),
        };
        let unanswered = results.unanswered(answer.is_some() && is_told);
        // What tells nothing because of disturbed windows is said in that sentence.
        let choices = if unanswered.is_some() && !is_told { Choices::default() } else { choices };
        Self {
            results,
            comparison,
            answer,
            headlines: headlines(&sure),
            findings: findings(&sure, &choices),
            doubts: noisy(&lines.noise).into_iter().chain(doubts(results)).collect(),
            unanswered,
            choices,
            lines,
        }
    }
}
