//! All figures of a channels study.

use crate::analyse::channels::{Cell, Channels, Line, Panel};
use crate::figures::{count, percent, time};
use crate::report::html::{concat, escaped, short};

const COLUMNS: [&str; 18] = [
    "Way",
    "Call",
    "Round trip",
    "In flight",
    "Rate",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "Connections",
    "Client CPU",
    "Server CPU",
    "Client busy",
    "Server busy",
    "Client calls",
    "Server calls",
    "Errors",
];

pub(super) fn table(channels: &Channels) -> String {
    let heads = COLUMNS.map(|name| format!(r#"<th scope="col"><button type="button">{name}</button></th>"#));
    let rows = channels.panels.iter().flat_map(|panel| {
        panel.lines.iter().flat_map(move |line| line.cells.iter().map(move |cell| row(panel, line, cell)))
    });
    format!("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>", heads.concat(), concat(rows))
}

fn row(panel: &Panel, line: &Line, cell: &Cell) -> String {
    let latency = cell.latency;
    let latencies = [latency.p50, latency.p90, latency.p99, latency.p99_9, latency.max];
    let used = [cell.client, cell.server];
    let counted = cell.system_calls;
    let counted = [counted.map(|it| it.client_per_operation), counted.map(|it| it.server_per_operation)];
    let round_trip_ns = panel.round_trip.as_nanos() as f64;
    [
        format!(r#"<tr><th scope="row">{}</th>"#, escaped(&line.label())),
        format!(r#"<td class="words">{}</td>"#, escaped(panel.call.name())),
        field(Some(round_trip_ns), |ns| if ns > 0.0 { time(ns) } else { "direct".to_owned() }),
        field(Some(f64::from(cell.in_flight)), |in_flight| in_flight.to_string()),
        field(Some(cell.rate_per_s), |rate| format!("{}/s", count(rate))),
        latencies.map(|ns| field(Some(ns as f64), time)).concat(),
        field(cell.connections.map(f64::from), |connections| connections.to_string()),
        used.map(|used| field(used.map(|used| used.ns_per_operation), time)).concat(),
        used.map(|used| field(used.map(|used| used.processors), percent)).concat(),
        counted.map(|calls| field(calls, |calls| format!("{calls:.2}"))).concat(),
        field(Some(cell.errors as f64), count),
        "</tr>".to_owned(),
    ]
    .concat()
}

/// It sorts by its value, whatever unit it is shown in.
fn field(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    match value {
        Some(value) => format!(r#"<td data-v="{}">{}</td>"#, short(value), escaped(&show(value))),
        None => r#"<td data-v="">–</td>"#.to_owned(),
    }
}
