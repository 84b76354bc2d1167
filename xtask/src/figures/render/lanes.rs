//! One connection against several: the channels study.

use std::collections::BTreeMap;

use serde_json::Value;

use super::comparison::{Ratio, versions};
use super::table::markdown;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

const STRATEGIES: [&str; 4] = ["adaptive", "1", "2", "3"];

pub(in crate::figures) fn lanes(results: &Results) -> Result<String, Failure> {
    let figures = results.figures("lanes")?;
    let points = figures["points"].as_array().cloned().unwrap_or_default();
    let mut rates: BTreeMap<(String, u64, u64), BTreeMap<String, f64>> = BTreeMap::new();
    for point in &points {
        let place = (
            point["work"].as_str().unwrap_or_default().to_owned(),
            point["round_trip_ns"].as_u64().unwrap_or_default(),
            point["in_flight"].as_u64().unwrap_or_default(),
        );
        let strategy = point["strategy"].as_str().unwrap_or_default().to_owned();
        rates.entry(place).or_default().insert(strategy, point["rate_per_s"].as_f64().unwrap_or_default());
    }
    let mut rows = Vec::new();
    // Unary calls before streams.
    let mut places: Vec<_> = rates.iter().collect();
    places.sort_by_key(|((work, ..), _)| work != "unary");
    for ((work, round_trip_ns, in_flight), rates) in places {
        let rate = |strategy: &str| rates.get(strategy).copied();
        let best = STRATEGIES[1..].iter().filter_map(|strategy| rate(strategy)).fold(0.0, f64::max);
        let added = match round_trip_ns {
            0 => "none".to_owned(),
            ns => numbers::time(*ns as f64).replace(".00", "").replace(".0", ""),
        };
        let mut row = vec![work.clone(), added, in_flight.to_string()];
        row.extend(STRATEGIES.map(|strategy| {
            rate(strategy).map_or_else(|| "–".to_owned(), |rate| numbers::rate(rate).replace("/s", ""))
        }));
        row.push(match adaptive(figures, (work, *round_trip_ns, *in_flight)) {
            Some(text) => text,
            // Of results whose rounds are not kept.
            None => rate("adaptive").map_or_else(|| "–".to_owned(), |ours| numbers::ratio(ours / best)),
        });
        rows.push(row);
    }
    let heads = [
        "calls",
        "added round trip",
        "in flight",
        "adaptive",
        "one",
        "two",
        "three",
        "adaptive ÷ best fixed",
    ];
    Ok(format!("{}\n\n{}", results.caption(&["lanes"]), markdown(&heads, &rows)))
}

const MANY: &str = "many-processors";

/// Clients with eight threads: each stack's ways to come by connections, by calls in flight.
pub(in crate::figures) fn many_processors(results: &Results) -> Result<String, Failure> {
    let figures = results.figures(MANY)?;
    let versions = versions(results, MANY)?;
    let points = figures["points"].as_array().cloned().unwrap_or_default();
    let mut loads: Vec<u64> = points.iter().filter_map(|point| point["in_flight"].as_u64()).collect();
    loads.sort_unstable();
    loads.dedup();
    let mut ways: Vec<(&str, &str)> = Vec::new();
    for point in &points {
        let way =
            (point["client"].as_str().unwrap_or_default(), point["strategy"].as_str().unwrap_or_default());
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    let rate = |(client, strategy): (&str, &str), in_flight: u64| {
        let is_it = |point: &&Value| {
            point["client"] == client && point["strategy"] == strategy && point["in_flight"] == in_flight
        };
        points.iter().find(is_it)?["rate_per_s"].as_f64()
    };
    let cell = |way, in_flight| {
        let Some(rate_per_s) = rate(way, in_flight) else { return "–".to_owned() };
        let text = numbers::rate(rate_per_s).replace("/s", "");
        match (way.0, rate(("thalweg", "adaptive"), in_flight)) {
            ("thalweg", _) | (_, None) => text,
            (_, Some(ours)) => format!("{text} ({})", numbers::ratio(ours / rate_per_s)),
        }
    };
    let mut rows = Vec::new();
    for way in ways {
        let (client, strategy) = way;
        let (stack, variant) = client.split_once(':').unwrap_or((client, ""));
        let version = versions.iter().find(|(name, _)| *name == stack).map(|(_, version)| version.as_str());
        let connections = match (variant, strategy) {
            ("", "adaptive") => "as many as help".to_owned(),
            ("", "1") => "one".to_owned(),
            ("", number) => number.to_owned(),
            ("shared", number) => format!("{number} channels of equal arguments, which share one"),
            ("distinct", number) => format!("{number}, of channels of different arguments"),
            ("own", number) => format!("{number}, of channels with pools of their own"),
            (variant, number) => format!("{number}, `{variant}`"),
        };
        let mut row = vec![version.unwrap_or("Thalweg").to_owned(), connections];
        row.extend(loads.iter().map(|in_flight| cell(way, *in_flight)));
        rows.push(row);
    }
    let loads: Vec<String> = loads.iter().map(|in_flight| format!("{in_flight} in flight")).collect();
    let heads: Vec<&str> =
        ["client", "connections"].into_iter().chain(loads.iter().map(String::as_str)).collect();
    Ok(format!("{}\n\n{}", results.caption(&[MANY]), markdown(&heads, &rows)))
}

/// What the adaptive channel reaches of the best fixed number, from windows of the same round:
/// `= 0.99 (0.95–1.03) of 1`.
fn adaptive(figures: &Value, (work, round_trip_ns, in_flight): (&str, u64, u64)) -> Option<String> {
    let is_here = |load: &&Value| {
        load["work"] == work && load["round_trip_ns"] == round_trip_ns && load["in_flight"] == in_flight
    };
    let compared = &figures["loads"].as_array()?.iter().find(is_here)?["adaptive_over_best"];
    Some(format!("{} of {}", Ratio::of(compared)?.text(), compared["connections"]))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{lanes, many_processors};
    use crate::figures::results::Results;

    #[test]
    fn the_adaptive_channel_stands_beside_the_best_number_with_its_interval() {
        let check = |loads: &Value, expected: &str| {
            let place = |strategy: &str, rate: f64| {
                json!({"work": "unary", "round_trip_ns": 0, "in_flight": 4, "strategy": strategy,
                       "rate_per_s": rate})
            };
            let points = [place("adaptive", 90e3), place("1", 100e3), place("2", 50e3)];
            let file = json!({"figures": {"points": points, "loads": loads}});
            let table = lanes(&Results::of([("lanes", file)])).unwrap();
            let row = table.lines().last().unwrap();
            assert_eq!(row, format!("| unary | none | 4 | 90.0 k | 100 k | 50.0 k | – | {expected} |"));
        };
        let compared =
            json!({"connections": 1, "ratio": 0.9, "low": 0.8, "high": 1.01, "verdict": "cannot tell"});
        let load =
            json!({"work": "unary", "round_trip_ns": 0, "in_flight": 4, "adaptive_over_best": compared});
        check(&json!([load]), "? 0.90 (0.80–1.01) of 1");
        check(&Value::Null, "0.90");
    }

    fn point(client: &str, strategy: &str, in_flight: u64, rate_per_s: f64) -> Value {
        json!({"client": client, "strategy": strategy, "in_flight": in_flight, "rate_per_s": rate_per_s})
    }

    #[test]
    fn others_rates_say_how_often_they_fit_into_the_adaptive_channels() {
        let points = [
            point("thalweg", "adaptive", 64, 2e6),
            point("thalweg", "1", 64, 5e5),
            point("grpc-cpp:own", "8", 64, 1e5),
            point("grpc-cpp:own", "8", 256, 1e5),
        ];
        let stacks = json!([{"stack": "grpc-cpp", "version": "gRPC C++ 1.51.1"}]);
        let file = json!({"figures": {"stacks": stacks, "points": points}});
        let table = many_processors(&Results::of([("many-processors", file)])).unwrap();
        let rows: Vec<&str> = table.lines().skip_while(|line| !line.starts_with("| Thalweg")).collect();
        let expected = [
            "| Thalweg | as many as help | 2.00 M | – |",
            "| Thalweg | one | 500 k | – |",
            "| gRPC C++ 1.51.1 | 8, of channels with pools of their own | 100 k (20) | 100 k |",
        ];
        assert_eq!(rows, expected);
    }
}
