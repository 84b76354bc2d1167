//! All figures of a codec study.

use maud::{Markup, html};
use thalweg_measure::figures::{count, percent, throughput, time};
use thalweg_measure::page::parts::{field, sorting_head};

use crate::studies::codec::analyse::{Analysis, LineFigures};
use crate::studies::codec::results::CodecResults;

const COLUMNS: [&str; 15] = [
    "Message",
    "Codec",
    "Operation",
    "Format",
    "Decoded",
    "Time",
    "Rounds within",
    "Per second",
    "Bytes/s",
    "Bytes",
    "gzip",
    "zstd",
    "Allocations",
    "Instructions",
    "Conversions",
];

pub(super) fn table(results: &CodecResults, analysis: &Analysis) -> Markup {
    html! {
        table {
            thead {
                tr {
                    @for name in COLUMNS { (sorting_head(name, None)) }
                }
            }
            tbody {
                @for line in &analysis.lines { (row(results, line)) }
            }
        }
    }
}

fn row(results: &CodecResults, line: &LineFigures) -> Markup {
    let size = results.size(&line.line.data, &line.line.codec);
    let conversions = Some(line.conversions() as f64).filter(|&conversions| conversions > 0.0);
    let whole = |bytes: f64| format!("{bytes:.0}");
    html! {
        tr {
            th scope="row" { (line.line.data) }
            td.words { (line.line.codec) }
            td.words { (line.line.operation) }
            td.words { (line.format) }
            td.words { @if let Some(decodes) = line.decodes { (decodes) } }
            (field(Some(line.ns), time))
            (field(Some(line.spread), percent))
            (field(Some(1e9 / line.ns), |rate| format!("{}/s", count(rate))))
            (field(Some(line.bytes_per_s()), throughput))
            (field(Some(line.bytes), whole))
            (field(size.map(|size| size.gzip), whole))
            (field(size.map(|size| size.zstd), whole))
            (field(line.allocations.map(|it| it.blocks), count))
            (field(line.instructions, count))
            (field(conversions, count))
        }
    }
}
