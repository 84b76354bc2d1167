//! The codec study: what it costs to turn objects into bytes and back, in time and in bytes, by codec and message.
//!
//! Here is everything but the codecs: which windows there are, what was found, and how it is shown. What converts is
//! the [program](CodecProgram) that has the codecs.

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

pub(crate) use crate::findings::Doubt;
pub(crate) use analysis::CodecAnalysis;

pub use execute::CodecExecutor;
pub use line::WARM_UPS;
pub use plan::{Besides, CodecOptions, conversions, plan};
pub use program::{CodecProgram, NoCodecs, Origin, Selection};
pub use results::{CodecResults, CodecSettings, CodecTables};

impl Report for CodecAnalysis<'_> {
    fn csv(&self) -> String {
        csv::csv(self.results, &self.figures)
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
