//! All figures of a codec study.

use crate::codec::analyse::{Analysis, LineFigures};
use crate::codec::results::CodecResults;
use crate::figures::{bound, count, percent, throughput, time};
use crate::report::{concat, escaped, short};

const COLUMNS: [&str; 14] = [
    "Message",
    "Codec",
    "Operation",
    "Format",
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

pub(super) fn table(results: &CodecResults, analysis: &Analysis) -> String {
    let heads = COLUMNS.map(|name| format!(r#"<th scope="col"><button type="button">{name}</button></th>"#));
    let rows = concat(analysis.lines.iter().map(|line| row(results, line)));
    format!("<table><thead><tr>{}</tr></thead><tbody>{rows}</tbody></table>", heads.concat())
}

fn row(results: &CodecResults, line: &LineFigures) -> String {
    let size = results.size(&line.line.data, &line.line.codec);
    let conversions = Some(line.conversions() as f64).filter(|&conversions| conversions > 0.0);
    [
        format!(r#"<tr><th scope="row">{}</th>"#, escaped(&line.line.data)),
        words(&line.line.codec),
        words(&line.line.operation.to_string()),
        words(&line.format.to_string()),
        field(Some(line.ns), time),
        field(Some(line.spread), percent),
        field(Some(1e9 / line.ns), |rate| format!("{}/s", count(rate))),
        field(Some(line.bytes_per_s()), throughput),
        field(Some(line.bytes), |bytes| format!("{bytes:.0}")),
        field(size.map(|size| size.gzip), |bytes| format!("{bytes:.0}")),
        field(size.map(|size| size.zstd), |bytes| format!("{bytes:.0}")),
        field(line.allocations.map(|it| it.blocks), count),
        field(line.instructions, count),
        field(conversions, count),
        "</tr>".to_owned(),
    ]
    .concat()
}

fn words(text: &str) -> String {
    format!(r#"<td class="words">{}</td>"#, escaped(text))
}

/// It sorts by its value, whatever unit it is shown in.
fn field(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    match value {
        Some(value) => format!(r#"<td data-v="{}">{}</td>"#, short(value), escaped(&bound(&show(value)))),
        None => r#"<td data-v="">–</td>"#.to_owned(),
    }
}
