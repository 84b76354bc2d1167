//! Table of a codec study, with one row for each step of each line.

use thalweg_measure::page::table::Columns;

use super::analyse::{CodecFigures, LineFigures, StepFigure};
use super::line::Decodes;
use super::results::CodecResults;
use super::tables::MessageSize;

/// A line at one number of conversions.
struct Row<'a> {
    figures: &'a LineFigures,
    step: StepFigure,
    size: Option<&'a MessageSize>,
}

/// Returns the table. Unknown values are empty.
pub(super) fn csv(results: &CodecResults, analysis: &CodecFigures) -> String {
    let rows = analysis.lines.iter().flat_map(|figures| {
        let size = results.size(&figures.line.data, &figures.line.codec);
        steps(figures).into_iter().map(move |step| Row { figures, step, size })
    });
    let optional = |value: Option<f64>| Some(format!("{:.2}", value?));
    Columns::<Row<'_>>::default()
        .plain("data", |it| Some(it.figures.line.data.clone()))
        .plain("codec", |it| Some(it.figures.line.codec.clone()))
        .plain("format", |it| Some(it.figures.format))
        .plain("dynamic", |it| Some(it.figures.dynamic))
        .plain("borrowed", |it| Some(it.figures.decodes? == Decodes::Borrowed))
        .plain("operation", |it| Some(it.figures.line.operation))
        .plain("conversions", |it| Some(it.step.conversions).filter(|&conversions| conversions > 0))
        .plain("ns_per_conversion", |it| Some(format!("{:.3}", it.step.ns)))
        .plain("ns_min", |it| Some(format!("{:.3}", it.step.min)))
        .plain("ns_max", |it| Some(format!("{:.3}", it.step.max)))
        .plain("bytes", |it| Some(format!("{:.1}", it.figures.bytes)))
        .plain("gzip_bytes", move |it| optional(it.size.map(|size| size.gzip)))
        .plain("zstd_bytes", move |it| optional(it.size.map(|size| size.zstd)))
        .plain("megabytes_per_s", |it| Some(format!("{:.2}", it.figures.bytes * 1e3 / it.step.ns)))
        .plain("allocations", move |it| optional(it.figures.allocations.map(|it| it.blocks)))
        .plain("allocated_bytes", move |it| optional(it.figures.allocations.map(|it| it.bytes)))
        .plain("instructions", move |it| optional(it.figures.instructions))
        .plain("of_peer", |it| Some(it.figures.of_peer))
        .table(rows)
        .csv()
}

/// Returns a line's steps. A peer has one figure, for an unknown number of conversions.
fn steps(figures: &LineFigures) -> Vec<StepFigure> {
    if figures.steps.is_empty() {
        let ns = figures.ns;
        return vec![StepFigure { conversions: 0, ns, min: ns, max: ns }];
    }
    figures.steps.clone()
}
