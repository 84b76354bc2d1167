//! The README's table: a few figures, and the worst.

use super::benches::Tables;
use super::comparison::{Cell, Ratio, cells, versions};
use super::table::markdown;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

const ENDS: &str = "ends";
const DROP_IN: &str = "drop-in";
const INSTRUCTIONS: &str = "instructions";
const OURS: &str = "thalweg";

/// Rows of `drop-in`.
const UNARY: &str = "unary, 64 in flight, 0 B";
const HANDLER: &str = "unary, 64 in flight, 0 B, handler of 50 µs";

/// The end that is Thalweg's.
#[derive(Clone, Copy)]
enum End {
    Both,
    Client,
    Server,
}

impl End {
    const ALL: [Self; 3] = [Self::Both, Self::Client, Self::Server];

    fn name(self) -> &'static str {
        match self {
            Self::Both => "both ends",
            Self::Client => "client only",
            Self::Server => "server only",
        }
    }

    fn ratio<'r>(self, cell: Cell<'r>, stack: &str) -> Option<Ratio<'r>> {
        match self {
            Self::Both => cell.against(stack),
            Self::Client => cell.replaced(OURS, stack),
            Self::Server => cell.replaced(stack, OURS),
        }
    }
}

pub(in crate::figures) fn speed(results: &Results) -> Result<String, Failure> {
    let stacks = versions(results, ENDS)?;
    let all = cells(results, ENDS)?;
    let unary = |connections: u64| {
        let is_it = |cell: &&Cell<'_>| {
            cell.work() == "unary" && cell.size_bytes() == 0 && cell.connections() == connections
        };
        let found = all.iter().find(|cell| is_it(cell) && !cell.is_lone_call());
        found.copied().ok_or_else(|| Failure::failed(format!("{ENDS}.json has no {UNARY}, {connections}")))
    };
    let mut rows = Vec::new();
    for (work, connections, end) in [
        ("both ends", 1, End::Both),
        ("client only", 1, End::Client),
        ("server only", 1, End::Server),
        ("both ends, 16 connections", 16, End::Both),
    ] {
        let cell = unary(connections)?;
        let ratio = |stack: &str| end.ratio(cell, stack).map(Ratio::text);
        let rate = cell.rate_per_s().filter(|_| matches!(end, End::Both));
        rows.push(row(work, rate, &stacks, ratio));
    }
    let tables = Tables::of(results, DROP_IN)?;
    for (work, name, column) in [
        ("tonic's API with one line changed, both ends", UNARY, "both ends"),
        ("handler that computes for 50 µs, both ends", HANDLER, "native"),
    ] {
        let rate = tables.number(0, name, "tonic a second")? * tables.number(0, name, column)?;
        let text = tables.cell(0, name, column)?;
        rows.push(row(work, Some(rate), &stacks, |stack| (stack == "tonic").then(|| text.to_owned())));
    }
    rows.push(worst(&all, &stacks)?);
    let heads: Vec<String> = stacks.iter().map(|(_, version)| format!("÷ {version}")).collect();
    let mut columns = vec!["64 calls in flight", "Thalweg"];
    columns.extend(heads.iter().map(String::as_str));
    let captions = [ENDS, DROP_IN].map(|name| results.caption_of(name, &file_link(name)));
    Ok(format!("{}\n\n{}\n\n{}", markdown(&columns, &rows), costs(results)?, captions.join("\n")))
}

type Stacks = [(&'static str, String)];

/// A row: the work, our rate with the time of a call, and a ratio for each stack.
fn row(
    work: &str,
    rate: Option<f64>,
    stacks: &Stacks,
    ratio: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let rate = rate.map(|rate| format!("{}, {} each", numbers::rate(rate), numbers::time(1e9 / rate)));
    let ratios = stacks.iter().map(|(stack, _)| ratio(stack).unwrap_or_default());
    [work.to_owned(), rate.unwrap_or_default()].into_iter().chain(ratios).collect()
}

/// The least ratio of all work, stacks and ends.
fn worst(cells: &[Cell<'_>], stacks: &Stacks) -> Result<Vec<String>, Failure> {
    let all = cells.iter().flat_map(|cell| {
        stacks.iter().flat_map(move |(stack, _)| {
            End::ALL.into_iter().filter_map(move |end| Some((end.ratio(*cell, stack)?, *cell, *stack, end)))
        })
    });
    let least = all.min_by(|one, other| one.0.mean.total_cmp(&other.0.mean));
    let (ratio, cell, of, end) =
        least.ok_or_else(|| Failure::failed(format!("{ENDS}.json has no ratios")))?;
    let size = numbers::size(cell.size_bytes());
    let connections = match cell.connections() {
        1 => "1 connection".to_owned(),
        many => format!("{many} connections"),
    };
    let work = format!("worst of all work: {}, {size}, {connections}, {}", cell.label(), end.name());
    Ok(row(&work, None, stacks, |stack| (stack == of).then(|| ratio.text())))
}

fn costs(results: &Results) -> Result<String, Failure> {
    let tables = Tables::of(results, INSTRUCTIONS)?;
    let server = |stack: &str| tables.cell(0, stack, "server");
    Ok(format!(
        "An empty call costs the server {} instructions (tonic {}, gRPC C++ {}; {}).",
        server(OURS)?,
        server("tonic")?,
        server("grpc-cpp")?,
        file_link(INSTRUCTIONS)
    ))
}

fn file_link(name: &str) -> String {
    format!("[{name}](docs/results/{name}.json)")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Results, speed};

    fn pair(client: &str, server: &str, ratio: f64) -> Value {
        let of = |ratio: f64| json!({"ratio": ratio, "low": ratio, "high": ratio, "verdict": "faster"});
        let mut pair = of(if client == server { ratio } else { 9.0 });
        (pair["client"], pair["server"]) = (json!(client), json!(server));
        pair["replaced"] = if client == server { Value::Null } else { of(ratio) };
        pair
    }

    fn cell(size_bytes: u64, connections: u64, ratios: [f64; 3]) -> Value {
        let against = [
            pair("tonic", "tonic", ratios[0]),
            pair("thalweg", "tonic", ratios[1]),
            pair("tonic", "thalweg", ratios[2]),
        ];
        json!({"work": "unary", "in_flight": 64, "connections": connections, "size_bytes": size_bytes,
            "rate_per_s": 2e6, "against": against})
    }

    #[test]
    fn the_worst_ratio_of_all_work_has_a_row() {
        let ends = json!({"figures": {
            "stacks": [{"stack": "tonic", "version": "tonic 0.14.9"}],
            "cells": [cell(0, 1, [20.0, 2.0, 1.5]), cell(0, 16, [6.0, 1.3, 1.0]), cell(1024, 16, [3.0, 0.75, 0.8])],
        }});
        let drop_in = json!({"figures": {"tables": [{
            "heads": ["work", "tonic a second", "both ends", "native"],
            "rows": [
                ["unary, 64 in flight, 0 B", "50,000", "7.00 (6.00–8.00)", "13.00"],
                ["unary, 64 in flight, 0 B, handler of 50 µs", "14,000", "1.30", "1.40 (1.30–1.50)"],
            ],
        }]}});
        let rows = [["thalweg", "3,733"], ["tonic", "47,257"], ["grpc-cpp", "53,424"]];
        let instructions = json!({"figures": {"tables": [{"heads": ["stack", "server"], "rows": rows}]}});
        let results = Results::of([("ends", ends), ("drop-in", drop_in), ("instructions", instructions)]);
        let text = speed(&results).unwrap();
        let (table, rest) = text.split_once("\n\n").unwrap();
        assert_eq!(
            table,
            "| 64 calls in flight | Thalweg | ÷ tonic 0.14.9 |\n\
             | --- | --- | --- |\n\
             | both ends | 2.00 M/s, 500 ns each | 20 (20–20) |\n\
             | client only | | 2.0 (2.0–2.0) |\n\
             | server only | | 1.50 (1.50–1.50) |\n\
             | both ends, 16 connections | 2.00 M/s, 500 ns each | 6.0 (6.0–6.0) |\n\
             | tonic's API with one line changed, both ends | 350 k/s, 2.86 µs each | 7.00 (6.00–8.00) |\n\
             | handler that computes for 50 µs, both ends | 19.6 k/s, 51.0 µs each | 1.40 (1.30–1.50) |\n\
             | worst of all work: unary, 64 in flight, 1 KiB, 16 connections, client only | | 0.75 (0.75–0.75) |"
        );
        assert!(
            rest.starts_with(
                "An empty call costs the server 3,733 instructions (tonic 47,257, gRPC C++ 53,424"
            )
        );
    }
}
