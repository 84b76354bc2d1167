//! A study in a terminal: a table for each transport, and the findings.

mod channels;
mod versus;

use crate::analyse::{Analysis, Cell, Kind, Line, analyse, doubts, findings};
use crate::figures::{NO_BREAK_SPACE, bound, count, throughput, time};
use crate::plan::{Pattern, Transport, Work};
use crate::record::CallType;
use crate::results::LabResults;

/// Doubts beyond this many are left to the page.
const DOUBTS_MAX: usize = 8;
/// Sentences are broken before they grow longer than this.
const WIDTH: usize = 100;

/// Tables of the median latency of a lone call and of the rates of all calls, the findings, and the doubts. Where stacks
/// are compared, a table for each kind of call instead, with our figure and the ratio to each other.
pub fn terminal(results: &LabResults) -> String {
    let mut text = String::new();
    if results.is_channels() {
        text += &channels::channels(results);
    } else if results.is_comparison() {
        text += &versus::tables(results);
    } else {
        let analysis = analyse(results);
        for transport in analysis.transports() {
            text += &table(&analysis, transport);
            text.push('\n');
        }
        for finding in findings(&analysis) {
            text += &wrapped(&format!("{}: {}", finding.topic, finding.text));
        }
    }
    let doubts = doubts(results);
    for doubt in doubts.iter().take(DOUBTS_MAX) {
        text += &wrapped(&format!("! {doubt}"));
    }
    if doubts.len() > DOUBTS_MAX {
        text += &wrapped(&format!("! … and {} more in the report.", doubts.len() - DOUBTS_MAX));
    }
    text
}

/// One column: a line of the plots, and which of its figures.
struct Column<'a> {
    head: [String; 2],
    line: &'a Line,
    figure: fn(&Cell) -> String,
}

fn columns(analysis: &Analysis, transport: Transport) -> Vec<Column<'_>> {
    let mut columns = Vec::new();
    for line in analysis.lines.iter().filter(|line| line.transport == transport) {
        let Kind { work, in_flight } = line.kind;
        let rate: fn(&Cell) -> String = |cell| format!("{}/s", count(cell.rate_per_s));
        let (head, figure): ([&str; 2], fn(&Cell) -> String) = match work {
            Work::Call(CallType::Unary) if in_flight == 1 => {
                (["lone call", "median"], |c| time(c.latency.p50 as f64))
            }
            Work::Call(CallType::Unary) => (["unary", ""], rate),
            Work::Call(CallType::ClientStream) => (["client", "stream"], rate),
            Work::Call(CallType::ServerStream) => (["server", "stream"], rate),
            Work::Call(CallType::BidiStream | CallType::PingPong) => (["bidi", "stream"], rate),
            Work::Socket(Pattern::OneWay) => (["socket", "one way"], |c| throughput(c.bytes_per_s)),
            Work::Socket(Pattern::Echo | Pattern::Pipelined) => continue,
        };
        let mut head = head.map(str::to_owned);
        if head[1].is_empty() {
            head[1] = format!("× {in_flight}");
        }
        columns.push(Column { head, line, figure });
        if work == Work::Call(CallType::ServerStream) {
            let head = ["server".to_owned(), "bytes".to_owned()];
            columns.push(Column { head, line, figure: |cell| throughput(cell.bytes_per_s) });
        }
    }
    columns
}

fn table(analysis: &Analysis, transport: Transport) -> String {
    let columns = columns(analysis, transport);
    let mut rows: Vec<Vec<String>> = vec![vec![transport.to_string()], vec!["size".to_owned()]];
    for column in &columns {
        rows[0].push(column.head[0].clone());
        rows[1].push(column.head[1].clone());
    }
    for size in analysis.sizes() {
        let figures = columns.iter().map(|column| column.line.at(size).map_or("-".to_owned(), column.figure));
        rows.push(std::iter::once(size.to_string()).chain(figures).collect());
    }
    aligned(&rows)
}

/// Rows of equally many cells, set flush right in columns.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let line_of = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line_of).collect()
}

/// Lines of at most [`WIDTH`] characters, the second and later ones set in.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in bound(text).split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > WIDTH {
            lines += "\n  ";
            length = 2;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines += word;
        length += word_length;
    }
    lines.replace(NO_BREAK_SPACE, " ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_the_width_and_no_word_is_lost() {
        let text = "a bc ".repeat(100);
        let wrapped = wrapped(text.trim());
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(
            wrapped.split_whitespace().collect::<Vec<_>>(),
            text.split_whitespace().collect::<Vec<_>>()
        );
    }
}
