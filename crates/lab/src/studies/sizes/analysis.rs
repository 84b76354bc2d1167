//! Analysis of a sizes study, for all exporters.

use std::collections::HashSet;

use super::choice::Choices;
use super::compare::{StacksCompared, findings as compared};
use super::findings::{Headline, answer, findings, headlines};
use super::lines::SizesLines;
use crate::findings::Finding;
use crate::load::gathered::MergedCell;
use crate::load::{LabResults, Work};

/// A sizes study with everything derived from its results.
#[derive(Debug)]
pub(crate) struct SizesAnalysis<'r> {
    pub(super) results: &'r LabResults,
    /// Cells of our own pair and of bare sockets, in the order of measuring.
    pub(super) own: Vec<MergedCell<'r>>,
    pub(super) lines: SizesLines<'r>,
    /// Recommended calls and transports. Empty in a comparison, whose rounds hold only one kind of call.
    pub(super) choices: Choices,
    /// Comparison with other pairs, if there are any.
    pub(super) comparison: Option<StacksCompared<'r>>,
    /// Answer in a sentence; `None` if nothing can be claimed.
    pub(super) answer: Option<String>,
    /// Headline figures of our own pair.
    pub(super) headlines: Vec<Headline>,
    pub(super) findings: Vec<Finding>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

/// Returns whether a study has several calls or transports, even without a valid window.
fn offers_choice(own: &[MergedCell<'_>]) -> bool {
    let calls = own.iter().filter(|cell| matches!(cell.point.work, Work::Call(_)));
    calls.map(|cell| (cell.kind(), cell.point.transport)).collect::<HashSet<_>>().len() > 1
}

impl<'r> SizesAnalysis<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let (reference, all) = (results.reference(), results.gather_cells());
        let is_own = |cell: &&MergedCell<'_>| cell.pair.is_none_or(|pair| *pair == reference);
        let own: Vec<MergedCell<'r>> = all.iter().filter(is_own).cloned().collect();
        let lines = SizesLines::of(results, &own);
        let sure = lines.with_enough_windows();
        let comparison = results.is_comparison().then(|| StacksCompared::of(reference, &all, &lines));
        let choices = if comparison.is_some() { Choices::default() } else { Choices::of(&lines) };
        let (answer, is_conclusive) = match &comparison {
            Some(comparison) => (compared::answer(comparison), comparison.is_conclusive()),
            None => (answer(&sure), choices.is_conclusive() || !offers_choice(&own)),
        };
        let unanswered = results.unanswered(answer.is_some() && is_conclusive);
        // Choices that are inconclusive because of disturbed windows are covered by the `unanswered` text.
        let choices = if unanswered.is_some() && !is_conclusive { Choices::default() } else { choices };
        // With too few windows left, the best of them may be misleading.
        let (headlines, findings) = match unanswered {
            Some(_) => (Vec::new(), Vec::new()),
            None => (headlines(&sure), findings(&sure, &choices)),
        };
        Self { results, own, lines, choices, comparison, answer, headlines, findings, unanswered }
    }

    /// Returns the comparison if it is conclusive.
    pub(super) fn conclusive(&self) -> Option<&StacksCompared<'r>> {
        self.comparison.as_ref().filter(|_| self.unanswered.is_none())
    }
}
