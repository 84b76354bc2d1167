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

use crate::findings::Doubt;
use crate::report::Report;

pub(crate) use analysis::ConnectionsAnalysis;

pub use plan::{ConnectionsOptions, plan};
pub use reach::{Many, Reach};
pub use share::Share;

impl Report for ConnectionsAnalysis<'_> {
    fn csv(&self) -> String {
        table::table(&self.cells).csv(&self.results.points)
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

#[cfg(test)]
mod tests;
