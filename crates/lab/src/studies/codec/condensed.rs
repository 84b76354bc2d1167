//! Condensed results of a codec study.

use serde_json::{Value, json};
use thalweg_measure::figures::short;

use super::analyse::{CallShare, CodecFigures, LineFigures};
use super::analysis::CodecAnalysis;
use super::tables::MessageSize;
use crate::load::condensed;

/// Returns the machine, codecs, median times of lines, message sizes, shares of calls, and findings.
pub(super) fn condensed(analysis: &CodecAnalysis<'_>) -> String {
    let CodecAnalysis { results, figures: CodecFigures { lines, noise, shares }, .. } = analysis;
    let body = json!({
        "rounds": results.settings.rounds,
        "codecs": results.all_codecs().collect::<Vec<_>>(),
        "data": results.data,
        "noise": noise.as_ref().map(|noise| json!({
            "doubles": noise.doubles, "typical": short(noise.typical), "most": short(noise.floor),
        })),
        "answer": analysis.answer,
        "findings": analysis.findings,
        "lines": lines.iter().map(line).collect::<Vec<_>>(),
        "sizes": results.sizes.iter().map(size).collect::<Vec<_>>(),
        "shares": shares.iter().map(share).collect::<Vec<_>>(),
    });
    condensed::text(results, &results.settings.arguments, body)
}

fn line(figures: &LineFigures) -> Value {
    json!({
        "data": figures.line.data,
        "codec": figures.line.codec,
        "operation": figures.line.operation,
        "format": figures.format,
        "decodes": figures.decodes,
        "of_peer": figures.of_peer,
        "conversions": figures.conversions(),
        "ns": short(figures.ns),
        "spread": short(figures.spread),
        "blocks": figures.allocations.map(|allocations| short(allocations.blocks)),
        "instructions": figures.instructions.map(f64::round),
    })
}

fn size(size: &MessageSize) -> Value {
    let bytes = |bytes: f64| bytes.round();
    json!({
        "data": size.data, "codec": size.codec,
        "raw": bytes(size.raw), "gzip": bytes(size.gzip), "zstd": bytes(size.zstd),
    })
}

fn share(share: &CallShare) -> Value {
    json!({
        "data": share.data, "codec": share.codec, "format": share.format, "in_flight": share.in_flight,
        "share": short(share.share()),
    })
}
