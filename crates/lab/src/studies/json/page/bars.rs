//! Bar charts of stages and of calls per second, for all endpoints with a selectable message.

use thalweg_measure::figures::{count, time};
use thalweg_measure::page::bars::{BarPart, BarRow, Bars};
use thalweg_measure::page::section::{Block, Choice, when};

use super::super::case::{Case, title};
use super::super::cells::{Cells, EndpointCell};
use super::super::results::JsonResults;
use crate::echo::{STAGES, Shape};
use crate::load::gathered::distinct;

/// Name and colour of each stage.
const MEANINGS: [(&str, &str); 7] = [
    ("client encodes", "peer-2"),
    ("on the way there", "ours"),
    ("server decodes", "peer-1"),
    ("handler", "text"),
    ("server encodes", "peer-5"),
    ("on the way back", "peer-4"),
    ("client decodes", "peer-3"),
];

/// Bars of a cell, followed by its figure.
type Row = fn(&EndpointCell) -> Option<(Vec<BarPart>, String)>;

pub(super) fn stages(results: &JsonResults, cells: &Cells) -> Vec<Block> {
    let row: Row = |cell| {
        cell.latency.as_ref()?;
        let stage = |(stage, (meaning, colour)): (&str, &(&str, &str))| {
            let ns = cell.stage(stage);
            BarPart { value: ns, colour: (*colour).to_owned(), title: format!("{meaning}: {}", time(ns)) }
        };
        let parts: Vec<BarPart> = STAGES.into_iter().zip(&MEANINGS).map(stage).collect();
        let sum = parts.iter().map(|part| part.value).sum();
        Some((parts, time(sum)))
    };
    let key = MEANINGS.map(|(meaning, colour)| (colour.to_owned(), meaning.to_owned()));
    let about = "One call at a time: the mean of each stage, from the client’s request object to its response object.";
    let [choices, panels] = by_shape("stages", results, cells, row);
    vec![Block::about(about), choices, Block::Key(key.to_vec()), panels]
}

pub(super) fn rates(results: &JsonResults, cells: &Cells) -> Vec<Block> {
    let row: Row = |cell| {
        let per_s = cell.rate.as_ref()?.per_s;
        let part = BarPart { value: per_s, colour: "ours".to_owned(), title: String::new() };
        Some((vec![part], format!("{}/s", count(per_s))))
    };
    let about = "Enough calls in flight to keep the server busy, from a client that encodes nothing; higher is better.";
    let [choices, panels] = by_shape("rates", results, cells, row);
    vec![Block::about(about), choices, panels]
}

/// Returns the choice of a message and a panel for each, the published message first.
fn by_shape(choice: &'static str, results: &JsonResults, cells: &Cells, row: Row) -> [Block; 2] {
    let has_row = |cell: &&EndpointCell| cell.case == Case::plain(cell.case.shape) && row(cell).is_some();
    let others = cells.all.iter().filter(has_row).map(|cell| cell.case.shape);
    let shapes = distinct(std::iter::once(results.settings.published).chain(others));
    let row = |cell: &EndpointCell| {
        let (parts, shown) = row(cell)?;
        Some(BarRow {
            name: cell.endpoint.stack.to_string(),
            note: cell.endpoint.protocol.title().to_owned(),
            class: if cell.endpoint.stack.is_ours() { "ours" } else { "" },
            bars: vec![parts],
            shown,
            ..BarRow::default()
        })
    };
    let panel = |&shape: &Shape| Bars {
        when: when(choice, [shape.to_string()]),
        rows: cells.of_case(Case::plain(shape)).filter_map(row).collect(),
        ..Bars::default()
    };
    let panels = shapes.iter().map(panel).collect();
    let named = shapes.iter().map(|shape| (shape.to_string(), title(*shape)));
    [Block::Choices(vec![Choice::buttons(choice, "Message", named)]), Block::Bars(panels)]
}
