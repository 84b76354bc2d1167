//! Analysis of a JSON study, for all exporters.

use super::cells::Cells;
use super::doubts::doubts;
use super::question::Question;
use super::questions::questions;
use super::results::JsonResults;
use crate::findings::Doubt;

/// A JSON study with everything derived from its results.
#[derive(Debug)]
pub(crate) struct JsonAnalysis<'r> {
    pub(super) results: &'r JsonResults,
    pub(super) cells: Cells,
    /// Headline; `None` if nothing was measured.
    pub(super) answer: Option<String>,
    pub(super) questions: Vec<Question>,
    pub(super) doubts: Vec<Doubt>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

impl<'r> JsonAnalysis<'r> {
    /// Returns all questions with an answer, in the order of the page.
    pub(crate) fn questions(&self) -> &[Question] {
        &self.questions
    }

    pub(crate) fn of(results: &'r JsonResults) -> Self {
        let cells = Cells::of(results);
        let answer = super::answer::answer(results, &cells);
        let is_conclusive = answer.as_ref().is_some_and(|answer| answer.is_conclusive);
        let unanswered = results.unanswered(is_conclusive);
        let is_empty = results.disturbance().is_some_and(|it| !is_conclusive && it.invalid == it.windows);
        Self {
            answer: answer.filter(|_| unanswered.is_none()).map(|answer| answer.text),
            questions: if is_empty { Vec::new() } else { questions(results, &cells) },
            unanswered,
            doubts: doubts(results, &cells),
            results,
            cells,
        }
    }
}
