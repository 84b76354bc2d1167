//! Bars: the stages of a call, and calls per second, of all ways at a message that the reader chooses.

use maud::{Markup, html};
use thalweg_measure::figures::{bound, count, time};
use thalweg_measure::page::parts::choices;

use super::super::case::{Case, title};
use super::super::cells::{Cell, Cells};
use super::super::results::JsonResults;
use crate::echo::{STAGES, Shape};

/// What each stage is, in words.
const MEANINGS: [(&str, &str); 7] = [
    ("client-encode", "client encodes"),
    ("request", "on the way there"),
    ("decode", "server decodes"),
    ("handler", "handler"),
    ("encode", "server encodes"),
    ("response", "on the way back"),
    ("client-decode", "client decodes"),
];

/// The published message first, then the others of which there is something to be shown.
fn shapes(results: &JsonResults, cells: &Cells, has: fn(&Cell) -> bool) -> Vec<Shape> {
    let mut shapes = vec![results.settings.published];
    for cell in &cells.all {
        let is_plain = cell.case == Case::plain(cell.case.shape);
        if is_plain && has(cell) && !shapes.contains(&cell.case.shape) {
            shapes.push(cell.case.shape);
        }
    }
    shapes
}

pub(super) fn stages(results: &JsonResults, cells: &Cells) -> Markup {
    let shapes = shapes(results, cells, |cell| cell.latency.is_some());
    let rows = |shape: Shape| {
        let of_shape = cells.of_case(Case::plain(shape)).filter(|cell| cell.latency.is_some());
        let rows: Vec<&Cell> = of_shape.collect();
        let longest = rows.iter().map(|cell| sum(cell)).fold(0.0, f64::max);
        html! { @for cell in rows { (stages_of(cell, longest)) } }
    };
    html! {
        section #stages {
            h2 { "Where a call’s time goes" }
            p.about {
                "One call at a time: the mean of each stage, from the client’s request object to its response object."
            }
            (chosen(&shapes))
            div.key {
                @for (index, (_, meaning)) in MEANINGS.iter().enumerate() {
                    span { i class={ "stage s" (index) } {} (meaning) }
                }
            }
            @for (index, shape) in shapes.iter().enumerate() {
                figure.bars data-shape=(shape) hidden[index > 0] { (rows(*shape)) }
            }
        }
    }
}

pub(super) fn rates(results: &JsonResults, cells: &Cells) -> Markup {
    let shapes = shapes(results, cells, |cell| cell.rate.is_some());
    let rows = |shape: Shape| {
        let rated = cells.of_case(Case::plain(shape)).filter_map(|cell| Some((cell, cell.rate.as_ref()?)));
        let rows: Vec<_> = rated.collect();
        let most = rows.iter().map(|(_, rate)| rate.per_s).fold(0.0, f64::max);
        html! {
            @for (cell, rate) in rows {
                div.way {
                    (name(cell))
                    span.track { i.rate style=(width(rate.per_s, most)) {} }
                    span.value { (count(rate.per_s)) "/s" }
                }
            }
        }
    };
    html! {
        section #rates {
            h2 { "Server capacity" }
            p.about {
                "Enough calls in flight to keep the server busy, from a client that encodes nothing; higher is better."
            }
            (chosen(&shapes))
            @for (index, shape) in shapes.iter().enumerate() {
                figure.bars data-shape=(shape) hidden[index > 0] { (rows(*shape)) }
            }
        }
    }
}

fn chosen(shapes: &[Shape]) -> Markup {
    html! {
        div.controls {
            (choices("Message", "shape", shapes.iter().map(|shape| (shape.to_string(), title(*shape)))))
        }
    }
}

fn sum(cell: &Cell) -> f64 {
    STAGES.into_iter().map(|stage| cell.stage(stage)).sum()
}

fn stages_of(cell: &Cell, longest: f64) -> Markup {
    html! {
        div.way {
            (name(cell))
            span.track {
                @for (index, stage) in STAGES.into_iter().enumerate() {
                    @let ns = cell.stage(stage);
                    @if ns > 0.0 {
                        i class={ "stage s" (index) } style=(width(ns, longest))
                            title={ (MEANINGS[index].1) ": " (time(ns)) } {}
                    }
                }
            }
            span.value { (bound(&time(sum(cell)))) }
        }
    }
}

fn name(cell: &Cell) -> Markup {
    let class = if cell.way.stack.is_ours() { "name ours" } else { "name" };
    html! { span class=(class) { b { (cell.way.stack) } " " (cell.way.protocol.title()) } }
}

fn width(value: f64, of: f64) -> String {
    format!("width:{:.2}%", if of > 0.0 { 100.0 * value / of } else { 0.0 })
}
