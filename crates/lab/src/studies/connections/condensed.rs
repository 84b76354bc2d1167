//! Condensed results of a connections study.

use serde_json::{Value, json};
use thalweg_measure::figures::short;
use thalweg_measure::statistics::Interval;

use super::analyse::{ServerCell, evenness, load_of, memory};
use super::analysis::ConnectionsAnalysis;
use crate::load::condensed;
use crate::load::gathered::MergedCell;
use crate::load::used::ResourceUsage;

pub(super) fn condensed(study: &ConnectionsAnalysis<'_>) -> String {
    let ConnectionsAnalysis { results, cells, findings, .. } = study;
    let body = json!({
        "cut": results.settings.cut,
        "stacks": results.stacks,
        "points": cells.loads.iter().flat_map(|cell| &cell.servers).map(server).collect::<Vec<_>>(),
        "clients": cells.loads.iter().flat_map(|cell| &cell.clients).map(client).collect::<Vec<_>>(),
        "arrivals": cells.arrivals.iter().map(arrivals).collect::<Vec<_>>(),
        "findings": findings,
    });
    condensed::text(results, &results.settings.arguments, body)
}

fn server(server: &ServerCell<'_>) -> Value {
    let mut value = with_load(&server.cell);
    value["server"] = json!(server.stack);
    value["over_echo"] = server.over_echo().map_or(Value::Null, |it| condensed::ratio(Some(it)));
    value["ours_over"] = server.ours_over.map_or(Value::Null, condensed::compared);
    value
}

fn client(cell: &MergedCell<'_>) -> Value {
    let mut value = with_load(cell);
    value["client"] = json!(cell.pair.map(|pair| &pair.client));
    value
}

fn arrivals(server: &ServerCell<'_>) -> Value {
    let mut value = figures(&server.cell);
    value["server"] = json!(server.stack);
    value["tls"] = json!(server.cell.point.tls);
    value["at_a_time"] = json!(server.cell.point.in_flight);
    value["ours_over"] = server.ours_over.map_or(Value::Null, condensed::compared);
    value
}

fn with_load(cell: &MergedCell<'_>) -> Value {
    let mut value = figures(cell);
    if let Some(load) = load_of(cell.point) {
        value["connections"] = json!(load.connections);
        value["active"] = json!(load.active);
        value["in_flight"] = json!(load.in_flight);
    }
    value
}

fn figures(cell: &MergedCell<'_>) -> Value {
    let used = |used: Option<ResourceUsage>| {
        used.map(|used| {
            json!({
                "user_ns": short(used.user_ns), "system_ns": short(used.system_ns),
                "ns": short(used.ns()), "processors": short(used.processors),
            })
        })
    };
    let (rate, server_time) = (ends(cell.rate_interval()), ends(cell.server_interval()));
    let (memory, fairness) = (memory(cell), evenness(cell));
    let latency = |name| cell.latency_named(name).map(|ns| ns as u64);
    json!({
        "windows": cell.valid().count(),
        "rate_per_s": short(cell.rate_per_s()),
        "rate_low": rate[0],
        "rate_high": rate[1],
        "server_time": used(cell.server()),
        "server_time_low": server_time[0],
        "server_time_high": server_time[1],
        "client_time": used(cell.client()),
        "p50_ns": latency("p50"),
        "p90_ns": latency("p90"),
        "p95_ns": latency("p95"),
        "p99_ns": latency("p99"),
        "p99_9_ns": latency("p99.9"),
        "idle_bytes": memory.map(|memory| short(memory.idle)),
        "loaded_bytes": memory.map(|memory| short(memory.loaded)),
        "jain": fairness.map(|fairness| short(fairness.jain)),
        "least_share": fairness.map(|fairness| short(fairness.least)),
        "most_share": fairness.map(|fairness| short(fairness.most)),
        "errors": cell.errors(),
    })
}

fn ends(interval: Option<Interval>) -> [Option<f64>; 2] {
    [interval.map(|it| short(it.low)), interval.map(|it| short(it.high))]
}
