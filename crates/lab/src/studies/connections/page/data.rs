//! What the page's script draws.

use maud::Markup;
use serde::Serialize;
use thalweg_measure::figures::short;
use thalweg_measure::page::parts::script_json;

use crate::report::multiples::{Line, Way, ends, peer_colour};
use crate::stack::{OURS, SOCKET, Stack};
use crate::studies::connections::analyse::{Cells, Load, LoadCell, Server};

#[derive(Serialize)]
struct Data {
    ways: Vec<Way>,
    panels: Vec<PanelData>,
}

#[derive(Serialize)]
struct PanelData {
    title: String,
    lines: Vec<Line<CellData>>,
}

#[derive(Serialize)]
struct CellData {
    /// Connections.
    n: u32,
    /// ns; 0 where it is not known.
    server: f64,
    server_ends: Option<[f64; 2]>,
    server_windows: Vec<f64>,
    rate: f64,
    rate_ends: Option<[f64; 2]>,
    rate_windows: Vec<f64>,
    p50: u64,
    p90: u64,
    p95: Option<u64>,
    p99: u64,
    p99_9: u64,
}

pub(super) fn json(cells: &Cells) -> Markup {
    let stacks = cells.stacks();
    let ways = stacks.iter().enumerate().map(|(id, stack)| way(id, stack));
    script_json(&Data { ways: ways.collect(), panels: panels(cells, &stacks) })
}

fn way(id: usize, stack: &Stack) -> Way {
    let (colour, dash, width) = match stack.name() {
        OURS => ("ours", "", 2.6),
        SOCKET => ("muted", "2 4", 1.8),
        _ => (peer_colour(id.saturating_sub(1)), "", 1.8),
    };
    Way { id, label: stack.to_string(), colour, dash, width }
}

/// A panel for each share of active connections and each number of calls on them. Shares are told from the largest
/// number of connections: of few, different shares are the same.
fn panels(cells: &Cells, stacks: &[&Stack]) -> Vec<PanelData> {
    let Some(most) = cells.loads.iter().map(|cell| cell.load.connections).max() else { return Vec::new() };
    let whole = cells.loads.iter().filter(|cell| cell.load.connections == most);
    let panel = |at: &LoadCell| {
        let share = f64::from(at.load.active) / f64::from(most);
        let of_panel = |cell: &&LoadCell| {
            let Load { connections, active, in_flight } = cell.load;
            let expected = (f64::from(connections) * share).ceil().max(1.0) as u32;
            in_flight == at.load.in_flight && active == expected
        };
        let line = |(way, stack): (usize, &&Stack)| {
            let of_panel = cells.loads.iter().filter(of_panel);
            let cells = of_panel.filter_map(|it| Some(cell(it, it.server(stack)?)));
            Line { way, cells: cells.collect() }
        };
        PanelData {
            title: format!("{:.3} % active, {} on each", short(share * 100.0), at.load.in_flight)
                .replace(".000", ""),
            lines: stacks.iter().enumerate().map(line).collect(),
        }
    };
    whole.map(panel).collect()
}

fn cell(cell: &LoadCell, server: &Server) -> CellData {
    let figures = &server.figures;
    let windows = || figures.windows.iter().filter_map(|window| window.outcome.as_ref().ok());
    let latency = figures.latency;
    CellData {
        n: cell.load.connections,
        server: short(server.ns().unwrap_or(0.0)),
        server_ends: figures.server_interval.map(ends),
        server_windows: windows().map(|window| short(window.server_ns)).collect(),
        rate: short(figures.rate_per_s),
        rate_ends: figures.rate_interval.map(ends),
        rate_windows: windows().map(|window| short(window.rate_per_s)).collect(),
        p50: latency.p50,
        p90: latency.p90,
        p95: latency.p95,
        p99: latency.p99,
        p99_9: latency.p99_9,
    }
}
