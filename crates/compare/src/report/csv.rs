//! A line for each figure of each load, for spreadsheets.

use super::model::{Compared, Report};

const HEAD: [&str; 14] = [
    "a",
    "b",
    "load",
    "figure",
    "value_a",
    "value_b",
    "rounds_a",
    "rounds_b",
    "ratio",
    "low",
    "high",
    "verdict",
    "judged",
    "beyond_margin",
];

/// All reports of one call of the command. Times are in ns. The load of a mean over several loads is empty.
///
/// # Panics
///
/// Never: memory can be written to.
pub fn csv(reports: &[Report]) -> String {
    let mut rows = csv::Writer::from_writer(Vec::new());
    let mut write = |row: &[String]| rows.write_record(row).expect("memory can be written to");
    write(&HEAD.map(str::to_owned));
    for report in reports {
        for cell in &report.cells {
            cell.figures.iter().for_each(|compared| write(&row(report, cell.conditions.line(), compared)));
        }
        report.overall.iter().for_each(|compared| write(&row(report, String::new(), compared)));
    }
    let bytes = rows.into_inner().expect("memory can be written to");
    String::from_utf8(bytes).expect("fields are text")
}

fn row(report: &Report, load: String, compared: &Compared) -> [String; 14] {
    let known = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let interval = compared.interval;
    [
        report.a.clone(),
        report.b.clone(),
        load,
        compared.figure.name().to_owned(),
        known(compared.a),
        known(compared.b),
        compared.rounds.0.to_string(),
        compared.rounds.1.to_string(),
        compared.ratio.to_string(),
        known(interval.map(|interval| interval.low)),
        known(interval.map(|interval| interval.high)),
        compared.verdict.to_string(),
        compared.is_gated.to_string(),
        compared.is_beyond.to_string(),
    ]
}
