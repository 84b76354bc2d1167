//! A line for each step of each line.

use std::fmt::Write;

use crate::codec::analyse::{LineFigures, StepFigure, analyse};
use crate::codec::results::CodecResults;

const HEAD: &str = "data,codec,format,dynamic,operation,conversions,ns_per_conversion,ns_min,ns_max,bytes,gzip_bytes,zstd_bytes,\
                    megabytes_per_s,allocations,allocated_bytes,instructions,of_peer\n";

/// The figures as a table with units in its columns’ names. What is not known is empty.
pub fn csv(results: &CodecResults) -> String {
    let mut text = HEAD.to_owned();
    for line in &analyse(results).lines {
        let alone = StepFigure { conversions: 0, ns: line.ns, min: line.ns, max: line.ns };
        let steps = if line.steps.is_empty() { std::slice::from_ref(&alone) } else { &line.steps };
        for step in steps {
            row(&mut text, results, line, step);
        }
    }
    text
}

fn row(text: &mut String, results: &CodecResults, line: &LineFigures, step: &StepFigure) {
    let size = results.size(&line.line.data, &line.line.codec);
    let optional = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
    let columns = [
        quoted(&line.line.data),
        quoted(&line.line.codec),
        line.format.to_string(),
        line.dynamic.to_string(),
        line.line.operation.to_string(),
        if step.conversions == 0 { String::new() } else { step.conversions.to_string() },
        format!("{:.3}", step.ns),
        format!("{:.3}", step.min),
        format!("{:.3}", step.max),
        format!("{:.1}", line.bytes),
        optional(size.map(|size| size.gzip)),
        optional(size.map(|size| size.zstd)),
        format!("{:.2}", line.bytes * 1e3 / step.ns),
        optional(line.allocations.map(|it| it.blocks)),
        optional(line.allocations.map(|it| it.bytes)),
        optional(line.instructions),
        line.of_peer.to_string(),
    ];
    let _ = writeln!(text, "{}", columns.join(","));
}

/// A name may be a user’s own.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}
