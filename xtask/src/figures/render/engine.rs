//! The Protobuf engine beside prost, buffa and prost-reflect.

use super::table::markdown;
use crate::bench::table::grouped;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

/// A direction as the example `speed` names it, as the table does, and what is asked: at least so many times the rate
/// of prost and of prost-reflect.
const DIRECTIONS: [(&str, &str, Option<f64>, f64); 4] = [
    ("encode", "encode", Some(0.8), 10.0),
    ("decode", "decode", Some(2.0), 8.0),
    ("to JSON", "wire → JSON", None, 5.0),
    ("from JSON", "JSON → wire", None, 2.0),
];

pub(in crate::figures) fn protobuf(results: &Results) -> Result<String, Failure> {
    let lines = results.figures("protobuf")?["lines"].as_array().cloned().unwrap_or_default();
    let mut rows = Vec::new();
    for (direction, shown, prost_asked, reflect_asked) in DIRECTIONS {
        for line in lines.iter().filter(|line| line["direction"] == direction) {
            let times = |contender: &str| line["times"][contender].as_f64();
            let rate = line["mb_per_s"].as_f64().unwrap_or_default();
            let (prost, reflect) = (times("prost"), times("prost-reflect"));
            let shown_ratio = |times: Option<f64>| times.map_or_else(|| "–".to_owned(), numbers::ratio);
            let prost_missed = prost_asked.zip(prost).is_some_and(|(asked, times)| times < asked);
            let reflect_missed = reflect.is_none_or(|times| times < reflect_asked);
            let goal = match prost_asked {
                Some(asked) => format!("≥ {asked} and ≥ {reflect_asked}"),
                None => format!("≥ {reflect_asked}"),
            };
            rows.push(vec![
                shown.to_owned(),
                line["shape"].as_str().unwrap_or_default().to_owned(),
                grouped(rate),
                shown_ratio(times("buffa-view")),
                shown_ratio(times("buffa")),
                shown_ratio(prost.filter(|_| prost_asked.is_some())),
                shown_ratio(reflect),
                goal,
                if prost_missed || reflect_missed { "**no**" } else { "yes" }.to_owned(),
            ]);
        }
    }
    let heads =
        ["", "shape", "MB/s", "× buffa-view", "× buffa", "× prost", "× prost-reflect", "goal", "reached"];
    Ok(format!("{}\n\n{}", results.caption(&["protobuf"]), markdown(&heads, &rows)))
}
