//! Analysis of a codec study, for all exporters.

use super::analyse::{CodecFigures, analyse};
use super::doubts::doubts;
use super::findings::Findings;
use super::results::CodecResults;
use crate::findings::{Doubt, Finding};

/// A codec study with everything derived from its results.
#[derive(Debug)]
pub(crate) struct CodecAnalysis<'r> {
    pub(super) results: &'r CodecResults,
    /// The figures of all lines.
    pub(crate) figures: CodecFigures,
    /// Answer in a sentence.
    pub(crate) answer: Option<String>,
    /// Findings, most important first.
    pub(crate) findings: Vec<Finding>,
    /// Doubts about the figures.
    pub(crate) doubts: Vec<Doubt>,
    /// Why there is no answer, if too many windows are not valid.
    pub(super) unanswered: Option<String>,
}

impl<'r> CodecAnalysis<'r> {
    pub(crate) fn of(results: &'r CodecResults) -> Self {
        let figures = analyse(results);
        let all = Findings::of(results, &figures);
        let (answer, findings) = (all.answer(), all.all());
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
