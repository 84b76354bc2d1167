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
use crate::load::{Found, LabResults, Window};
use crate::report::Report;
use crate::study::Study;

pub(crate) use analysis::ChannelsAnalysis;

pub use contenders::{Contender, contenders};
pub use plan::{ChannelsOptions, Grid, plan};

/// The study.
#[derive(Clone, Copy, Debug)]
pub enum Channels {}

impl Study for Channels {
    type Window = Window;
    type Found = Found;
    type Results = LabResults;
    type Analysis<'r> = ChannelsAnalysis<'r>;

    fn analyse(results: &LabResults) -> ChannelsAnalysis<'_> {
        ChannelsAnalysis::of(results)
    }
}

impl ChannelsAnalysis<'_> {
    /// What the study came to, as small JSON, for documents that quote it.
    pub fn condensed(&self) -> String {
        condensed::condensed(self.results, &self.channels, &self.verdicts)
    }
}

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

    fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    fn unanswered(&self) -> Option<&str> {
        self.unanswered.as_deref()
    }
}

#[cfg(test)]
mod tests;
