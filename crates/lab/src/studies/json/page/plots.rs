//! What the page’s script draws: when calls took long, and what the number of strings makes of the ratio.

use maud::{Markup, html};
use serde::Serialize;
use thalweg_measure::figures::short;

use super::super::case::Case;
use super::super::cells::{Cell, Cells};
use super::super::results::JsonResults;
use super::super::way::Way;
use crate::echo::{Protocol, Shape};
use crate::load::verdict::Compared;

/// Ways beside gRPC, and their hues.
const BESIDE: [(Protocol, &str); 4] = [
    (Protocol::ConnectH2, "peer-3"),
    (Protocol::JsonH2, "peer-1"),
    (Protocol::JsonHttp1, "peer-5"),
    (Protocol::MsgpackH2, "peer-2"),
];
/// A line needs so many points.
const POINTS_MIN: usize = 2;

/// How a way's cell, and gRPC's, compare.
type Beside = fn(&Cells, &Cell, &Cell) -> Compared;

/// What is drawn.
#[derive(Serialize)]
pub(super) struct Plots {
    spikes: Vec<Spikes>,
    sizes: Vec<Sizes>,
}

/// A way’s calls of the published message.
#[derive(Serialize)]
struct Spikes {
    way: String,
    /// A custom property of the style sheet.
    colour: &'static str,
    windows: Vec<SpikesWindow>,
}

#[derive(Serialize)]
struct SpikesWindow {
    /// How long it was.
    s: f64,
    /// ns.
    p50: u64,
    p99: u64,
    /// The longest: s since it began, and what it took, ns.
    calls: Vec<(f64, u64)>,
}

/// One figure of ways beside gRPC, by the number of strings.
#[derive(Serialize)]
struct Sizes {
    title: &'static str,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: &'static str,
    colour: &'static str,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    /// How many strings.
    n: u32,
    ratio: f64,
    ends: Option<[f64; 2]>,
}

impl Plots {
    pub(super) fn of(results: &JsonResults, cells: &Cells) -> Self {
        let published = cells.of_case(Case::plain(results.settings.published));
        Self { spikes: published.filter_map(spikes).collect(), sizes: sizes(results, cells) }
    }

    /// Those that belong to a question.
    pub(super) fn at(&self, question: &str) -> Markup {
        match question {
            "published" if !self.spikes.is_empty() => html! {
                h3 { "Slow calls over time" }
                p.about {
                    "The windows of each variant are shown one after the other. Half of a window’s calls are below the \
                     line, 99 % below the dashes, and the dots are its ten longest calls."
                }
                div.multiples data-plots="spikes" {}
            },
            "sizes" if !self.sizes.is_empty() => html! {
                h3 { "By the number of strings" }
                p.about { "Relative to gRPC, with 95 % intervals." }
                div.key {
                    @for (protocol, colour) in BESIDE {
                        span { i style={ "background:var(--" (colour) ")" } {} (protocol.title()) }
                    }
                }
                div.multiples data-plots="sizes" {}
            },
            _ => html! {},
        }
    }
}

fn spikes(cell: &Cell) -> Option<Spikes> {
    let windows = cell.latency.as_ref()?.windows.iter().map(|window| SpikesWindow {
        s: seconds(window.took_ns),
        p50: window.p50,
        p99: window.p99,
        calls: window.longest.iter().map(|call| (seconds(call.at_ns), call.took_ns)).collect(),
    });
    let colour = match (cell.way.stack.is_ours(), cell.way.protocol) {
        (true, _) => "ours",
        (false, Protocol::Grpc) => "peer-4",
        (false, _) => "peer-1",
    };
    Some(Spikes { way: cell.way.to_string(), colour, windows: windows.collect() })
}

fn sizes(results: &JsonResults, cells: &Cells) -> Vec<Sizes> {
    let asked = match results.settings.published {
        Shape::Strings { letters, .. } => letters,
        // As long as the published ones.
        _ => 20,
    };
    let mut counts: Vec<u32> = cells
        .all
        .iter()
        .filter_map(|cell| match cell.case.shape {
            Shape::Strings { count, letters } if letters == asked && count > 0 => Some(count),
            _ => None,
        })
        .collect();
    counts.sort_unstable();
    counts.dedup();
    let figures: [(&str, Beside); 2] = [
        ("Time of a call, one at a time", |cells, way, grpc| cells.latency_ratio(way, grpc)),
        // How many times a server’s time, too.
        ("Calls per second of a server: gRPC ÷ variant", |cells, way, grpc| cells.rate_ratio(grpc, way)),
    ];
    let line = |(protocol, colour): (Protocol, &'static str), compared: Beside| {
        let point = |n: u32| {
            let case = Case::plain(Shape::Strings { count: n, letters: asked });
            let (way, grpc) = (cells.at(&Way::ours(protocol), case)?, cells.at(&Way::reference(), case)?);
            let ratio = compared(cells, way, grpc).ratio?;
            let ends = ratio.interval.map(|interval| [short(interval.low), short(interval.high)]);
            Some(Point { n, ratio: short(ratio.ratio), ends })
        };
        let points: Vec<Point> = counts.iter().copied().filter_map(point).collect();
        (points.len() >= POINTS_MIN).then(|| Line { name: protocol.title(), colour, points })
    };
    let figure = |(title, compared)| Sizes {
        title,
        lines: BESIDE.into_iter().filter_map(|way| line(way, compared)).collect(),
    };
    figures.into_iter().map(figure).filter(|figure| !figure.lines.is_empty()).collect()
}

fn seconds(ns: u64) -> f64 {
    short(ns as f64 / 1e9)
}
