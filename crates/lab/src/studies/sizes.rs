//! Sizes study: all kinds of call over message sizes and transports, alone or against other stacks.

mod analysis;
mod choice;
mod compare;
mod condensed;
mod findings;
mod lines;
mod page;
mod plan;
mod terminal;

use crate::load::gathered::MergedCell;
use crate::load::report::of_calls;
use crate::load::{PointResult, table};
use crate::report::Report;
use crate::report::page::StudyReport;

pub(crate) use analysis::SizesAnalysis;

pub use plan::{SizesOptions, plan};

/// Returns the study's report in all formats.
pub(crate) fn report(study: &SizesAnalysis<'_>) -> Report {
    let results = study.results;
    let socket =
        |window: &PointResult| study.lines.socket_reference(&window.point).map(MergedCell::rate_per_s);
    let mut report = StudyReport {
        answer: study.answer.clone(),
        unanswered: study.unanswered.clone(),
        cards: page::cards(study),
        sections: page::sections(study),
        method: page::method(results),
        csv: table::windows(socket).table(&results.points).csv(),
        text: terminal::text(study),
        condensed: study.comparison.as_ref().map(|it| condensed::condensed(results, it)),
        ..of_calls(results, page::title(study))
    };
    report.doubts.splice(0..0, findings::noisy(&study.lines.noise));
    report.into_report()
}
