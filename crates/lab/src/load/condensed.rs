//! Studies as small JSON: the figures that documents quote, without the windows behind them.

use serde::Serialize;
use serde_json::{Value, json};
use thalweg_measure::figures::short;
use thalweg_measure::statistics::Ratio;

use super::verdict::Compared;
use crate::study::StudyResults;

/// The text of a study's condensed results: `body`, and before it where and when the study was measured.
pub(crate) fn text<S, T>(
    results: &StudyResults<S, T>,
    schema: &str,
    arguments: &impl Serialize,
    mut body: Value,
) -> String {
    body["schema"] = json!(schema);
    body["machine"] = json!(results.machine);
    body["started"] = json!(results.started);
    body["arguments"] = json!(arguments);
    body["left_out"] = json!(results.left_out);
    format!("{body:#}\n")
}

/// A ratio, and the ends of its interval.
pub(crate) fn ratio(ratio: Option<Ratio>) -> Value {
    let interval = ratio.and_then(|ratio| ratio.interval);
    json!({
        "ratio": ratio.map(|ratio| short(ratio.ratio)),
        "low": interval.map(|interval| short(interval.low)),
        "high": interval.map(|interval| short(interval.high)),
    })
}

/// The same, and what it amounts to.
pub(crate) fn compared(compared: Compared) -> Value {
    let mut value = ratio(compared.ratio);
    value["verdict"] = json!(compared.verdict.name());
    value
}
