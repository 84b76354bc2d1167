//! The study of channels: what a client moves over one connection and over several, by calls in flight and by delay.

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

use crate::findings::Doubt;
use crate::report::Report;

pub(crate) use analysis::ChannelsAnalysis;

pub use contenders::{Contender, contenders};
pub use plan::{ChannelsOptions, Grid, plan};

impl Report for ChannelsAnalysis<'_> {
    fn csv(&self) -> String {
        table::table(&self.channels, &self.verdicts).csv(&self.results.points)
    }

    fn page(&self) -> String {
        page::page(self)
    }

    fn text(&self) -> String {
        terminal::text(self)
    }

    fn condensed(&self) -> Option<String> {
        Some(condensed::condensed(self.results, &self.channels, &self.verdicts))
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
