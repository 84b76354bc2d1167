//! The schema `thalweg.comparison-report/1`.

use serde::Serialize;
use serde_json::{Map, Value};
use thalweg_measure::machine::{Machine, Versions};

use super::model::{CellReport, FigureComparison, Intervals, Report};
use crate::figure::Figure;
use crate::verdict::Verdict;

/// Schema name of comparison reports.
pub const REPORT_SCHEMA: &str = "thalweg.comparison-report/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    comparisons: Vec<ReportJson<'a>>,
}

#[derive(Serialize)]
struct ReportJson<'a> {
    a: &'a str,
    b: &'a str,
    verdict: String,
    failures: &'a [String],
    inconclusive: bool,
    no_answer: Option<&'a str>,
    margin: f64,
    intervals: Intervals,
    paired: bool,
    machine: Option<&'a Machine>,
    versions: Option<&'a Versions>,
    cells: Vec<CellJson<'a>>,
    overall: Vec<ComparedJson>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct CellJson<'a> {
    conditions: Map<String, Value>,
    #[serde(rename = "loop")]
    loop_kind: &'a str,
    failed_share: [f64; 2],
    failed_share_difference: DifferenceJson,
    figures: Vec<ComparedJson>,
}

#[derive(Serialize)]
struct DifferenceJson {
    low: f64,
    high: f64,
    verdict: Verdict,
    fails: bool,
}

#[derive(Serialize)]
struct ComparedJson {
    figure: Figure,
    a: Option<f64>,
    b: Option<f64>,
    rounds: [usize; 2],
    ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
    verdict: Verdict,
    gated: bool,
    beyond: bool,
    fails: bool,
}

/// Formats all reports of one run of the command.
pub fn json(reports: &[Report]) -> String {
    let comparisons = reports.iter().map(of_report).collect();
    let document = Document { schema: REPORT_SCHEMA, comparisons };
    serde_json::to_string_pretty(&document).expect("a report is numbers and strings") + "\n"
}

fn of_report(report: &Report) -> ReportJson<'_> {
    ReportJson {
        a: &report.a,
        b: &report.b,
        verdict: report.headline(),
        failures: &report.failures,
        inconclusive: report.is_inconclusive(),
        no_answer: report.inconclusive_reason.as_deref(),
        margin: report.margin,
        intervals: report.intervals,
        paired: report.is_paired,
        machine: report.machine.as_ref(),
        versions: report.versions.as_ref(),
        cells: report.cells.iter().map(of_cell).collect(),
        overall: report.overall.iter().map(of_figure).collect(),
        warnings: &report.warnings,
    }
}

fn of_cell(cell: &CellReport) -> CellJson<'_> {
    let named = |(name, value): (&str, &str)| (name.to_owned(), Value::from(value));
    CellJson {
        conditions: cell.conditions.iter().map(named).collect(),
        loop_kind: if cell.is_open { "open" } else { "closed" },
        failed_share: [cell.failed.a, cell.failed.b],
        failed_share_difference: DifferenceJson {
            low: cell.failed.difference.low,
            high: cell.failed.difference.high,
            verdict: cell.failed.verdict(),
            fails: cell.failed.fails(),
        },
        figures: cell.figures.iter().map(of_figure).collect(),
    }
}

fn of_figure(compared: &FigureComparison) -> ComparedJson {
    ComparedJson {
        figure: compared.figure,
        a: compared.a,
        b: compared.b,
        rounds: [compared.rounds.0, compared.rounds.1],
        ratio: compared.ratio,
        low: compared.interval.map(|interval| interval.low),
        high: compared.interval.map(|interval| interval.high),
        verdict: compared.verdict,
        gated: compared.is_gated,
        beyond: compared.is_beyond,
        fails: compared.fails(),
    }
}
