//! Tables of a connections study, for its page and for a terminal.

use thalweg_measure::figures::{count, percent, time};
use thalweg_measure::page::table::{Columns, Table, TableCell};

use super::analyse::{ConnectionsCells, ServerCell, evenness, load_of, memory};
use super::findings::bytes;
use crate::load::gathered::MergedCell;
use crate::load::used::ResourceUsage;

type Row<'c> = (Option<&'c ServerCell<'c>>, &'c MergedCell<'c>);

/// Returns the table of servers under the bare client, with a row per load.
pub(super) fn servers(cells: &ConnectionsCells<'_>) -> Table {
    let columns = Columns::<Row<'_>>::default().words("Server", server);
    let columns = server_time(loads(columns))
        .field("÷ echo", |(server, _)| TableCell::ratio(server.and_then(ServerCell::over_echo)))
        .field("Ours ÷ it", ours_over)
        .figure("Server busy", percent, |(_, cell)| Some(cell.server()?.processors))
        .figure("Client time", time, |(_, cell)| cell.client().map(ResourceUsage::ns))
        .figure("Client busy", percent, |(_, cell)| Some(cell.client()?.processors))
        .field("Calls", rate);
    latencies(columns, &["p50", "p90", "p95", "p99", "p99.9"])
        .figure("Jain’s index", |jain| format!("{jain:.3}"), |(_, cell)| Some(evenness(cell)?.jain))
        .figure("Least", percent, |(_, cell)| Some(evenness(cell)?.least))
        .figure("Most", percent, |(_, cell)| Some(evenness(cell)?.most))
        .figure("Idle memory", bytes, |(_, cell)| Some(memory(cell)?.idle))
        .figure("Loaded memory", bytes, |(_, cell)| Some(memory(cell)?.loaded))
        .figure("Established", whole, |(_, cell)| cell.connections().map(f64::from))
        .figure("Errors", count, |(_, cell)| Some(cell.errors() as f64))
        .table(cells.loads.iter().flat_map(|cell| &cell.servers).map(row))
}

/// Returns the table of stacks’ own clients with their own servers.
pub(super) fn clients(cells: &ConnectionsCells<'_>) -> Table {
    let client = |(_, cell): &Row<'_>| cell.pair.map(|pair| pair.client.to_string()).unwrap_or_default();
    let columns = loads(Columns::<Row<'_>>::default().words("Client", client))
        .figure("Client time", time, |(_, cell)| cell.client().map(ResourceUsage::ns))
        .figure("User", time, |(_, cell)| Some(cell.client()?.user_ns))
        .figure("Kernel", time, |(_, cell)| Some(cell.client()?.system_ns))
        .figure("Server time", time, |(_, cell)| cell.server().map(ResourceUsage::ns))
        .field("Calls", rate);
    latencies(columns, &["p50", "p95", "p99"])
        .figure("Errors", count, |(_, cell)| Some(cell.errors() as f64))
        .table(cells.loads.iter().flat_map(|cell| &cell.clients).map(|cell| (None, cell)))
}

/// Returns the table of new connections.
pub(super) fn arrivals(cells: &ConnectionsCells<'_>) -> Table {
    let over = |row: &Row<'_>| format!("{}{}", server(row), if row.1.point.tls { ", TLS" } else { "" });
    let columns = Columns::<Row<'_>>::default().words("Server", over).field("Connections", rate);
    let columns = server_time(columns)
        .figure("Client time", time, |(_, cell)| cell.client().map(ResourceUsage::ns))
        .field("Ours ÷ it", ours_over);
    latencies(columns, &["p50", "p95", "p99"])
        .figure("Errors", count, |(_, cell)| Some(cell.errors() as f64))
        .table(cells.arrivals.iter().map(row))
}

fn row<'c>(server: &'c ServerCell<'c>) -> Row<'c> {
    (Some(server), &server.cell)
}

fn server((server, _): &Row<'_>) -> String {
    server.map(|server| server.stack.to_string()).unwrap_or_default()
}

fn ours_over((server, _): &Row<'_>) -> TableCell {
    TableCell::ratio(server.and_then(|server| server.ours_over?.ratio))
}

fn rate((_, cell): &Row<'_>) -> TableCell {
    TableCell::rate(cell.rate(), cell.rate_interval())
}

fn whole(number: f64) -> String {
    number.to_string()
}

fn loads<'c>(columns: Columns<'c, Row<'c>>) -> Columns<'c, Row<'c>> {
    columns
        .figure("Connections", whole, |(_, cell)| Some(cell.point.connections.into()))
        .figure("Active", whole, |(_, cell)| cell.point.active.map(f64::from))
        .figure("Calls on each", whole, |(_, cell)| Some(load_of(cell.point)?.in_flight.into()))
}

/// Adds the server's processor time with its interval, and its user and system parts.
fn server_time<'c>(columns: Columns<'c, Row<'c>>) -> Columns<'c, Row<'c>> {
    columns
        .field("Server time", |(_, cell)| {
            TableCell::with_interval(cell.server().map(ResourceUsage::ns), time, cell.server_interval())
        })
        .figure("User", time, |(_, cell)| Some(cell.server()?.user_ns))
        .figure("Kernel", time, |(_, cell)| Some(cell.server()?.system_ns))
}

fn latencies<'c>(mut columns: Columns<'c, Row<'c>>, names: &[&'static str]) -> Columns<'c, Row<'c>> {
    for &name in names {
        columns = columns.figure(name, time, move |(_, cell)| cell.latency_named(name));
    }
    columns
}
