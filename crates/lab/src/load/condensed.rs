//! Condensed results as JSON: the figures that documents quote, without the windows behind them.

use serde_json::{Value, json};
use thalweg_measure::figures::short;
use thalweg_measure::statistics::Ratio;

use super::verdict::JudgedRatio;
use crate::study::{StudyKind, StudyResults};

/// Returns the text of a study's condensed results: where and when it was measured, the `arguments` that repeat it,
/// and `body`.
pub(crate) fn text<S, T>(results: &StudyResults<S, T>, arguments: &[String], mut body: Value) -> String {
    let family = match results.study {
        StudyKind::Codec => "codec",
        StudyKind::Json => "json",
        StudyKind::Sizes | StudyKind::Channels | StudyKind::Connections => "lab",
    };
    body["schema"] = json!(format!("thalweg.{family}-condensed/1"));
    body["machine"] = json!(results.machine);
    body["started"] = json!(results.started);
    body["arguments"] = json!(without_out(arguments));
    body["left_out"] = json!(results.left_out);
    format!("{body:#}\n")
}

/// Returns the arguments without `--out` and its value.
fn without_out(arguments: &[String]) -> Vec<&String> {
    let is_out = |argument: &String| argument == "--out";
    let before = |index: usize| index.checked_sub(1).is_some_and(|before| is_out(&arguments[before]));
    let kept = arguments.iter().enumerate().filter(|(index, it)| !is_out(it) && !before(*index));
    kept.map(|(_, argument)| argument).collect()
}

/// A ratio with the ends of its interval.
pub(crate) fn ratio(ratio: Option<Ratio>) -> Value {
    let interval = ratio.and_then(|ratio| ratio.interval);
    json!({
        "ratio": ratio.map(|ratio| short(ratio.ratio)),
        "low": interval.map(|interval| short(interval.low)),
        "high": interval.map(|interval| short(interval.high)),
    })
}

/// A ratio with its interval and verdict.
pub(crate) fn compared(compared: JudgedRatio) -> Value {
    let mut value = ratio(compared.ratio);
    value["verdict"] = json!(compared.verdict.name());
    value
}
