//! The JSON study: what it answers, rates of all servers, and times of lone calls.

use serde_json::Value;

use super::table::markdown;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

/// The answer, then a table of rates and one of times.
pub(in crate::figures) fn json(results: &Results) -> Result<String, Failure> {
    let figures = results.figures("json")?;
    let answer = figures["answer"].as_str().unwrap_or_default().to_owned();
    Ok([
        results.caption(&["json"]),
        answer,
        format!(
            "Calls per second, as many as the server takes, and our server's rate by the same protocol beside it, \
             with prost's messages and with views. Processor time is the server's. Noise floor: {}; where there is a \
             question mark, no difference is shown.\n\n{}",
            noise(figures, "rate"),
            rates(figures)
        ),
        format!(
            "One call at a time, spikes included. Noise floor: {}.\n\n{}",
            noise(figures, "latency"),
            times(figures)
        ),
    ]
    .into_iter()
    .chain(doubts(figures))
    .collect::<Vec<_>>()
    .join("\n\n"))
}

/// By how much the same differs, with each message: of rates, or of times. Of one number it is that of all figures.
fn noise(figures: &Value, of: &str) -> String {
    let share = |floor: &Value| floor["noise_ratio"].as_f64().map(|ratio| numbers::share(ratio - 1.0));
    let floors = figures["noise"].as_array().into_iter().flatten();
    let of_message = |floor: &Value| Some(format!("{} ({})", share(floor)?, text(floor, "message")));
    let floors: Vec<String> = floors.filter(|floor| floor["of"] == of).filter_map(of_message).collect();
    if floors.is_empty() { share(figures).unwrap_or_else(missing) } else { floors.join(", ") }
}

/// What a reader must know before using the figures.
fn doubts(figures: &Value) -> Option<String> {
    let doubts = figures["doubts"].as_array()?.iter().filter_map(Value::as_str);
    let lines: Vec<String> = doubts.map(|doubt| format!("- {doubt}")).collect();
    (!lines.is_empty()).then(|| format!("What speaks against the figures:\n\n{}", lines.join("\n")))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(figures: &Value) -> String {
        let file = json!({"commands": ["lab json"], "figures": figures});
        super::json(&Results::of([("json", file)])).unwrap()
    }

    #[test]
    fn noise_is_told_by_figure_and_message_and_doubts_below() {
        let floor = |of: &str, message: &str, ratio: f64| {
            let mut floor = json!({"of": of, "message": message});
            floor["noise_ratio"] = ratio.into();
            floor
        };
        let noise =
            [floor("latency", "person", 1.05), floor("rate", "person", 1.12), floor("rate", "order", 1.2)];
        let doubts = ["Other programs ran.", "spring: no Java here"];
        let text = rendered(&json!({"noise_ratio": 1.2, "noise": noise, "doubts": doubts}));
        assert!(text.contains("Noise floor: 12 % (person), 20 % (order); where"), "{text}");
        assert!(text.contains("spikes included. Noise floor: 5.0 % (person)."), "{text}");
        assert!(text.ends_with("\n\n- Other programs ran.\n- spring: no Java here"), "{text}");
        let text = rendered(&json!({"noise_ratio": 1.2}));
        assert!(text.contains("Noise floor: 20 %; where") && !text.contains("speaks against"), "{text}");
    }
}
