//! The table of a codec study: a line for each step of each line.

use super::analyse::{CodecFigures, LineFigures, StepFigure};
use super::line::Decodes;
use super::results::CodecResults;
use super::tables::MessageSize;
use crate::report::table::Table;

/// A line of the study at one number of conversions.
struct Row<'a> {
    figures: &'a LineFigures,
    step: StepFigure,
    size: Option<&'a MessageSize>,
}

/// The figures as a table. What is not known is empty.
pub(super) fn csv(results: &CodecResults, analysis: &CodecFigures) -> String {
    let rows = analysis.lines.iter().flat_map(|figures| {
        let size = results.size(&figures.line.data, &figures.line.codec);
        steps(figures).into_iter().map(move |step| Row { figures, step, size })
    });
    table().csv(rows)
}

/// A peer has no steps: its figure stands alone, of an unknown number of conversions.
fn steps(figures: &LineFigures) -> Vec<StepFigure> {
    if figures.steps.is_empty() {
        let ns = figures.ns;
        return vec![StepFigure { conversions: 0, ns, min: ns, max: ns }];
    }
    figures.steps.clone()
}

fn table<'a>() -> Table<'a, Row<'a>> {
    let optional = |value: Option<f64>| value.map(|value| format!("{value:.2}"));
    let mut table: Table<'a, Row<'a>> = Table::new();
    table.column("data", |it| Some(it.figures.line.data.clone()));
    table.column("codec", |it| Some(it.figures.line.codec.clone()));
    table.column("format", |it| Some(it.figures.format.to_string()));
    table.column("dynamic", |it| Some(it.figures.dynamic.to_string()));
    table.column("borrowed", |it| it.figures.decodes.map(|it| (it == Decodes::Borrowed).to_string()));
    table.column("operation", |it| Some(it.figures.line.operation.to_string()));
    table.column("conversions", |it| (it.step.conversions > 0).then(|| it.step.conversions.to_string()));
    table.column("ns_per_conversion", |it| Some(format!("{:.3}", it.step.ns)));
    table.column("ns_min", |it| Some(format!("{:.3}", it.step.min)));
    table.column("ns_max", |it| Some(format!("{:.3}", it.step.max)));
    table.column("bytes", |it| Some(format!("{:.1}", it.figures.bytes)));
    table.column("gzip_bytes", move |it| optional(it.size.map(|size| size.gzip)));
    table.column("zstd_bytes", move |it| optional(it.size.map(|size| size.zstd)));
    table.column("megabytes_per_s", |it| Some(format!("{:.2}", it.figures.bytes * 1e3 / it.step.ns)));
    table.column("allocations", move |it| optional(it.figures.allocations.map(|it| it.blocks)));
    table.column("allocated_bytes", move |it| optional(it.figures.allocations.map(|it| it.bytes)));
    table.column("instructions", move |it| optional(it.figures.instructions));
    table.column("of_peer", |it| Some(it.figures.of_peer.to_string()));
    table
}
