//! A codec study, analysed: what every exporter writes down.

use super::analyse::{CodecFigures, analyse};
use super::doubts::doubts;
use super::findings::Findings;
use super::results::CodecResults;
use crate::findings::{Doubt, Finding};

/// What its results say.
#[derive(Debug)]
pub(crate) struct CodecAnalysis<'r> {
    pub(super) results: &'r CodecResults,
    /// The figures of all lines.
    pub(crate) figures: CodecFigures,
    /// The study in a sentence.
    pub(crate) answer: Option<String>,
    /// What was found, most wanted first.
    pub(crate) findings: Vec<Finding>,
    /// What to know before the figures are used.
    pub(crate) doubts: Vec<Doubt>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

impl<'r> CodecAnalysis<'r> {
    pub(crate) fn of(results: &'r CodecResults) -> Self {
        let figures = analyse(results);
        let told = Findings::of(results, &figures);
        let (answer, findings) = (told.answer(), told.all());
        Self {
            results,
            unanswered: results.unanswered(answer.is_some()),
            answer,
            findings,
            doubts: doubts(results, &figures),
            figures,
        }
    }
}
