//! Text for a terminal.

use thalweg_measure::printable;
use thalweg_measure::text::{aligned, wrapped};

use super::model::{FigureComparison, Report};
use super::words;

/// Formats a report: a table for each load, then the warnings.
pub fn text(report: &Report) -> String {
    let Report { a, b, .. } = report;
    let title = format!("{b} against {a}: {}", report.headline());
    let mut blocks = vec![format!("{}{}", wrapped(&title), wrapped(&words::method(report)))];
    for cell in &report.cells {
        let conditions = cell.conditions.line();
        blocks.push(format!("{}\n{}", printable::line(&conditions), table(report, &cell.figures)));
    }
    if !report.overall.is_empty() {
        let count = report.cells.len();
        blocks.push(format!("all {count} loads, geometric mean\n{}", table(report, &report.overall)));
    }
    let machine = words::machine_and_version(report).into_iter();
    let warnings = report.warnings.iter().map(|warning| format!("! {warning}"));
    blocks.push(machine.chain(warnings).map(|sentence| wrapped(&sentence)).collect());
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

fn table(Report { a, b, .. }: &Report, figures: &[FigureComparison]) -> String {
    let headers = ["", a, b, &format!("{b} ÷ {a}"), "95 %", "verdict"].map(ToString::to_string);
    let rows: Vec<[String; 6]> = std::iter::once(headers).chain(figures.iter().map(words::row)).collect();
    // Figures are right-aligned, words left-aligned.
    let (names, verdicts) = (flush_left(&rows, 0), flush_left(&rows, 5));
    let cells = rows.iter().zip(names).zip(verdicts).map(|((row, name), verdict)| {
        let mut cells = vec![name];
        cells.extend(row[1..5].iter().cloned());
        cells.push(verdict);
        cells
    });
    let table = aligned(&cells.collect::<Vec<_>>());
    table.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

fn flush_left(rows: &[[String; 6]], column: usize) -> Vec<String> {
    let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    // The formatter's maximum width.
    let width = width.min(u16::MAX.into());
    rows.iter().map(|row| format!("{:<width$}", row[column])).collect()
}
