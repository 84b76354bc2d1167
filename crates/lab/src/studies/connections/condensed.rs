//! What a study of connections came to, as small JSON: the figures that documents quote, without the windows behind
//! them.

use serde_json::{Value, json};
use thalweg_measure::figures::short;
use thalweg_measure::statistics::Interval;

use super::analyse::{Arrivals, Client, Figures, LoadCell, Server};
use super::analysis::ConnectionsAnalysis;
use crate::load::condensed;
use crate::load::used::Used;

/// The schema's name and version.
const CONDENSED_SCHEMA: &str = "thalweg.lab-condensed/1";

pub(super) fn condensed(study: &ConnectionsAnalysis<'_>) -> String {
    let ConnectionsAnalysis { results, cells, findings, .. } = study;
    let servers = |cell: &LoadCell| cell.servers.iter().map(|it| server(cell, it)).collect::<Vec<_>>();
    let clients = |cell: &LoadCell| cell.clients.iter().map(|it| client(cell, it)).collect::<Vec<_>>();
    let findings = findings.iter().map(|it| json!({"topic": it.topic, "text": it.text}));
    let body = json!({
        "cut": results.settings.cut,
        "stacks": results.stacks,
        "points": cells.loads.iter().flat_map(servers).collect::<Vec<_>>(),
        "clients": cells.loads.iter().flat_map(clients).collect::<Vec<_>>(),
        "arrivals": cells.arrivals.iter().map(arrivals).collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    });
    condensed::text(results, CONDENSED_SCHEMA, &results.settings.arguments, body)
}

fn server(cell: &LoadCell, server: &Server) -> Value {
    let mut value = with_load(cell, figures(&server.figures));
    value["server"] = json!(server.stack);
    value["over_echo"] =
        server.over_floor.filter(|_| !server.is_floor()).map_or(Value::Null, |it| condensed::ratio(Some(it)));
    value["ours_over"] = server.ours_over.map_or(Value::Null, condensed::compared);
    value
}

fn client(cell: &LoadCell, client: &Client) -> Value {
    let mut value = with_load(cell, figures(&client.figures));
    value["client"] = json!(client.stack);
    value
}

fn arrivals(arrivals: &Arrivals) -> Value {
    let mut value = figures(&arrivals.figures);
    value["server"] = json!(arrivals.stack);
    value["tls"] = json!(arrivals.tls);
    value["at_a_time"] = json!(arrivals.at_a_time);
    value["ours_over"] = arrivals.ours_over.map_or(Value::Null, condensed::compared);
    value
}

fn with_load(cell: &LoadCell, mut value: Value) -> Value {
    value["connections"] = json!(cell.load.connections);
    value["active"] = json!(cell.load.active);
    value["in_flight"] = json!(cell.load.in_flight);
    value
}

fn figures(figures: &Figures) -> Value {
    let used = |used: Option<Used>| {
        used.map(|used| {
            json!({
                "user_ns": short(used.user_ns), "system_ns": short(used.system_ns),
                "ns": short(used.ns()), "processors": short(used.processors),
            })
        })
    };
    let latency = figures.latency;
    json!({
        "windows": figures.windows.iter().filter(|window| window.outcome.is_ok()).count(),
        "rate_per_s": short(figures.rate_per_s),
        "rate_low": ends(figures.rate_interval)[0],
        "rate_high": ends(figures.rate_interval)[1],
        "server_time": used(figures.server),
        "server_time_low": ends(figures.server_interval)[0],
        "server_time_high": ends(figures.server_interval)[1],
        "client_time": used(figures.client),
        "p50_ns": latency.p50,
        "p90_ns": latency.p90,
        "p95_ns": latency.p95,
        "p99_ns": latency.p99,
        "p99_9_ns": latency.p99_9,
        "idle_bytes": figures.memory.map(|memory| short(memory.idle)),
        "loaded_bytes": figures.memory.map(|memory| short(memory.loaded)),
        "jain": figures.fairness.map(|fairness| short(fairness.jain)),
        "least_share": figures.fairness.map(|fairness| short(fairness.least)),
        "most_share": figures.fairness.map(|fairness| short(fairness.most)),
        "errors": figures.errors,
    })
}

fn ends(interval: Option<Interval>) -> [Option<f64>; 2] {
    [interval.map(|it| short(it.low)), interval.map(|it| short(it.high))]
}
