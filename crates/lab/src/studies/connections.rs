//! Connections study: cost of server and client as the number of connections grows, compared with a bare echo of as
//! many.
//!
//! [The bare client](thalweg_load::bare) puts the same load on every server. Each window has its own server process,
//! so its memory belongs to that window's connections.

mod analyse;
mod analysis;
mod columns;
mod condensed;
mod findings;
mod page;
mod plan;
mod reach;
mod share;
mod table;
mod terminal;

use crate::load::report::of_calls;
use crate::report::Report;
use crate::report::page::StudyReport;

pub(crate) use analysis::ConnectionsAnalysis;

pub use plan::{ConnectionsOptions, plan};
pub use reach::{Many, Reach};
pub use share::Share;

/// Returns the study's report in all formats.
pub(crate) fn report(study: &ConnectionsAnalysis<'_>) -> Report {
    let ConnectionsAnalysis { results, cells, answer, unanswered, .. } = study;
    let report = StudyReport {
        answer: answer.clone(),
        unanswered: unanswered.clone(),
        cards: page::cards(cells, unanswered.is_some()),
        sections: page::sections(study),
        method: page::method(results),
        csv: table::table(cells).table(&results.points).csv(),
        text: terminal::text(study),
        condensed: Some(condensed::condensed(study)),
        ..of_calls(results, "Connections study")
    };
    report.into_report()
}

#[cfg(test)]
mod tests;
