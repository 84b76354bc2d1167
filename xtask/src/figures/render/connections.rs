//! What a call costs a server as connections grow: the connections study.

use serde_json::Value;

use super::table::markdown;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

/// Loads of all connections, with the fewest calls on each; a row for each server.
pub(in crate::figures) fn connections(results: &Results) -> Result<String, Failure> {
    let figures = results.figures("connections")?;
    let of = |name: &str| figures[name].as_array().cloned().unwrap_or_default();
    let points = of("points");
    let whole = || points.iter().filter(|point| point["active"] == point["connections"]);
    let fewest = whole().filter_map(|point| point["in_flight"].as_u64()).min();
    let rows: Vec<Vec<String>> =
        whole().filter(|point| point["in_flight"].as_u64() == fewest).map(row).collect();
    let heads = [
        "connections",
        "server",
        "processor time of a call",
        "÷ bare echo",
        "ours ÷ it",
        "user, kernel",
        "p50",
        "p99",
        "an idle connection",
        "Jain’s index",
    ];
    let arrivals: Vec<Vec<String>> = of("arrivals").iter().map(arrival).collect();
    let arrival_heads =
        ["server", "", "connections/s", "processor time of one, server", "client", "ours ÷ it"];
    Ok(format!(
        "{}\n\n{}\n\nNew connections, each with a call:\n\n{}",
        results.caption(&["connections"]),
        markdown(&heads, &rows),
        markdown(&arrival_heads, &arrivals)
    ))
}

fn row(point: &Value) -> Vec<String> {
    let jain = point["jain"].as_f64().map(|jain| format!("{jain:.3}"));
    let bytes = point["idle_bytes"].as_f64().map(|bytes| format!("{:.1} KB", bytes / 1e3));
    vec![
        point["connections"].as_u64().unwrap_or_default().to_string(),
        point["server"].as_str().unwrap_or_default().to_owned(),
        time(&point["server_time"]["ns"]),
        ratio(&point["over_echo"]),
        ratio(&point["ours_over"]),
        format!("{}, {}", time(&point["server_time"]["user_ns"]), time(&point["server_time"]["system_ns"])),
        time(&point["p50_ns"]),
        time(&point["p99_ns"]),
        or_none(bytes),
        or_none(jain),
    ]
}

fn arrival(arrival: &Value) -> Vec<String> {
    let rate = arrival["rate_per_s"].as_f64().map(|rate| numbers::rate(rate).replace("/s", ""));
    vec![
        arrival["server"].as_str().unwrap_or_default().to_owned(),
        if arrival["tls"] == true { "TLS" } else { "plain" }.to_owned(),
        or_none(rate),
        time(&arrival["server_time"]["ns"]),
        time(&arrival["client_time"]["ns"]),
        ratio(&arrival["ours_over"]),
    ]
}

fn time(ns: &Value) -> String {
    or_none(ns.as_f64().map(numbers::time))
}

/// `1.60 (1.52–1.68)`
fn ratio(ratio: &Value) -> String {
    let figure = |name: &str| ratio[name].as_f64().map(numbers::ratio);
    or_none(figure("ratio").map(|ratio| match (figure("low"), figure("high")) {
        (Some(low), Some(high)) => format!("{ratio} ({low}–{high})"),
        _ => ratio,
    }))
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::connections;
    use crate::figures::results::Results;

    #[test]
    fn all_connections_with_the_fewest_calls_have_a_row() {
        let point = |connections: u64, active: u64, in_flight: u64| {
            json!({"connections": connections, "active": active, "in_flight": in_flight, "server": "thalweg",
                   "server_time": {"ns": 4200.0, "user_ns": 1200.0, "system_ns": 3000.0},
                   "over_echo": {"ratio": 1.6, "low": 1.5, "high": 1.7}, "ours_over": null, "p50_ns": 9e4,
                   "p99_ns": 2e5, "idle_bytes": 5700.0, "jain": 0.997})
        };
        let arrival = json!({"server": "tonic", "tls": true, "rate_per_s": 9e3, "server_time": {"ns": 5e5},
                             "client_time": {"ns": 6e5}, "ours_over": {"ratio": 0.5}});
        let points = [point(100, 10, 1), point(100, 100, 1), point(100, 100, 4)];
        let file = json!({"figures": {"points": points, "arrivals": [arrival]}});
        let table = connections(&Results::of([("connections", file)])).unwrap();
        let row = "| 100 | thalweg | 4.20 µs | 1.60 (1.50–1.70) | – | 1.20 µs, 3.00 µs | 90.0 µs | 200 µs | \
                   5.7 KB | 0.997 |";
        assert_eq!(table.matches("| thalweg |").count(), 1, "{table}");
        assert!(table.contains(row), "{table}");
        assert!(table.ends_with("| tonic | TLS | 9.00 k | 500 µs | 600 µs | 0.50 |"), "{table}");
    }
}
