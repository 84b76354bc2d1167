//! A study of sizes in a terminal: a table for each transport, and the findings.

mod versus;

use super::lines::{Analysis, Cell, Line};
use crate::figures::{count, throughput, time};
use crate::findings::Finding;
use crate::load::{Kind, Pattern, Transport, Work};
use crate::record::CallType;
use crate::report::terminal::{aligned, wrapped};

pub(super) use versus::tables;

/// Tables of the median latency of a lone call and of the rates of all calls, and the findings.
pub(super) fn alone(analysis: &Analysis, findings: &[Finding]) -> String {
    let mut text = String::new();
    for transport in analysis.transports() {
        text += &table(analysis, transport);
        text.push('\n');
    }
    for finding in findings {
        text += &wrapped(&format!("{}: {}", finding.topic, finding.text));
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
        let Kind { work, in_flight, .. } = line.kind;
        let rate: fn(&Cell) -> String = |cell| format!("{}/s", count(cell.rate_per_s));
        let (head, figure): ([&str; 2], fn(&Cell) -> String) = match work {
            Work::Call(CallType::Unary) if in_flight == 1 => {
                (["lone call", "median"], |c| c.p50_ns().map_or("-".to_owned(), |p50_ns| time(p50_ns as f64)))
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
