//! One connection against several: the channels study.

use std::collections::BTreeMap;

use serde_json::Value;

use super::table::markdown;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

const STRATEGIES: [&str; 4] = ["adaptive", "1", "2", "3"];

pub(in crate::figures) fn lanes(results: &Results) -> Result<String, Failure> {
    let points = results.figures("lanes")?["points"].as_array().cloned().unwrap_or_default();
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
        row.push(rate("adaptive").map_or_else(|| "–".to_owned(), |ours| numbers::ratio(ours / best)));
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

/// The median rate of each point and strategy of a `thalweg.lab/4`.
pub(in crate::figures) fn condensed(study: &Value) -> Vec<Value> {
    let mut rates: BTreeMap<(String, u64, u64, String), Vec<f64>> = BTreeMap::new();
    for window in study["points"].as_array().into_iter().flatten() {
        let point = &window["point"];
        let Some(rate) = window["measured"]["rate_per_s"].as_f64() else { continue };
        let strategy = match &window["strategy"] {
            Value::String(name) => name.clone(),
            other => other.to_string(),
        };
        let key = (
            point["work"].as_str().unwrap_or_default().to_owned(),
            point["round_trip_ns"].as_u64().unwrap_or_default(),
            point["in_flight"].as_u64().unwrap_or_default(),
            strategy,
        );
        rates.entry(key).or_default().push(rate);
    }
    let point = |((work, round_trip_ns, in_flight, strategy), rates): (_, Vec<f64>)| {
        let windows = rates.len();
        let (rate, ..) = crate::bench::table::median_and_range(rates);
        serde_json::json!({"work": work, "round_trip_ns": round_trip_ns, "in_flight": in_flight,
            "strategy": strategy, "windows": windows, "rate_per_s": rate.round()})
    };
    rates.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::condensed;

    #[test]
    fn windows_of_a_point_become_their_median() {
        let window = |strategy: &str, rate: f64| {
            json!({"point": {"work": "unary", "round_trip_ns": 0, "in_flight": 4}, "strategy": strategy,
                   "measured": {"rate_per_s": rate}})
        };
        let failed = json!({"point": {"work": "unary"}, "strategy": "1", "failed": "why"});
        let study = json!({"points": [window("1", 10.0), window("1", 30.0), window("1", 20.0), failed]});
        assert_eq!(
            condensed(&study),
            [json!({"work": "unary", "round_trip_ns": 0, "in_flight": 4, "strategy": "1", "windows": 3,
                    "rate_per_s": 20.0})]
        );
    }
}
