//! The study of connections: what a server and a client cost as the number of connections grows, beside the bare echo
//! of as many.
//!
//! Every server has the same load, by [the bare client](thalweg_load::bare); each window has a server process of its
//! own, so that what it holds is of that window's connections.

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

/// What the study says, in all formats.
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
    report.written()
}

#[cfg(test)]
mod tests;
