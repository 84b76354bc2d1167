//! Both ends replaced, our client alone, our server alone: for each stack, over one connection and over sixteen.

use super::comparison::{Cell, Ratio, cells, versions};
use super::table::markdown;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

const NAME: &str = "ends";
const OURS: &str = "thalweg";

/// All cells.
pub(in crate::figures) fn ends(results: &Results) -> Result<String, Failure> {
    let table = table(results, &cells(results, NAME)?)?;
    Ok(format!("{}\n\n{table}", results.caption(&[NAME])))
}

/// The ratio that tells of one end, against this stack.
type Find<'r> = fn(Cell<'r>, &str) -> Option<Ratio<'r>>;

fn table(results: &Results, cells: &[Cell<'_>]) -> Result<String, Failure> {
    let versions = versions(results, NAME)?;
    let heads: Vec<String> = versions.iter().map(|(_, version)| format!("÷ {version}")).collect();
    let mut columns = vec!["work", "connections", "ours per second", "ours is"];
    columns.extend(heads.iter().map(String::as_str));
    let mut rows = Vec::new();
    let mut before = String::new();
    for cell in cells {
        // One call has one connection, and the streams' number is that of the connections.
        let label = format!("{}, {}", cell.label(), numbers::size(cell.size_bytes()));
        let work = if label == before { String::new() } else { label.clone() };
        let ends: [(&str, Find<'_>); 3] = [
            ("both ends", |cell, stack| cell.against(stack)),
            ("the client", |cell, stack| cell.replaced(OURS, stack)),
            ("the server", |cell, stack| cell.replaced(stack, OURS)),
        ];
        for (index, (end, ratio)) in ends.into_iter().enumerate() {
            let first = |text: String| if index == 0 { text } else { String::new() };
            let mut row = vec![
                first(work.clone()),
                first(cell.connections().to_string()),
                first(cell.rate()),
                end.to_owned(),
            ];
            let text = |stack| ratio(*cell, stack).map_or_else(|| "–".to_owned(), Ratio::text);
            row.extend(versions.iter().map(|(stack, _)| text(stack)));
            rows.push(row);
        }
        before = label;
    }
    Ok(markdown(&columns, &rows))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Results, ends};

    #[test]
    fn each_end_has_a_row_with_a_mark_where_it_is_slower() {
        let ratio = |ratio: f64, verdict: &str| {
            let (low, high) = (ratio * 0.9, ratio * 1.1);
            json!({"ratio": ratio, "low": low, "high": high, "verdict": verdict})
        };
        let pair = |client: &str, server: &str, of_ours: Value, replaced: Value| {
            let mut pair = of_ours;
            pair["client"] = json!(client);
            pair["server"] = json!(server);
            pair["replaced"] = replaced;
            pair
        };
        let cell = json!({
            "work": "client-stream", "in_flight": 16, "connections": 16, "size_bytes": 1024,
            "rate_per_s": 2e6,
            "against": [
                pair("tonic", "tonic", ratio(1.5, "faster"), Value::Null),
                pair("thalweg", "tonic", ratio(1.25, "faster"), ratio(1.2, "cannot tell")),
                pair("tonic", "thalweg", ratio(2.0, "faster"), ratio(0.75, "slower")),
            ],
        });
        let file = json!({"figures": {
            "stacks": [{"stack": "tonic", "version": "tonic 0.14.9"}], "noise": [], "cells": [cell],
        }});
        let text = ends(&Results::of([("ends", file)])).unwrap();
        let (_, table) = text.split_once("| work").unwrap();
        assert_eq!(
            table,
            " | connections | ours per second | ours is | ÷ tonic 0.14.9 |\n\
             | --- | --- | --- | --- | --- |\n\
             | client stream, 1 KiB | 16 | 2.00 M/s | both ends | 1.50 (1.35–1.65) |\n\
             | | | | the client | ? 1.20 (1.08–1.32) |\n\
             | | | | the server | ▼ 0.75 (0.68–0.83) |"
        );
    }
}
