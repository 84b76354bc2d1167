//! The README's table: a few figures, and the worst.

use super::benches::Tables;
use super::comparison::{Cell, Ratio, STACKS, cells, versions};
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

/// Columns of `drop-in` with ratios to tonic, and what they replace.
const RATIOS: [(&str, &str); 4] = [
    ("both ends", "tonic's API, both ends"),
    ("the client alone", "tonic's API, client only"),
    ("the server alone", "tonic's API, server only"),
    ("native", "native API, both ends"),
];

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
        ("native API, handler that computes for 50 µs, both ends", HANDLER, "native"),
    ] {
        let rate = tables.number(0, name, "tonic a second")? * tables.number(0, name, column)?;
        let text = tables.cell(0, name, column)?;
        rows.push(row(work, Some(rate), &stacks, |stack| (stack == "tonic").then(|| text.to_owned())));
    }
    rows.push(worst(&all, &stacks, &tables)?);
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

/// The lowest ratio of both results: of all work, stacks and ends.
fn worst(cells: &[Cell<'_>], stacks: &Stacks, drop_in: &Tables<'_>) -> Result<Vec<String>, Failure> {
    let of_ends = worst_of_ends(cells)?;
    let of_drop_in = drop_in
        .rows(0)
        .iter()
        .flat_map(|row| RATIOS.map(|(head, ends)| (row[0], head, ends)))
        .map(|(work, head, ends)| Ok((drop_in.number(0, work, head)?, work, head, ends)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let of_drop_in = of_drop_in.into_iter().min_by(|one, other| one.0.total_cmp(&other.0));
    let (stack, work, text) = match of_drop_in {
        Some((ratio, work, head, ends)) if ratio < of_ends.0.mean => {
            ("tonic", format!("{work}, {ends}"), format!("▼ {}", drop_in.cell(0, work, head)?))
        }
        _ => {
            let (ratio, cell, stack, end) = of_ends;
            (stack, work_of(cell, end), ratio.text())
        }
    };
    Ok(row(&format!("lowest ratio: {work}"), None, stacks, |it| (it == stack).then(|| text.clone())))
}

fn worst_of_ends<'r>(cells: &[Cell<'r>]) -> Result<(Ratio<'r>, Cell<'r>, &'static str, End), Failure> {
    let all = cells.iter().flat_map(|cell| {
        STACKS.iter().flat_map(move |stack| {
            End::ALL.into_iter().filter_map(move |end| Some((end.ratio(*cell, stack)?, *cell, *stack, end)))
        })
    });
    let least = all.min_by(|one, other| one.0.mean.total_cmp(&other.0.mean));
    least.ok_or_else(|| Failure::failed(format!("{ENDS}.json has no ratios")))
}

fn work_of(cell: Cell<'_>, end: End) -> String {
    let size = numbers::size(cell.size_bytes());
    let connections = match cell.connections() {
        1 => "1 connection".to_owned(),
        many => format!("{many} connections"),
    };
    format!("{}, {size}, {connections}, {}", cell.label(), end.name())
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

    /// The table, where the drop-in's server has this ratio to tonic's behind a handler.
    fn table(server: &str) -> String {
        let ends = json!({"figures": {
            "stacks": [{"stack": "tonic", "version": "tonic 0.14.9"}],
            "cells": [cell(0, 1, [20.0, 2.0, 1.5]), cell(0, 16, [6.0, 1.3, 1.0]), cell(1024, 16, [3.0, 0.75, 0.8])],
        }});
        let drop_in = json!({"figures": {"tables": [{
            "heads": ["work", "tonic a second", "both ends", "the client alone", "the server alone", "native"],
            "rows": [
                ["unary, 64 in flight, 0 B", "50,000", "7.00 (6.00–8.00)", "2.00", "2.00", "13.00"],
                ["unary, 64 in flight, 0 B, handler of 50 µs", "14,000", "1.30", "1.20", server, "1.40 (1.30–1.50)"],
            ],
        }]}});
        let rows = [["thalweg", "3,733"], ["tonic", "47,257"], ["grpc-cpp", "53,424"]];
        let instructions = json!({"figures": {"tables": [{"heads": ["stack", "server"], "rows": rows}]}});
        let results = Results::of([("ends", ends), ("drop-in", drop_in), ("instructions", instructions)]);
        let text = speed(&results).unwrap();
        let (table, rest) = text.split_once("\n\n").unwrap();
        assert!(
            rest.starts_with(
                "An empty call costs the server 3,733 instructions (tonic 47,257, gRPC C++ 53,424"
            )
        );
        table.to_owned()
    }

    #[test]
    fn the_lowest_ratio_of_both_results_has_a_row() {
        assert_eq!(
            table("1.10"),
            "| 64 calls in flight | Thalweg | ÷ tonic 0.14.9 |\n\
             | --- | --- | --- |\n\
             | both ends | 2.00 M/s, 500 ns each | 20 (20–20) |\n\
             | client only | | 2.0 (2.0–2.0) |\n\
             | server only | | 1.50 (1.50–1.50) |\n\
             | both ends, 16 connections | 2.00 M/s, 500 ns each | 6.0 (6.0–6.0) |\n\
             | tonic's API with one line changed, both ends | 350 k/s, 2.86 µs each | 7.00 (6.00–8.00) |\n\
             | native API, handler that computes for 50 µs, both ends | 19.6 k/s, 51.0 µs each | 1.40 (1.30–1.50) |\n\
             | lowest ratio: unary, 64 in flight, 1 KiB, 16 connections, client only | | 0.75 (0.75–0.75) |"
        );
        let last = "| lowest ratio: unary, 64 in flight, 0 B, handler of 50 µs, tonic's API, server only | | \
                    ▼ 0.64 (0.50–0.90) |";
        assert_eq!(table("0.64 (0.50–0.90)").lines().last(), Some(last));
    }
}
