//! The loads of one comparison: an overview table, and the figures of each.

use maud::{Markup, html};
use thalweg_measure::page::parts::breakable;

use super::table::{Row, class, of_figures, of_loads};
use crate::cell::Conditions;
use crate::report::model::{CellReport, FigureComparison, Report};
use crate::report::words;

/// With more loads than this, those that do not fail are folded.
const LOADS_OPEN: usize = 3;

/// A load with its name and anchor.
struct Load<'a> {
    name: String,
    anchor: String,
    cell: &'a CellReport,
}

pub(super) fn section(number: usize, report: &Report) -> Markup {
    let (common, loads) = loads(number, report);
    html! {
        section id={ "comparison-" (number) } {
            h2 { (report.b) " against " (report.a) }
            @if !report.overall.is_empty() {
                h3 { "All " (report.cells.len()) " loads, geometric mean" }
                (of_figures(report, &report.overall))
            }
            @if loads.len() > 1 {
                h3 { "Load by load" }
                @if !common.is_empty() { p.about { "All of them: " (common) "." } }
                (of_loads(report, &overview(&loads)))
                h3 { "All figures of each load" }
            }
            @for load in &loads { (figures(report, load, loads.len() > LOADS_OPEN)) }
        }
    }
}

/// Returns the conditions that all loads share, and the loads. With several loads, their names leave the shared
/// conditions out.
fn loads(number: usize, report: &Report) -> (String, Vec<Load<'_>>) {
    let all: Vec<&Conditions> = report.cells.iter().map(|cell| &cell.conditions).collect();
    let (common, own) = Conditions::split_common(&all);
    let names: Vec<String> = match all.as_slice() {
        [one] => vec![one.line()],
        _ => own.iter().map(Conditions::line).collect(),
    };
    let load = |(index, (cell, name))| Load { name, anchor: format!("load-{number}-{index}"), cell };
    (common.line(), report.cells.iter().zip(names).enumerate().map(load).collect())
}

/// Returns the judged figures of each load.
fn overview<'a>(loads: &[Load<'a>]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for Load { name, anchor, cell } in loads {
        for compared in shown(cell) {
            let header = html! {
                a href={ "#" (anchor) } { (breakable(name)) }
                small { (compared.figure.label()) }
            };
            rows.push((header, compared));
        }
    }
    rows
}

/// Returns the judged figures, or the first figure if none is judged.
fn shown(cell: &CellReport) -> Vec<&FigureComparison> {
    let judged: Vec<&FigureComparison> = cell.figures.iter().filter(|compared| compared.is_gated).collect();
    if judged.is_empty() { cell.figures.iter().take(1).collect() } else { judged }
}

fn figures(report: &Report, Load { name, anchor, cell }: &Load<'_>, is_folded: bool) -> Markup {
    let fails = cell.figures.iter().any(FigureComparison::fails);
    html! {
        @if is_folded {
            details id=(anchor) open[fails] {
                summary { (breakable(name)) (verdicts(cell)) }
                (of_figures(report, &cell.figures))
            }
        } @else {
            h3 id=(anchor) { (breakable(name)) }
            (of_figures(report, &cell.figures))
        }
    }
}

/// Formats the verdicts of judged figures.
fn verdicts(cell: &CellReport) -> Markup {
    html! {
        @for compared in cell.figures.iter().filter(|compared| compared.is_gated) {
            span.(class(compared)) { " " span.is { (compared.figure.label()) " " (words::verdict(compared)) } }
        }
    }
}
