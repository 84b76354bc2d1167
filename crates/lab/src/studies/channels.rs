//! Channels study: throughput over one connection and over several, by calls in flight and by delay.

mod analyse;
mod analysis;
mod answer;
mod columns;
mod condensed;
mod contenders;
mod findings;
mod limit;
mod numbers;
mod page;
mod plan;
mod table;
mod terminal;

use crate::load::report::of_calls;
use crate::report::Report;
use crate::report::page::StudyReport;

pub(crate) use analysis::ChannelsAnalysis;

pub use contenders::{Contender, contenders};
pub use plan::{ChannelsOptions, Grid, plan};

/// Returns the study's report in all formats.
pub(crate) fn report(study: &ChannelsAnalysis<'_>) -> Report {
    let ChannelsAnalysis { results, channels, verdicts, unanswered } = study;
    let report = StudyReport {
        answer: answer::answer(verdicts, &results.settings),
        unanswered: unanswered.clone(),
        cards: page::cards(verdicts),
        sections: page::sections(study),
        method: page::method(results),
        csv: table::table(channels, verdicts).table(&results.points).csv(),
        text: terminal::text(study),
        condensed: Some(condensed::condensed(results, channels, verdicts)),
        ..of_calls(results, "Channels study")
    };
    report.into_report()
}

#[cfg(test)]
mod tests;
