//! What is written of any study of calls.

use maud::Markup;
use thalweg_measure::page::section::Section;

use super::doubts::doubts;
use super::facts;
use super::results::LabResults;
use crate::findings::Doubt;
use crate::report::WrittenReport;
use crate::report::page::StudyPage;

/// What a study of calls says, in all formats.
pub(crate) struct CallsReport<'r> {
    /// What it says it of.
    pub(crate) results: &'r LabResults,
    /// Title of the page.
    pub(crate) title: String,
    /// The study in a sentence; `None` where nothing can be claimed.
    pub(crate) answer: Option<String>,
    /// Why there is no answer, if too many windows are not valid.
    pub(crate) unanswered: Option<String>,
    /// Doubts before those of any study of calls.
    pub(crate) doubts: Vec<Doubt>,
    /// Cards of the main figures.
    pub(crate) cards: Markup,
    /// The page's sections.
    pub(crate) sections: Vec<Section>,
    /// How it was measured, in sentences.
    pub(crate) method: Vec<String>,
    /// A line for each window.
    pub(crate) csv: String,
    /// Tables and findings for a terminal.
    pub(crate) text: String,
    /// What documents quote, as small JSON.
    pub(crate) condensed: Option<String>,
}

impl CallsReport<'_> {
    pub(crate) fn written(mut self) -> WrittenReport {
        self.doubts.extend(doubts(self.results));
        let page = StudyPage {
            title: &self.title,
            name: &self.title,
            started: &self.results.started,
            ended: &self.results.ended,
            answer: self.unanswered.as_ref().or(self.answer.as_ref()),
            lede: facts::lede(self.results),
            cards: self.cards,
            doubts: self.doubts.iter().map(ToString::to_string).collect(),
            sections: self.sections,
            method: self.method,
            facts: facts::facts(self.results),
            version: &self.results.versions.thalweg,
        };
        WrittenReport {
            page: page.html(),
            csv: self.csv,
            text: self.text,
            condensed: self.condensed,
            doubts: self.doubts,
            unanswered: self.unanswered,
        }
    }
}
