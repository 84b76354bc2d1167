//! Terminal output of a sizes study: recommendations, a table of figures for each transport, and the findings.

mod versus;

use thalweg_measure::figures::{count, percent, throughput, time};
use thalweg_measure::page::table::Columns;
use thalweg_measure::size::ByteSize;
use thalweg_measure::text::{aligned, wrapped};

use super::analysis::SizesAnalysis;
use super::choice::words::{carrier_in_few_words, in_few_words};
use super::choice::{Choices, Job};
use super::lines::{SizesLine, SizesLines};
use crate::load::gathered::MergedCell;
use crate::load::verdict::MARGIN;
use crate::load::{Kind, Pattern, Transport, Work};
use crate::record::CallType;
use crate::report::terminal;

/// Returns a comparison's tables. Otherwise returns recommendations, tables of lone-call latencies and of all rates,
/// and the findings.
pub(super) fn text(study: &SizesAnalysis<'_>) -> String {
    let left_out = versus::left_out(&study.results.left_out);
    match (study.conclusive(), &study.comparison) {
        (Some(comparison), _) => versus::tables(comparison) + &left_out,
        (None, Some(_)) => left_out,
        (None, None) => alone(study),
    }
}

fn alone(study: &SizesAnalysis<'_>) -> String {
    let SizesAnalysis { lines, choices, findings, .. } = study;
    let mut text = chosen(lines, choices);
    for transport in lines.transports() {
        text += &table(lines, transport);
        text.push('\n');
    }
    text + &terminal::findings(findings)
}

/// Returns a table of recommended calls for each transport, and one of transports. Empty if there is nothing to choose
/// from.
fn chosen(analysis: &SizesLines<'_>, choices: &Choices) -> String {
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
            "The call that moves most messages per second, with its ratio to the next (for a lone call, of median \
             times). = equal within {}, ? cannot tell.",
            percent(MARGIN - 1.0)
        ));
        text.push('\n');
    }
    text
}

fn choice_table(
    analysis: &SizesLines<'_>,
    header: &str,
    jobs: &[Job],
    cell: impl Fn(Job, ByteSize) -> Option<String>,
) -> String {
    let sizes = Columns::<ByteSize>::default().words(header, ToString::to_string);
    let columns = jobs.iter().fold(sizes, |columns, &job| {
        let cell = &cell;
        columns.words(job.name(), move |&size| cell(job, size).unwrap_or_else(|| "-".to_owned()))
    });
    columns.table(analysis.sizes()).text() + "\n"
}

/// A column: its two header lines, and its figure.
type FigureColumn = ([String; 2], fn(&MergedCell<'_>) -> String);

/// Returns the columns of a line.
fn columns(kind: Kind) -> Vec<FigureColumn> {
    let rate: fn(&MergedCell<'_>) -> String = |cell| format!("{}/s", count(cell.rate_per_s()));
    let bytes: fn(&MergedCell<'_>) -> String = |cell| throughput(cell.bytes_per_s());
    let lone: fn(&MergedCell<'_>) -> String = |c| c.latency_named("p50").map_or("-".to_owned(), time);
    let columns = match kind.work {
        Work::Call(CallType::Unary) if kind.in_flight == 1 => vec![(["lone call", "median"], lone)],
        Work::Call(CallType::Unary) => {
            return vec![(["unary".to_owned(), format!("× {}", kind.in_flight)], rate)];
        }
        Work::Call(CallType::ClientStream) => vec![(["client", "stream"], rate)],
        Work::Call(CallType::ServerStream) => {
            vec![(["server", "stream"], rate), (["server", "bytes"], bytes)]
        }
        Work::Call(CallType::BidiStream | CallType::PingPong) => vec![(["bidi", "stream"], rate)],
        Work::Socket(Pattern::OneWay) => vec![(["socket", "one way"], bytes)],
        Work::Socket(Pattern::Echo | Pattern::Pipelined) => Vec::new(),
    };
    columns.into_iter().map(|(header, figure)| (header.map(str::to_owned), figure)).collect()
}

fn table(analysis: &SizesLines<'_>, transport: Transport) -> String {
    let lines = analysis.lines.iter().filter(|line| line.transport == transport);
    let columns: Vec<_> =
        lines.flat_map(|line| columns(line.kind).into_iter().map(move |column| (line, column))).collect();
    let header = |first: String, index: usize| {
        std::iter::once(first).chain(columns.iter().map(|(_, (header, _))| header[index].clone())).collect()
    };
    let mut rows: Vec<Vec<String>> = vec![header(transport.to_string(), 0), header("size".to_owned(), 1)];
    for size in analysis.sizes() {
        let figure = |(line, (_, figure)): &(&SizesLine<'_>, FigureColumn)| {
            line.at(size).map_or("-".to_owned(), figure)
        };
        rows.push(std::iter::once(size.to_string()).chain(columns.iter().map(figure)).collect());
    }
    aligned(&rows)
}
