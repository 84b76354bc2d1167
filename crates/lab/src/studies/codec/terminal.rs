//! A table for each operation, one of bytes, the findings, and the doubts.

use thalweg_measure::figures::{count, time};
use thalweg_measure::text::{aligned, wrapped};

use super::analyse::Analysis;
use super::analysis::CodecAnalysis;
use super::line::{Decodes, Operation};
use super::results::CodecResults;

const NOTHING: &str = "-";
/// Below the tables of times.
const BORROWED: &str = "&: borrowed; strings stay in the bytes, and each field is read within the time\n\n";

/// Tables of the time of a conversion and of bytes, and what was found.
pub(super) fn text(study: &CodecAnalysis<'_>) -> String {
    let CodecAnalysis { results, figures, findings, .. } = study;
    let mut text = String::new();
    for operation in results.operations() {
        text += &times(results, figures, operation);
        text.push('\n');
    }
    text += BORROWED;
    text += &sizes(results);
    text.push('\n');
    for finding in findings {
        text += &wrapped(&format!("{}: {}", finding.topic, finding.text));
    }
    text
}

/// Codecs down, messages across.
fn times(results: &CodecResults, analysis: &Analysis, operation: Operation) -> String {
    let codecs = results.codecs.iter().chain(results.peers.iter().flat_map(|peer| &peer.codecs));
    let head =
        std::iter::once(operation.to_string()).chain(results.data.iter().map(|data| data.name.clone()));
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    for codec in codecs {
        let cell = |data: &str| {
            analysis.line(data, &codec.name, operation).map_or(NOTHING.to_owned(), |line| time(line.ns))
        };
        let row: Vec<String> = results.data.iter().map(|data| cell(&data.name)).collect();
        if row.iter().any(|cell| cell != NOTHING) {
            let is_borrowed = operation.decodes() && codec.decodes == Some(Decodes::Borrowed);
            let name = if is_borrowed { format!("&{}", codec.name) } else { codec.name.clone() };
            rows.push(std::iter::once(name).chain(row).collect());
        }
    }
    aligned(&rows)
}

/// Raw, gzip and zstd of each codec's bytes.
fn sizes(results: &CodecResults) -> String {
    let head = std::iter::once("bytes, gzip, zstd".to_owned());
    let mut rows = vec![head.chain(results.data.iter().map(|data| data.name.clone())).collect::<Vec<_>>()];
    for codec in &results.codecs {
        let cell = |data: &str| {
            let shown = |bytes: f64| if bytes < 9999.5 { format!("{bytes:.0}") } else { count(bytes) };
            results.size(data, &codec.name).map_or(NOTHING.to_owned(), |size| {
                format!("{} {} {}", shown(size.raw), shown(size.gzip), shown(size.zstd))
            })
        };
        let row: Vec<String> = results.data.iter().map(|data| cell(&data.name)).collect();
        if row.iter().any(|cell| cell != NOTHING) {
            rows.push(std::iter::once(codec.name.clone()).chain(row).collect());
        }
    }
    aligned(&rows)
}
