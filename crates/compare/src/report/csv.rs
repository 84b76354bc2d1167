//! CSV for spreadsheets, with a line for each figure of each load.

use thalweg_measure::page::table::Columns;

use super::model::{FigureComparison, Report};

/// A line: its report, load and figure.
type Row<'r> = (&'r Report, String, &'r FigureComparison);

/// Formats all reports of one run of the command. Times are in ns. The load is empty for means over several loads.
pub fn csv(reports: &[Report]) -> String {
    let rows = reports.iter().flat_map(|report| {
        let of_cells = report.cells.iter().flat_map(move |cell| {
            cell.figures.iter().map(move |compared| (report, cell.conditions.line(), compared))
        });
        of_cells.chain(report.overall.iter().map(move |compared| (report, String::new(), compared)))
    });
    Columns::<Row<'_>>::default()
        .words("a", |(report, ..)| report.a.clone())
        .words("b", |(report, ..)| report.b.clone())
        .words("load", |(_, load, _)| load.clone())
        .words("figure", |(.., compared)| compared.figure.name().to_owned())
        .plain("value_a", |(.., compared)| compared.a)
        .plain("value_b", |(.., compared)| compared.b)
        .plain("rounds_a", |(.., compared)| Some(compared.rounds.0))
        .plain("rounds_b", |(.., compared)| Some(compared.rounds.1))
        .plain("ratio", |(.., compared)| Some(compared.ratio))
        .plain("low", |(.., compared)| Some(compared.interval?.low))
        .plain("high", |(.., compared)| Some(compared.interval?.high))
        .plain("verdict", |(.., compared)| Some(compared.verdict))
        .plain("judged", |(.., compared)| Some(compared.is_gated))
        .plain("beyond_margin", |(.., compared)| Some(compared.is_beyond))
        .table(rows)
        .csv()
}
