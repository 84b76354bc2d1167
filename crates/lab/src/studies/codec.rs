//! The codec study: what it costs to turn objects into bytes and back, in time and in bytes, by codec and message.
//!
//! Here is everything but the codecs: which windows there are, what was found, and how it is shown. What converts is a
//! `Bench`: the [program](CodecProgram) that has the codecs.

mod analyse;
mod analysis;
mod bench;
mod condensed;
mod csv;
mod execute;
mod findings;
pub(crate) mod line;
mod page;
mod peers;
mod plan;
mod program;
mod results;
pub(crate) mod tables;
mod terminal;
mod window;

use crate::report::Report;
use crate::study::Study;

pub(crate) use crate::findings::Doubt;
pub(crate) use analysis::CodecAnalysis;

pub use execute::CodecExecutor;
pub use line::WARM_UPS;
pub use plan::{Besides, Options, calls, conversions, plan};
pub use program::{CodecProgram, NoCodecs, Origin, Selection};
pub(crate) use results::CODEC_SCHEMA;
pub use results::{CodecResults, Settings, Setup};
pub(crate) use window::{Found, Window};

/// The study.
#[derive(Clone, Copy, Debug)]
pub enum Codec {}

impl Study for Codec {
    type Window = Window;
    type Found = Found;
    type Results = CodecResults;
    type Analysis<'r> = CodecAnalysis<'r>;

    fn analyse(results: &CodecResults) -> CodecAnalysis<'_> {
        CodecAnalysis::of(results)
    }
}

impl CodecAnalysis<'_> {
    /// What documents quote of it, as small JSON.
    pub fn condensed(&self) -> String {
        condensed::condensed(self)
    }
}

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

    fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    fn unanswered(&self) -> Option<&str> {
        self.unanswered.as_deref()
    }
}
