//! A study of sizes in a terminal: which call to use, a table of figures for each transport, and the findings.

mod versus;

use thalweg_measure::figures::{count, percent, throughput, time};
use thalweg_measure::size::ByteSize;
use thalweg_measure::text::{aligned, wrapped};

use super::choice::words::{carrier_in_few_words, in_few_words};
use super::choice::{Choices, Job};
use super::lines::{Analysis, Cell, Line};
use crate::findings::Finding;
use crate::load::verdict::MARGIN;
use crate::load::{Kind, Pattern, Transport, Work};
use crate::record::CallType;

pub(super) use versus::{left_out, tables};

/// Which call to use, tables of the median latency of a lone call and of the rates of all calls, and the findings.
pub(super) fn alone(analysis: &Analysis, choices: &Choices, findings: &[Finding]) -> String {
    let mut text = chosen(analysis, choices);
    for transport in analysis.transports() {
        text += &table(analysis, transport);
        text.push('\n');
    }
    for finding in findings {
        text += &wrapped(&format!("{}: {}", finding.topic, finding.text));
    }
    text
}

/// A table of calls for each transport, and one of transports; nothing where there is nothing to choose from.
fn chosen(analysis: &Analysis, choices: &Choices) -> String {
    let mut text = String::new();
    let calls = |job| choices.calls.iter().any(|choice| choice.job == job);
    let jobs: Vec<Job> = Job::ALL.into_iter().filter(|&job| calls(job)).collect();
    for transport in analysis.transports().into_iter().filter(|_| !jobs.is_empty()) {
        let cell = |job, size| choices.call(job, transport, size).map(in_few_words);
        text += &choice_table(analysis, &transport.to_string(), &jobs, cell);
    }
    let carried = |job| choices.transports.iter().any(|choice| choice.job == job);
    let jobs: Vec<Job> = Job::ALL.into_iter().filter(|&job| carried(job)).collect();
    if !jobs.is_empty() {
        let cell = |job, size| choices.transport(job, size).map(carrier_in_few_words);
        text += &choice_table(analysis, "UDS ÷ TCP", &jobs, cell);
    }
    if !text.is_empty() {
        text += &wrapped(&format!(
            "What moves most messages per second, with its ratio to the next (of a lone call: of median times). \
             = equal within {}, ? cannot tell.",
            percent(MARGIN - 1.0)
        ));
        text.push('\n');
    }
    text
}

fn choice_table(
    analysis: &Analysis,
    head: &str,
    jobs: &[Job],
    cell: impl Fn(Job, ByteSize) -> Option<String>,
) -> String {
    let names = jobs.iter().map(|job| job.name().to_owned());
    let mut rows: Vec<Vec<String>> = vec![std::iter::once(head.to_owned()).chain(names).collect()];
    for size in analysis.sizes() {
        let cells = jobs.iter().map(|&job| cell(job, size).unwrap_or_else(|| "-".to_owned()));
        rows.push(std::iter::once(size.to_string()).chain(cells).collect());
    }
    aligned(&rows) + "\n"
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
