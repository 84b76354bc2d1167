//! Report parts common to all studies of calls.

use maud::html;

use super::doubts::doubts;
use super::facts::lede;
use super::results::LabResults;
use crate::report::page::StudyReport;

/// Returns the report of any study of calls, without the study's own sections.
pub(crate) fn of_calls<'r>(results: &'r LabResults, title: &'static str) -> StudyReport<'r> {
    StudyReport {
        origin: results.origin(&results.settings.arguments),
        title,
        name: title,
        answer: None,
        unanswered: None,
        lede: lede(results),
        cards: html! {},
        doubts: doubts(results),
        sections: Vec::new(),
        method: Vec::new(),
        facts: vec![("Windows", format!("{} of {}", results.points.len(), results.planned))],
        csv: String::new(),
        text: String::new(),
        condensed: None,
    }
}
