//! A line for each figure of each load, for spreadsheets.

use super::model::{Compared, Report};

const HEAD: &str =
    "a,b,load,figure,value_a,value_b,rounds_a,rounds_b,ratio,low,high,verdict,judged,beyond_margin\n";

/// All reports of one call of the command. Times are in ns. The load of a mean over several loads is empty.
pub fn csv(reports: &[Report]) -> String {
    let mut text = HEAD.to_owned();
    for report in reports {
        for cell in &report.cells {
            text.extend(cell.figures.iter().map(|compared| line(report, &cell.conditions.line(), compared)));
        }
        text.extend(report.overall.iter().map(|compared| line(report, "", compared)));
    }
    text
}

fn line(report: &Report, load: &str, compared: &Compared) -> String {
    let known = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let interval = compared.interval;
    let fields = [
        quoted(&report.a),
        quoted(&report.b),
        quoted(load),
        compared.figure.name().to_owned(),
        known(compared.a),
        known(compared.b),
        compared.rounds.0.to_string(),
        compared.rounds.1.to_string(),
        compared.ratio.to_string(),
        known(interval.map(|interval| interval.low)),
        known(interval.map(|interval| interval.high)),
        quoted(&compared.verdict.to_string()),
        compared.is_gated.to_string(),
        compared.is_beyond.to_string(),
    ];
    fields.join(",") + "\n"
}

/// RFC 4180, section 2: quotes a field that would end early.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
