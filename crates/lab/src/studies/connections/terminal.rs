//! A connections study in a terminal: what a call costs by connections, and what new connections cost.

use thalweg_measure::figures::{count, percent, ratio_text, time};
use thalweg_measure::text::{aligned, wrapped};

use super::analyse::{Arrivals, Client, Figures, LoadCell, Server};
use super::analysis::ConnectionsAnalysis;
use super::findings::bytes;
use crate::load::verdict::Compared;

/// The answer, the tables, and what they say.
pub(super) fn text(study: &ConnectionsAnalysis<'_>) -> String {
    let cells = &study.cells;
    let mut text = study.answer.as_deref().map(wrapped).unwrap_or_default();
    text += &servers(&cells.loads);
    text += &clients(&cells.loads);
    text += &arrivals(&cells.arrivals);
    for finding in &study.findings {
        text += &wrapped(&format!("{}: {}", finding.topic, finding.text));
    }
    text
}

fn heads(heads: &[&str]) -> Vec<String> {
    heads.iter().map(|&head| head.to_owned()).collect()
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn load(cell: &LoadCell) -> [String; 3] {
    let load = cell.load;
    [load.connections, load.active, load.in_flight].map(|number| number.to_string())
}

/// Processor time of an operation, and its parts: `4.21 µs (1.2 + 3.0)`.
fn server_time(figures: &Figures) -> Option<String> {
    let used = figures.server?;
    let [user, system] = [used.user_ns, used.system_ns].map(|ns| format!("{:.1}", ns / 1e3));
    Some(format!("{} ({user} + {system})", time(used.ns())))
}

fn factor(compared: Option<Compared>) -> Option<String> {
    compared?.ratio.map(ratio_text)
}

fn servers(cells: &[LoadCell]) -> String {
    let mut rows = vec![heads(&[
        "connections",
        "active",
        "calls on each",
        "server",
        "server time (user + kernel µs)",
        "÷ echo",
        "ours ÷ it",
        "busy",
        "client time",
        "calls/s",
        "p50",
        "p90",
        "p95",
        "p99",
        "p99.9",
        "Jain",
        "memory",
    ])];
    let row = |cell: &LoadCell, server: &Server| {
        let figures = &server.figures;
        let latency = figures.latency;
        let [p50, p90, p99, p99_9] =
            [latency.p50, latency.p90, latency.p99, latency.p99_9].map(|ns| time(ns as f64));
        let over_floor = server.over_floor.filter(|_| !server.is_floor());
        let mut row = load(cell).to_vec();
        row.extend([
            server.stack.to_string(),
            or_none(server_time(figures)),
            or_none(over_floor.map(ratio_text)),
            or_none(factor(server.ours_over)),
            or_none(figures.server.map(|used| percent(used.processors))),
            or_none(figures.client.map(|used| time(used.ns()))),
            count(figures.rate_per_s),
            p50,
            p90,
            or_none(latency.p95.map(|ns| time(ns as f64))),
            p99,
            p99_9,
            or_none(figures.fairness.map(|it| format!("{:.3}", it.jain))),
            or_none(figures.memory.map(|memory| bytes(memory.idle))),
        ]);
        row
    };
    rows.extend(cells.iter().flat_map(|cell| cell.servers.iter().map(move |server| row(cell, server))));
    titled("servers under the bare client: processor time of a call, memory of an idle connection", &rows)
}

fn clients(cells: &[LoadCell]) -> String {
    let mut rows = vec![heads(&[
        "connections",
        "active",
        "calls on each",
        "client",
        "client time",
        "server time",
        "calls/s",
        "p50",
        "p95",
        "p99",
    ])];
    let row = |cell: &LoadCell, client: &Client| {
        let figures = &client.figures;
        let mut row = load(cell).to_vec();
        row.extend([
            client.stack.to_string(),
            or_none(figures.client.map(|used| time(used.ns()))),
            or_none(figures.server.map(|used| time(used.ns()))),
            count(figures.rate_per_s),
            time(figures.latency.p50 as f64),
            or_none(figures.latency.p95.map(|ns| time(ns as f64))),
            time(figures.latency.p99 as f64),
        ]);
        row
    };
    rows.extend(cells.iter().flat_map(|cell| cell.clients.iter().map(move |client| row(cell, client))));
    titled("stacks’ own clients at their own servers: processor time of a call", &rows)
}

fn arrivals(arrivals: &[Arrivals]) -> String {
    let mut rows = vec![heads(&[
        "server",
        "",
        "connections/s",
        "server time",
        "client time",
        "ours ÷ it",
        "p50",
        "p95",
        "p99",
    ])];
    rows.extend(arrivals.iter().map(|it| {
        let figures = &it.figures;
        vec![
            it.stack.to_string(),
            if it.tls { "TLS" } else { "plain" }.to_owned(),
            count(figures.rate_per_s),
            or_none(server_time(figures)),
            or_none(figures.client.map(|used| time(used.ns()))),
            or_none(factor(it.ours_over)),
            time(figures.latency.p50 as f64),
            or_none(figures.latency.p95.map(|ns| time(ns as f64))),
            time(figures.latency.p99 as f64),
        ]
    }));
    titled("new connections: each connects, makes a call, and ends", &rows)
}

/// Nothing of a table without a row.
fn titled(title: &str, rows: &[Vec<String>]) -> String {
    if rows.len() < 2 { String::new() } else { format!("{title}\n{}\n", aligned(rows)) }
}
