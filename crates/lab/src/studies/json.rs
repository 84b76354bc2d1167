//! The study of gRPC against a JSON API: the same work by either, at several servers, each call divided into its
//! stages.
//!
//! A [`Way`] is a server and a protocol, a case a message and what its calls go through. The client is ours throughout:
//! what differs is the server, or the protocol.

mod analysis;
mod answer;
mod case;
mod cell_pair;
mod cells;
mod condensed;
mod doubts;
mod execute;
mod noise;
mod page;
mod plan;
mod question;
mod questions;
mod results;
mod table;
mod terminal;
mod way;
mod window;

use crate::findings::Doubt;
use crate::report::Report;

pub(crate) use analysis::JsonAnalysis;
pub(crate) use case::Case;
pub(crate) use cells::{Cells, Cold, Latencies, ServerStart, WayCell};
pub use execute::JsonExecutor;
pub use plan::{Budget, JsonOptions, PUBLISHED, plan};
pub use results::{JsonResults, JsonSettings, OwnInfo};
pub use way::{Way, our_ways, ways_of};
pub(crate) use window::{Purpose, WindowResult};

impl Report for JsonAnalysis<'_> {
    fn csv(&self) -> String {
        table::csv(&self.results.windows)
    }

    fn page(&self) -> String {
        page::page(self)
    }

    fn text(&self) -> String {
        terminal::text(self)
    }

    fn condensed(&self) -> Option<String> {
        Some(condensed::condensed(self))
    }

    fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    fn unanswered(&self) -> Option<&str> {
        self.unanswered.as_deref()
    }
}
