//! Sentences shared by several formats.

use thalweg_measure::figures::{percent, ratio_figure};
use thalweg_measure::wording::counted;

use super::model::{FigureComparison, Report};
use crate::figure::Figure;

/// Describes the method.
pub(super) fn method(report: &Report) -> String {
    let (a, b) = report
        .cells
        .iter()
        .flat_map(|cell| &cell.figures)
        .find(|compared| compared.figure == Figure::Rate)
        .map_or((0, 0), |compared| compared.rounds);
    let rounds = if report.is_paired {
        format!("{}, measured alternately in pairs", counted(a as u64, "round"))
    } else if a == b {
        format!("{} of each, measured separately", counted(a as u64, "value"))
    } else {
        format!("{a} and {}, measured separately", counted(b as u64, "value"))
    };
    let intervals = counted(report.intervals.judged as u64, "judged interval");
    format!("{rounds}; margin {}; 95 % for {intervals} together", percent(report.margin))
}

/// Describes the machine and the versions, if known.
pub(super) fn machine_and_version(report: &Report) -> Option<String> {
    let machine = report.machine.as_ref().map(|machine| {
        let processors = counted(machine.cores as u64, "processor");
        format!("{}, {processors}, {}", machine.cpu, machine.kernel)
    });
    let versions = report.versions.as_ref().map(|it| format!("thalweg {} ({})", it.thalweg, it.build));
    let parts: Vec<String> = [machine, versions].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Formats the verdict, and whether the whole interval lies beyond the margin.
pub(super) fn verdict(compared: &FigureComparison) -> String {
    let beyond = if compared.is_beyond { ", beyond the margin" } else { "" };
    format!("{}{beyond}", compared.verdict)
}

/// Formats a side's value, or a dash.
pub(super) fn value(compared: &FigureComparison, value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| compared.figure.format(value))
}

/// Returns name, values of both sides, ratio, interval and verdict.
pub(super) fn row(compared: &FigureComparison) -> [String; 6] {
    [
        compared.figure.label().to_owned(),
        value(compared, compared.a),
        value(compared, compared.b),
        ratio_figure(compared.ratio),
        compared.interval_text().unwrap_or_else(|| "–".to_owned()),
        verdict(compared),
    ]
}
