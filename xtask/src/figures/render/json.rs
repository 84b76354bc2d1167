//! The JSON study: what it answers, rates of all servers, and times of lone calls.

use serde_json::Value;

use super::table::markdown;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

/// The answer, then a table of rates and one of times.
pub(in crate::figures) fn json(results: &Results) -> Result<String, Failure> {
    let figures = results.figures("json")?;
    let noise = figures["noise_ratio"].as_f64().map_or_else(missing, |ratio| numbers::share(ratio - 1.0));
    let answer = figures["answer"].as_str().unwrap_or_default().to_owned();
    Ok([
        results.caption(&["json"]),
        answer,
        format!(
            "Calls per second, as many as the server takes, and our server's rate by the same protocol beside it, \
             with prost's messages and with views. Processor time is the server's. Noise floor: {noise}; where there \
             is a question mark, no difference is shown.\n\n{}",
            rates(figures)
        ),
        format!("One call at a time, spikes included:\n\n{}", times(figures)),
    ]
    .join("\n\n"))
}

fn rates(figures: &Value) -> String {
    let row = |cell: &Value| {
        let rate = cell["rate"].as_object()?;
        let beside = |key: &str| compared(&rate[key]);
        Some(vec![
            text(cell, "message"),
            text(cell, "protocol"),
            text(cell, "server"),
            rate["per_s"].as_f64().map_or_else(missing, numbers::rate),
            rate["server_cpu_ns"].as_f64().map_or_else(missing, numbers::time),
            beside("ours_over_it"),
            beside("views_over_it"),
        ])
    };
    let heads = ["message", "protocol", "server", "calls", "processor", "ours ÷ it", "views ÷ it"];
    markdown(&heads, &plain(figures).filter_map(row).collect::<Vec<_>>())
}

/// Of the messages that have rates: others are in the report.
fn times(figures: &Value) -> String {
    let is_rated = |message: &Value| {
        let mut cells = plain(figures);
        cells.any(|cell| cell["message"] == *message && cell["rate"].is_object())
    };
    let row = |cell: &Value| {
        let latency = cell["latency"].as_object().filter(|_| is_rated(&cell["message"]))?;
        let time = |key: &str| latency[key].as_f64().map_or_else(missing, numbers::time);
        let mut row = vec![text(cell, "message"), text(cell, "protocol"), text(cell, "server")];
        row.extend(["p50_ns", "p99_ns", "max_ns", "request_mean_ns", "response_mean_ns"].map(time));
        row.push(compared(&latency["times_grpc"]));
        Some(row)
    };
    let heads =
        ["message", "protocol", "server", "median", "p99", "longest", "request", "response", "÷ our gRPC"];
    markdown(&heads, &plain(figures).filter_map(row).collect::<Vec<_>>())
}

/// The cells of this machine alone, with a connection that is kept and nothing compressed.
fn plain(figures: &Value) -> impl Iterator<Item = &Value> {
    let is_plain = |cell: &&Value| {
        cell["round_trip_ns"].as_u64().unwrap_or(0) == 0
            && cell["network_bit_per_s"].is_null()
            && cell["new_connection_per_call"] != true
            && cell["gzip"] != true
    };
    figures["cells"].as_array().into_iter().flatten().filter(is_plain)
}

fn compared(compared: &Value) -> String {
    let [ratio, low, high] = ["ratio", "low", "high"].map(|key| compared[key].as_f64().map(numbers::ratio));
    let verdict = compared["verdict"].as_str().unwrap_or_default();
    let doubt = if ["faster", "slower"].contains(&verdict) { "" } else { "? " };
    match (ratio, low, high) {
        (Some(ratio), Some(low), Some(high)) => format!("{doubt}{ratio} ({low}–{high})"),
        (Some(ratio), ..) => format!("{doubt}{ratio}"),
        _ => missing(),
    }
}

fn text(cell: &Value, key: &str) -> String {
    cell[key].as_str().unwrap_or_default().to_owned()
}

fn missing() -> String {
    "–".to_owned()
}
