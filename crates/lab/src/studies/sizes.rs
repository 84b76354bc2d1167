//! The study of sizes: all kinds of call over message sizes and transports, alone or against other stacks.

mod analysis;
mod choice;
mod compare;
mod condensed;
mod findings;
mod lines;
mod page;
mod plan;
mod terminal;

use crate::findings::Doubt;
use crate::load::{Kind, table};
use crate::report::Report;

pub(crate) use analysis::SizesAnalysis;

pub use plan::{SizesOptions, plan};

impl Report for SizesAnalysis<'_> {
    fn csv(&self) -> String {
        let most = |window: &crate::load::PointResult| {
            let point = &window.point;
            let kind = Kind::of(point);
            Some(self.lines.reference_of(kind, point.transport)?.at(point.size_bytes)?.rate_per_s)
        };
        table::windows(most).csv(&self.results.points)
    }

    fn page(&self) -> String {
        page::page(self)
    }

    fn text(&self) -> String {
        match &self.comparison {
            Some(_) if self.unanswered.is_some() => terminal::left_out(&self.results.left_out),
            Some(comparison) => terminal::tables(comparison, &self.results.left_out),
            None => terminal::alone(&self.lines, &self.choices, &self.findings),
        }
    }

    fn unanswered(&self) -> Option<&str> {
        self.unanswered.as_deref()
    }

    fn condensed(&self) -> Option<String> {
        self.comparison.as_ref().map(|comparison| condensed::condensed(self.results, comparison))
    }

    fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }
}
