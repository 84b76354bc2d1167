//! Codec study: time and bytes of converting objects to bytes and back, by codec and message.
//!
//! This module plans windows, collects results and reports them. A separate [program](CodecProgram) has the codecs and
//! converts.

mod analyse;
mod analysis;
mod condensed;
mod csv;
mod doubts;
mod execute;
mod findings;
pub(crate) mod line;
mod page;
mod peers;
mod plan;
mod program;
mod results;
mod span;
pub(crate) mod tables;
mod terminal;
mod window;

use crate::report::Report;
use crate::report::page::StudyReport;

pub(crate) use analysis::CodecAnalysis;

pub use execute::CodecExecutor;
pub use line::WARM_UPS;
pub use plan::{CodecOptions, ExtraMeasurements, conversions, plan};
pub use program::{CodecProgram, NoCodecs, Origin, Selection};
pub use results::{CodecResults, CodecSettings, CodecTables};

/// Returns the study's report in all formats.
pub(crate) fn report(study: &CodecAnalysis<'_>) -> Report {
    let CodecAnalysis { results, figures, answer, doubts, unanswered, .. } = study;
    let report = StudyReport {
        origin: results.origin(&results.settings.arguments),
        title: "Codec study",
        name: "Codec study",
        answer: answer.clone(),
        unanswered: unanswered.clone(),
        lede: page::lede(results),
        cards: page::cards(results, figures),
        doubts: doubts.clone(),
        sections: page::sections(study),
        method: page::method(results),
        facts: page::facts(results),
        csv: csv::csv(results, figures),
        text: terminal::text(study),
        condensed: Some(condensed::condensed(study)),
    };
    report.into_report()
}
