//! All figures of a channels study.

use maud::{Markup, html};

use crate::figures::{count, percent, time};
use crate::report::parts::{field, sorting_head};
use crate::studies::channels::analyse::{Cell, Channels, Line, Panel};

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

pub(super) fn table(channels: &Channels) -> Markup {
    html! {
        table {
            thead {
                tr {
                    @for name in COLUMNS { (sorting_head(name, None)) }
                }
            }
            tbody {
                @for (panel, line, cell) in channels.points() { (row(panel, line, cell)) }
            }
        }
    }
}

fn row(panel: &Panel, line: &Line, cell: &Cell) -> Markup {
    let latency = cell.latency;
    let counted = cell.system_calls;
    let counted = [counted.map(|it| it.client_per_operation), counted.map(|it| it.server_per_operation)];
    let used = [cell.client, cell.server];
    let round_trip_ns = panel.round_trip.as_nanos() as f64;
    html! {
        tr {
            th scope="row" { (line.label()) }
            td.words { (panel.call) }
            (field(Some(round_trip_ns), |ns| if ns > 0.0 { time(ns) } else { "direct".to_owned() }))
            (field(Some(f64::from(cell.in_flight)), |in_flight| in_flight.to_string()))
            (field(Some(cell.rate_per_s), |rate| format!("{}/s", count(rate))))
            @for ns in [latency.p50, latency.p90, latency.p99, latency.p99_9, latency.max] {
                (field(Some(ns as f64), time))
            }
            (field(cell.connections.map(f64::from), |connections| connections.to_string()))
            @for used in used { (field(used.map(|used| used.ns_per_operation), time)) }
            @for used in used { (field(used.map(|used| used.processors), percent)) }
            @for calls in counted { (field(calls, |calls| format!("{calls:.2}"))) }
            (field(Some(cell.errors as f64), count))
        }
    }
}
