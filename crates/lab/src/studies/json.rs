//! JSON study: gRPC against a JSON API doing the same work at several servers, with each call divided into stages.
//!
//! An [`Endpoint`] is a server and a protocol. A case is a message and the conditions of its calls. The client is
//! always ours, so only server and protocol differ.

mod analysis;
mod answer;
mod case;
mod cell_pair;
mod cells;
mod condensed;
mod doubts;
mod endpoint;
mod execute;
mod noise;
mod page;
mod plan;
mod question;
mod questions;
mod results;
mod table;
mod terminal;
mod window;

use crate::report::Report;
use crate::report::page::StudyReport;

pub(crate) use analysis::JsonAnalysis;
pub(crate) use case::Case;
pub(crate) use cells::{Cells, Cold, EndpointCell, Latencies, ServerStart};
pub use endpoint::{Endpoint, endpoints_of, our_endpoints};
pub use plan::{Budget, JsonOptions, PUBLISHED, plan};
pub use results::{JsonResults, JsonSettings, OwnInfo};
pub(crate) use window::{Purpose, WindowResult};

/// Returns the study's report in all formats.
pub(crate) fn report(study: &JsonAnalysis<'_>) -> Report {
    let JsonAnalysis { results, answer, doubts, unanswered, .. } = study;
    let report = StudyReport {
        origin: results.origin(&results.settings.arguments),
        title: "JSON study",
        name: "gRPC against a JSON API",
        answer: answer.clone(),
        unanswered: unanswered.clone(),
        lede: page::lede(results),
        cards: page::cards(study),
        doubts: doubts.clone(),
        sections: page::sections(study),
        method: page::method(results),
        facts: vec![("Windows", format!("{} of {}", results.windows.len(), results.planned))],
        csv: table::csv(&results.windows),
        text: terminal::text(study),
        condensed: Some(condensed::condensed(study)),
    };
    report.into_report()
}
