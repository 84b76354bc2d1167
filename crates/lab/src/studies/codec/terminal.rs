//! Terminal output of a codec study: a table for each operation, one of bytes, and the findings.

use thalweg_measure::figures::{count, time};
use thalweg_measure::page::table::{Columns, NONE, TableCell};

use super::analysis::CodecAnalysis;
use super::line::{Decodes, Operation};
use super::results::CodecResults;
use super::tables::CodecInfo;
use crate::report::terminal;

/// Note below the tables of times.
const BORROWED: &str = "&: borrowed; strings stay in the bytes, and each field is read within the time\n\n";

/// Returns the tables of conversion times and bytes, and the findings.
pub(super) fn text(study: &CodecAnalysis<'_>) -> String {
    let CodecAnalysis { results, figures, findings, .. } = study;
    let times = |operation: Operation| {
        let name = |codec: &CodecInfo| {
            let is_borrowed = operation.decodes() && codec.decodes == Some(Decodes::Borrowed);
            format!("{}{}", if is_borrowed { "&" } else { "" }, codec.name)
        };
        let ns = |codec: &CodecInfo, data: &str| {
            TableCell::figure(figures.line(data, &codec.name, operation).map(|line| line.ns), time)
        };
        by_message(results, &operation.to_string(), name, ns) + "\n"
    };
    let shown = |bytes: f64| if bytes < 9999.5 { format!("{bytes:.0}") } else { count(bytes) };
    let sizes = by_message(
        results,
        "bytes, gzip, zstd",
        |codec| codec.name.clone(),
        |codec, data| {
            let size = results.size(data, &codec.name);
            let sizes = size.map(|size| [size.raw, size.gzip, size.zstd].map(shown).join(" "));
            TableCell::words(sizes.unwrap_or_else(|| NONE.to_owned()))
        },
    );
    let times: String = results.operations().into_iter().map(times).collect();
    format!("{times}{BORROWED}{sizes}\n{}", terminal::findings(findings))
}

/// Returns a table with codecs as rows and messages as columns. A codec without a figure is left out.
fn by_message(
    results: &CodecResults,
    header: &str,
    name: impl Fn(&CodecInfo) -> String,
    cell: impl Fn(&CodecInfo, &str) -> TableCell,
) -> String {
    let columns = Columns::<&CodecInfo>::default().words(header, |codec| name(codec));
    let columns = results.data.iter().fold(columns, |columns, data| {
        let cell = &cell;
        columns.field(&data.name, move |codec| cell(codec, &data.name))
    });
    let mut table = columns.table(results.all_codecs());
    table.rows.retain(|row| row[1..].iter().any(|field| field.text != NONE));
    table.text()
}
