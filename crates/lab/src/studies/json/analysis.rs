//! A study of gRPC against a JSON API, analysed: what every exporter writes down.

use super::cells::Cells;
use super::doubts::doubts;
use super::question::Question;
use super::questions::questions;
use super::results::JsonResults;
use crate::findings::Doubt;

/// What its results say.
#[derive(Debug)]
pub struct JsonAnalysis<'r> {
    pub(super) results: &'r JsonResults,
    pub(super) cells: Cells,
    /// The first thing to know; `None` when nothing was measured.
    pub(super) answer: Option<String>,
    pub(super) questions: Vec<Question>,
    pub(super) doubts: Vec<Doubt>,
}

impl<'r> JsonAnalysis<'r> {
    /// All questions that have an answer, in the order of the page.
    pub(crate) fn questions(&self) -> &[Question] {
        &self.questions
    }

    pub(super) fn of(results: &'r JsonResults) -> Self {
        let cells = Cells::of(results);
        Self {
            answer: super::answer::answer(results, &cells),
            questions: questions(results, &cells),
            doubts: doubts(results, &cells),
            results,
            cells,
        }
    }
}
