//! The tables of all figures.

use maud::{Markup, html};
use thalweg_measure::figures::{count, from_to, interval_figure, percent, ratio_figure, time};
use thalweg_measure::page::parts::{field, sorting_head, sure_field};
use thalweg_measure::statistics::Ratio;

use crate::studies::connections::analyse::{Arrivals, Client, Figures, LoadCell, Server, Used};
use crate::studies::connections::findings::bytes;

const LOAD: [&str; 3] = ["Connections", "Active", "Calls on each"];
const SERVER: [&str; 21] = [
    "Server time",
    "User",
    "Kernel",
    "÷ echo",
    "Ours ÷ it",
    "Server busy",
    "Client time",
    "Client busy",
    "Calls",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "Jain’s index",
    "Least",
    "Most",
    "Idle memory",
    "Loaded memory",
    "Established",
    "Errors",
];
const CLIENT: [&str; 9] =
    ["Client time", "User", "Kernel", "Server time", "Calls", "p50", "p95", "p99", "Errors"];
const ARRIVALS: [&str; 10] = [
    "Connections",
    "Server time",
    "User",
    "Kernel",
    "Client time",
    "Ours ÷ it",
    "p50",
    "p95",
    "p99",
    "Errors",
];

pub(super) fn servers(cells: &[LoadCell]) -> Markup {
    html! {
        table {
            (heads("Server", LOAD.iter().chain(&SERVER)))
            tbody {
                @for cell in cells {
                    @for server in &cell.servers { (server_row(cell, server)) }
                }
            }
        }
    }
}

pub(super) fn clients(cells: &[LoadCell]) -> Markup {
    html! {
        table {
            (heads("Client", LOAD.iter().chain(&CLIENT)))
            tbody {
                @for cell in cells {
                    @for client in &cell.clients { (client_row(cell, client)) }
                }
            }
        }
    }
}

pub(super) fn arrivals(arrivals: &[Arrivals]) -> Markup {
    html! {
        table {
            (heads("Server", ARRIVALS.iter()))
            tbody { @for one in arrivals { (arrivals_row(one)) } }
        }
    }
}

fn heads<'a>(first: &str, heads: impl Iterator<Item = &'a &'a str>) -> Markup {
    html! {
        thead {
            tr {
                (sorting_head(first, None))
                @for head in heads { (sorting_head(head, None)) }
            }
        }
    }
}

fn load(cell: &LoadCell) -> Markup {
    let load = cell.load;
    html! {
        @for number in [load.connections, load.active, load.in_flight] {
            (field(Some(f64::from(number)), |number| number.to_string()))
        }
    }
}

fn server_row(cell: &LoadCell, server: &Server) -> Markup {
    let figures = &server.figures;
    let latency = figures.latency;
    let over_floor = server.over_floor.filter(|_| !server.is_floor());
    let busy = [figures.server, figures.client].map(|used| used.map(|used| used.processors));
    html! {
        tr {
            th scope="row" { (server.stack) }
            (load(cell))
            (server_fields(figures))
            (ratio(over_floor))
            (ratio(server.ours_over.and_then(|compared| compared.ratio)))
            (field(busy[0], percent))
            (field(figures.client.map(Used::ns), time))
            (field(busy[1], percent))
            (rate(figures))
            @for ns in [Some(latency.p50), Some(latency.p90), latency.p95, Some(latency.p99), Some(latency.p99_9)] {
                (field(ns.map(|ns| ns as f64), time))
            }
            (field(figures.fairness.map(|it| it.jain), |jain| format!("{jain:.3}")))
            (field(figures.fairness.map(|it| it.least), percent))
            (field(figures.fairness.map(|it| it.most), percent))
            (field(figures.memory.map(|memory| memory.idle), bytes))
            (field(figures.memory.map(|memory| memory.loaded), bytes))
            (field(figures.established.map(f64::from), |many| many.to_string()))
            (field(Some(figures.errors as f64), count))
        }
    }
}

fn client_row(cell: &LoadCell, client: &Client) -> Markup {
    let figures = &client.figures;
    html! {
        tr {
            th scope="row" { (client.stack) }
            (load(cell))
            (field(figures.client.map(Used::ns), time))
            (field(figures.client.map(|used| used.user_ns), time))
            (field(figures.client.map(|used| used.system_ns), time))
            (field(figures.server.map(Used::ns), time))
            (rate(figures))
            @for ns in few(figures) { (field(ns, time)) }
            (field(Some(figures.errors as f64), count))
        }
    }
}

fn arrivals_row(arrivals: &Arrivals) -> Markup {
    let figures = &arrivals.figures;
    html! {
        tr {
            th scope="row" { (arrivals.stack) @if arrivals.tls { ", TLS" } }
            (rate(figures))
            (server_fields(figures))
            (field(figures.client.map(Used::ns), time))
            (ratio(arrivals.ours_over.and_then(|compared| compared.ratio)))
            @for ns in few(figures) { (field(ns, time)) }
            (field(Some(figures.errors as f64), count))
        }
    }
}

/// The server's processor time with its interval, and its two parts.
fn server_fields(figures: &Figures) -> Markup {
    html! {
        (sure_field(figures.server.map(Used::ns), time, from_to(figures.server_interval, time)))
        (field(figures.server.map(|used| used.user_ns), time))
        (field(figures.server.map(|used| used.system_ns), time))
    }
}

/// Median, p95 and p99.
fn few(figures: &Figures) -> [Option<f64>; 3] {
    let latency = figures.latency;
    [Some(latency.p50), latency.p95, Some(latency.p99)].map(|ns| ns.map(|ns| ns as f64))
}

fn rate(figures: &Figures) -> Markup {
    let shown = |rate: f64| format!("{}/s", count(rate));
    sure_field(Some(figures.rate_per_s), shown, from_to(figures.rate_interval, count))
}

fn ratio(ratio: Option<Ratio>) -> Markup {
    let shown = |ratio: f64| format!("{} ×", ratio_figure(ratio));
    sure_field(ratio.map(|it| it.ratio), shown, ratio.and_then(interval_figure))
}
