//! Stacks against one another, as `thalweg_lab`'s `condense` has them.

use serde_json::Value;

use super::table::markdown;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

/// The stacks in the order of columns.
pub(super) const STACKS: [&str; 3] = ["tonic", "grpc-cpp", "grpc-go"];

/// One cell of a comparison.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    value: &'a Value,
}

/// Ours ÷ theirs.
#[derive(Clone, Copy)]
pub(super) struct Ratio<'a> {
    pub(super) mean: f64,
    interval: Option<(f64, f64)>,
    verdict: &'a str,
}

pub(super) fn cells<'a>(results: &'a Results, name: &str) -> Result<Vec<Cell<'a>>, Failure> {
    let cells = results.figures(name)?["cells"].as_array();
    let cells = cells.ok_or_else(|| Failure::failed(format!("{name}.json has no cells")))?;
    Ok(cells.iter().map(|value| Cell { value }).collect())
}

/// The cell of this work, which there must be.
pub(super) fn cell<'a>(
    results: &'a Results,
    name: &str,
    (work, in_flight, size_bytes): (&str, u64, u64),
) -> Result<Cell<'a>, Failure> {
    let is_it = |cell: &Cell<'_>| {
        cell.work() == work && cell.in_flight() == in_flight && cell.size_bytes() == size_bytes
    };
    cells(results, name)?.into_iter().find(is_it).ok_or_else(|| {
        Failure::failed(format!("{name}.json has no cell {work}, {in_flight} in flight, {size_bytes} B"))
    })
}

impl<'a> Cell<'a> {
    pub(super) fn work(self) -> &'a str {
        self.value["work"].as_str().unwrap_or_default()
    }

    pub(super) fn connections(self) -> u64 {
        self.value["connections"].as_u64().unwrap_or(1)
    }

    pub(super) fn in_flight(self) -> u64 {
        self.value["in_flight"].as_u64().unwrap_or_default()
    }

    pub(super) fn size_bytes(self) -> u64 {
        self.value["size_bytes"].as_u64().unwrap_or_default()
    }

    pub(super) fn is_lone_call(self) -> bool {
        self.work() == "unary" && self.in_flight() == 1
    }

    /// What stands in the first row of its work.
    pub(super) fn label(self) -> String {
        match (self.work(), self.in_flight()) {
            ("unary", 1) => "unary, one at a time".to_owned(),
            ("unary", in_flight) => format!("unary, {in_flight} in flight"),
            (work, _) => work.replace('-', " "),
        }
    }

    pub(super) fn rate_per_s(self) -> Option<f64> {
        self.value["rate_per_s"].as_f64()
    }

    pub(super) fn rate(self) -> String {
        match self.rate_per_s() {
            _ if self.is_lone_call() => self.value["p50_ns"].as_f64().map(numbers::time).unwrap_or_default(),
            Some(rate) => numbers::rate(rate),
            None => "–".to_owned(),
        }
    }

    /// Of what the bare socket moves.
    pub(super) fn share(self) -> Option<f64> {
        self.value["share_of_socket"].as_f64()
    }

    pub(super) fn against(self, stack: &str) -> Option<Ratio<'a>> {
        let against = self.value["against"].as_array()?;
        Ratio::of(against.iter().find(|it| it["client"] == stack && it["server"] == stack)?)
    }

    /// What replacing one end of this stack's pair by ours gains: ours as `client` or as `server`.
    pub(super) fn replaced(self, client: &str, server: &str) -> Option<Ratio<'a>> {
        let against = self.value["against"].as_array()?;
        let is_it = |it: &&Value| it["client"] == client && it["server"] == server;
        Ratio::of(&against.iter().find(is_it)?["replaced"])
    }

    fn against_text(self, stack: &str) -> String {
        self.against(stack).map_or_else(|| "–".to_owned(), Ratio::text)
    }
}

impl<'a> Ratio<'a> {
    /// Of a `ratio` with its `low`, `high` and `verdict`.
    pub(super) fn of(against: &'a Value) -> Option<Self> {
        let interval = || Some((against["low"].as_f64()?, against["high"].as_f64()?));
        Some(Self {
            mean: against["ratio"].as_f64()?,
            interval: interval(),
            verdict: against["verdict"].as_str().unwrap_or_default(),
        })
    }

    /// `1.76 (1.56–1.99)`, behind a `=` where it is no difference, a `?` where that cannot be told, and a `▼` where
    /// ours is slower.
    pub(super) fn text(self) -> String {
        let ratio = numbers::ratio(self.mean);
        let mark = match self.verdict {
            "no difference" => "= ",
            "cannot tell" => "? ",
            "slower" => "▼ ",
            _ => "",
        };
        match self.interval {
            Some((low, high)) => {
                format!("{mark}{ratio} ({}–{})", numbers::ratio(low), numbers::ratio(high))
            }
            None => format!("{mark}{ratio}"),
        }
    }
}

/// What each stack calls itself, for a column's head.
pub(super) fn versions(results: &Results, name: &str) -> Result<Vec<(&'static str, String)>, Failure> {
    let figures = results.figures(name)?;
    let stacks = figures["stacks"].as_array().cloned().unwrap_or_default();
    let version = |stack: &'static str| {
        let told = stacks.iter().find(|it| it["stack"] == stack)?;
        Some((stack, told["version"].as_str()?.to_owned()))
    };
    Ok(STACKS.iter().filter_map(|stack| version(stack)).collect())
}

/// The noise floors: `11 % for unary, one at a time, …`.
fn noise(results: &Results, name: &str) -> Result<String, Failure> {
    let floors = results.figures(name)?["noise"].as_array().cloned().unwrap_or_default();
    let floor = |floor: &Value| {
        let ratio = floor["ratio"].as_f64()?;
        Some(format!("{} for {}", numbers::share(ratio - 1.0), Cell { value: floor }.label()))
    };
    Ok(floors.iter().filter_map(floor).collect::<Vec<_>>().join(", "))
}

pub(in crate::figures) fn comparison_tcp(results: &Results) -> Result<String, Failure> {
    comparison(results, "comparison-tcp")
}

pub(in crate::figures) fn comparison_uds(results: &Results) -> Result<String, Failure> {
    comparison(results, "comparison-uds")
}

fn comparison(results: &Results, name: &str) -> Result<String, Failure> {
    let versions = versions(results, name)?;
    let heads: Vec<String> = versions.iter().map(|(_, version)| format!("÷ {version}")).collect();
    let mut columns = vec!["work, size", "Thalweg"];
    columns.extend(heads.iter().map(String::as_str));
    columns.push("of the bare socket");
    let mut rows = Vec::new();
    let mut before = String::new();
    for cell in cells(results, name)? {
        let (label, size) = (cell.label(), numbers::size(cell.size_bytes()));
        let mut row = vec![if label == before { size } else { format!("{label}, {size}") }, cell.rate()];
        row.extend(versions.iter().map(|(stack, _)| cell.against_text(stack)));
        row.push(cell.share().map(numbers::share).unwrap_or_default());
        rows.push(row);
        before = label;
    }
    Ok(format!(
        "{}\n\nNoise floor: {}.\n\n{}",
        results.caption(&[name]),
        noise(results, name)?,
        markdown(&columns, &rows)
    ))
}

/// Results files of unary calls of 0 B, with what was asked of them: connections, calls in flight.
const IN_FLIGHT: [(&str, u64, u64); 3] =
    [("in-flight-64", 1, 64), ("in-flight-256", 1, 256), ("in-flight-256-connections-16", 16, 256)];

pub(in crate::figures) fn in_flight(results: &Results) -> Result<String, Failure> {
    let mut rows = Vec::new();
    for (name, connections, in_flight) in IN_FLIGHT {
        let cell = cell(results, name, ("unary", in_flight, 0))?;
        rows.push(vec![
            format!("{connections}, {in_flight}"),
            cell.rate(),
            cell.against_text("tonic"),
            cell.against_text("grpc-cpp"),
            cell.share().map(numbers::share).unwrap_or_default(),
        ]);
    }
    let heads = ["connections, in flight", "Thalweg", "÷ tonic", "÷ gRPC C++", "of the bare socket"];
    let names = IN_FLIGHT.map(|(name, ..)| name);
    Ok(format!("{}\n\n{}", results.caption(&names), markdown(&heads, &rows)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Results, comparison_tcp};

    #[test]
    fn a_comparison_is_a_row_for_each_cell() {
        let against = |ratio: f64, verdict: &str| {
            json!([{"client": "tonic", "server": "tonic", "ratio": ratio, "low": ratio * 0.9,
                    "high": ratio * 1.1, "verdict": verdict}])
        };
        let file = json!({
            "commands": ["lab sizes"], "machine": "m", "date": "d", "commit": "c",
            "figures": {
                "stacks": [{"stack": "thalweg", "version": "0.1.0"}, {"stack": "tonic", "version": "tonic 0.14.9"}],
                "noise": [{"work": "unary", "in_flight": 1, "ratio": 1.11}],
                "cells": [
                    {"work": "unary", "in_flight": 1, "size_bytes": 0, "rate_per_s": 8600.0, "p50_ns": 116_000.0,
                     "share_of_socket": 0.79, "against": against(1.76, "faster")},
                    {"work": "unary", "in_flight": 1, "size_bytes": 1024, "rate_per_s": 7000.0, "p50_ns": 143_000.0,
                     "share_of_socket": null, "against": against(1.02, "no difference")},
                    {"work": "bidi-stream", "in_flight": 1, "size_bytes": 0, "rate_per_s": 4.6e6, "p50_ns": 1.0,
                     "share_of_socket": 0.22, "against": []},
                ],
            },
        });
        let text = comparison_tcp(&Results::of([("comparison-tcp", file)]));
        let Ok(text) = text else { panic!("it has all that a table needs") };
        let (_, table) =
            text.split_once("Noise floor: 11 % for unary, one at a time.\n\n").expect("its floor");
        assert_eq!(
            table,
            "| work, size | Thalweg | ÷ tonic 0.14.9 | of the bare socket |\n\
             | --- | --- | --- | --- |\n\
             | unary, one at a time, 0 B | 116 µs | 1.76 (1.58–1.94) | 79 % |\n\
             | 1 KiB | 143 µs | = 1.02 (0.92–1.12) | |\n\
             | bidi stream, 0 B | 4.60 M/s | – | 22 % |"
        );
    }
}
