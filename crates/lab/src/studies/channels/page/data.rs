//! What the page's script draws.

use maud::Markup;
use serde::Serialize;
use thalweg_measure::figures::{bound, short};
use thalweg_measure::page::parts::script_json;

use crate::load::Strategy;
use crate::report::multiples::{Line, Way, ends, peer_colour};
use crate::stack::OURS;
use crate::studies::channels::analyse::{Cell, Channels, label, network};

#[derive(Serialize)]
struct Data {
    calls: Vec<&'static str>,
    ways: Vec<Way>,
    panels: Vec<PanelData>,
    lanes: Vec<LanesPanel>,
}

#[derive(Serialize)]
struct PanelData {
    call: &'static str,
    /// What it adds to a round trip.
    network: String,
    /// Operations per second of the fastest lone call.
    ideal: Option<f64>,
    lines: Vec<Line<CellData>>,
}

#[derive(Serialize)]
struct CellData {
    n: u32,
    rate: f64,
    /// The interval of the rate; absent with too few windows.
    rate_ends: Option<[f64; 2]>,
    /// Operations per second in each good window.
    windows: Vec<f64>,
    p50: u64,
    p50_ends: Option<[f64; 2]>,
    p90: u64,
    p95: Option<u64>,
    p99: u64,
    p99_9: u64,
    max: u64,
    connections: Option<u32>,
}

/// The lanes of one adaptive client at one kind of call and delay.
#[derive(Serialize)]
pub(super) struct LanesPanel {
    pub(super) title: String,
    series: Vec<LanesSeries>,
}

#[derive(Serialize)]
struct LanesSeries {
    /// Calls in flight.
    n: u32,
    /// (s since measuring began, lanes from then on)
    steps: Vec<(f64, u32)>,
    /// When the window ended, s.
    end: f64,
}

pub(super) fn json(channels: &Channels, lanes: Vec<LanesPanel>) -> Markup {
    let ways = channels.ways();
    let mut names: Vec<&str> = Vec::new();
    for (pair, _) in &ways {
        if pair.client.name() != OURS && !names.contains(&pair.client.name()) {
            names.push(pair.client.name());
        }
    }
    let colour =
        |name: &str| names.iter().position(|known| *known == name).map_or("ours", |index| peer_colour(index));
    let way = |(id, (pair, strategy)): (usize, &(&_, _))| {
        let pair: &crate::stack::Pair = pair;
        let (dash, width) = stroke(*strategy, pair.client.variant());
        Way { id, label: label(pair, *strategy), colour: colour(pair.client.name()), dash, width }
    };
    let panels = channels.panels.iter().map(|panel| PanelData {
        call: panel.call.name(),
        network: bound(&network(panel.round_trip)),
        ideal: panel.ideal(1).map(short),
        lines: panel
            .lines
            .iter()
            .map(|line| Line {
                way: ways.iter().position(|way| *way == (&line.pair, line.strategy)).unwrap_or_default(),
                cells: line.cells.iter().map(cell).collect(),
            })
            .collect(),
    });
    script_json(&Data {
        calls: channels.calls().into_iter().map(crate::record::CallType::name).collect(),
        ways: ways.iter().enumerate().map(way).collect(),
        panels: panels.collect(),
        lanes,
    })
}

fn cell(cell: &Cell) -> CellData {
    let latency = cell.latency;
    CellData {
        n: cell.in_flight,
        rate: short(cell.rate_per_s),
        rate_ends: cell.rate_interval.map(ends),
        windows: cell
            .windows
            .iter()
            .filter_map(|it| Some(short(it.outcome.as_ref().ok()?.rate_per_s)))
            .collect(),
        p50_ends: cell.p50_interval.map(ends),
        p50: latency.p50,
        p90: latency.p90,
        p95: latency.p95,
        p99: latency.p99,
        p99_9: latency.p99_9,
        max: latency.max,
        connections: cell.connections,
    }
}

/// Of each line that has lanes over time, in the order of measuring.
pub(super) fn lanes(channels: &Channels) -> Vec<LanesPanel> {
    let mut panels = Vec::new();
    for panel in &channels.panels {
        for line in &panel.lines {
            let cells = line.cells.iter().filter(|cell| !cell.lanes.is_empty());
            let series: Vec<LanesSeries> = cells
                .map(|cell| LanesSeries {
                    n: cell.in_flight,
                    steps: cell.lanes.iter().map(|it| (short(it.at_ns as f64 / 1e9), it.lanes)).collect(),
                    end: short(cell.window_ns as f64 / 1e9),
                })
                .collect();
            if !series.is_empty() {
                let title = format!("{}, {}, {}", line.pair.client, panel.call, network(panel.round_trip));
                panels.push(LanesPanel { title, series });
            }
        }
    }
    panels
}

/// How a line is drawn, beside its hue: a dash for each way, and how wide it is.
fn stroke(strategy: Strategy, variant: Option<&str>) -> (&'static str, f64) {
    match (strategy, variant) {
        (Strategy::Adaptive, _) => ("", 3.2),
        (Strategy::Fixed(1), _) => ("", 1.6),
        (Strategy::Fixed(_), Some("shared")) | (Strategy::PerWorker, _) => ("2 3", 2.0),
        (Strategy::Fixed(_), Some("distinct")) => ("5 2", 1.6),
        (Strategy::Fixed(_), _) => ("8 4", 2.0),
        (Strategy::PerCall, _) => ("10 3 2 3", 1.6),
    }
}
