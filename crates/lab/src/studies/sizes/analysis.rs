//! A study of sizes, analysed: what every exporter writes down.

use std::collections::HashSet;

use super::choice::Choices;
use super::compare::{StacksCompared, findings as compared};
use super::findings::{Headline, answer, findings, headlines};
use super::lines::SizesLines;
use crate::findings::Finding;
use crate::load::gathered::Windows;
use crate::load::{LabResults, Work};

/// What its results say.
#[derive(Debug)]
pub(crate) struct SizesAnalysis<'r> {
    pub(super) results: &'r LabResults,
    /// The cells of our own pair and of the bare sockets, in the order of measuring.
    pub(super) own: Vec<Windows<'r>>,
    pub(super) lines: SizesLines<'r>,
    /// Which call and which transport to use; empty where stacks are compared, because a round of that holds one call.
    pub(super) choices: Choices,
    /// With the other pairs, where there are any.
    pub(super) comparison: Option<StacksCompared<'r>>,
    /// The study in a sentence; `None` where nothing can be claimed.
    pub(super) answer: Option<String>,
    /// Figures that are worth a glance, of our own pair.
    pub(super) headlines: Vec<Headline>,
    pub(super) findings: Vec<Finding>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

/// Whether a study has several calls or transports, also where no window of them is valid.
fn offers_choice(own: &[Windows<'_>]) -> bool {
    let calls = own.iter().filter(|cell| matches!(cell.point.work, Work::Call(_)));
    calls.map(|cell| (cell.kind(), cell.point.transport)).collect::<HashSet<_>>().len() > 1
}

impl<'r> SizesAnalysis<'r> {
    pub(crate) fn of(results: &'r LabResults) -> Self {
        let (reference, all) = (results.reference(), results.gathered());
        let is_own = |cell: &&Windows<'_>| cell.pair.is_none_or(|pair| *pair == reference);
        let own: Vec<Windows<'r>> = all.iter().filter(is_own).cloned().collect();
        let lines = SizesLines::of(results, &own);
        let sure = lines.sure();
        let comparison = results.is_comparison().then(|| StacksCompared::of(reference, &all, &lines));
        let choices = if comparison.is_some() { Choices::default() } else { Choices::of(&lines) };
        let (answer, is_told) = match &comparison {
            Some(comparison) => (compared::answer(comparison), comparison.is_told()),
            None => (answer(&sure), choices.is_told() || !offers_choice(&own)),
        };
        let unanswered = results.unanswered(answer.is_some() && is_told);
        // What tells nothing because of disturbed windows is said in that sentence.
        let choices = if unanswered.is_some() && !is_told { Choices::default() } else { choices };
        // The best of the windows that are left may be none of the best.
        let (headlines, findings) = match unanswered {
            Some(_) => (Vec::new(), Vec::new()),
            None => (headlines(&sure), findings(&sure, &choices)),
        };
        Self { results, own, lines, choices, comparison, answer, headlines, findings, unanswered }
    }

    /// The comparison, if it tells anything.
    pub(super) fn told(&self) -> Option<&StacksCompared<'r>> {
        self.comparison.as_ref().filter(|_| self.unanswered.is_none())
    }
}
