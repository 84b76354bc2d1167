//! The tables of a connections study, for its page and for a terminal.

use thalweg_measure::figures::{count, percent, time};
use thalweg_measure::page::table::{Columns, Field, Table};

use super::analyse::{Arrivals, Cells, Client, Figures, LoadCell, Server};
use super::findings::bytes;
use crate::load::used::Used;

type Of<R> = fn(&R) -> &Figures;

/// Servers under the bare client, with a row for each load.
pub(super) fn servers(cells: &Cells) -> Table {
    type Row<'c> = (&'c LoadCell, &'c Server);
    let figures: Of<Row<'_>> = |row| &row.1.figures;
    let columns =
        loads(Columns::<Row<'_>>::default().words("Server", |row| row.1.stack.to_string()), |row| row.0);
    let columns = server_time(columns, figures)
        .field("÷ echo", |row| Field::ratio(row.1.over_floor.filter(|_| !row.1.is_floor())))
        .field("Ours ÷ it", |row| Field::ratio(row.1.ours_over.and_then(|it| it.ratio)))
        .figure("Server busy", percent, move |row| Some(figures(row).server?.processors))
        .figure("Client time", time, move |row| figures(row).client.map(Used::ns))
        .figure("Client busy", percent, move |row| Some(figures(row).client?.processors));
    let columns = latency(calls(columns, figures), figures, &["p50", "p90", "p95", "p99", "p99.9"])
        .figure("Jain’s index", |jain| format!("{jain:.3}"), move |row| Some(figures(row).fairness?.jain))
        .figure("Least", percent, move |row| Some(figures(row).fairness?.least))
        .figure("Most", percent, move |row| Some(figures(row).fairness?.most))
        .figure("Idle memory", bytes, move |row| Some(figures(row).memory?.idle))
        .figure("Loaded memory", bytes, move |row| Some(figures(row).memory?.loaded))
        .figure("Established", whole, move |row| figures(row).established.map(f64::from));
    errors(columns, figures)
        .table(cells.loads.iter().flat_map(|cell| cell.servers.iter().map(move |server| (cell, server))))
}

/// Stacks’ own clients at their own servers.
pub(super) fn clients(cells: &Cells) -> Table {
    type Row<'c> = (&'c LoadCell, &'c Client);
    let figures: Of<Row<'_>> = |row| &row.1.figures;
    let columns =
        loads(Columns::<Row<'_>>::default().words("Client", |row| row.1.stack.to_string()), |row| row.0)
            .figure("Client time", time, move |row| figures(row).client.map(Used::ns))
            .figure("User", time, move |row| Some(figures(row).client?.user_ns))
            .figure("Kernel", time, move |row| Some(figures(row).client?.system_ns))
            .figure("Server time", time, move |row| figures(row).server.map(Used::ns));
    let columns = latency(calls(columns, figures), figures, &["p50", "p95", "p99"]);
    errors(columns, figures)
        .table(cells.loads.iter().flat_map(|cell| cell.clients.iter().map(move |client| (cell, client))))
}

/// New connections.
pub(super) fn arrivals(cells: &Cells) -> Table {
    let figures: Of<&Arrivals> = |row| &row.figures;
    let columns = Columns::<&Arrivals>::default()
        .words("Server", |row| format!("{}{}", row.stack, if row.tls { ", TLS" } else { "" }))
        .field("Connections", move |row| {
            Field::rate(Some(row.figures.rate_per_s), row.figures.rate_interval)
        });
    let columns = server_time(columns, figures)
        .figure("Client time", time, move |row| row.figures.client.map(Used::ns))
        .field("Ours ÷ it", |row| Field::ratio(row.ours_over.and_then(|it| it.ratio)));
    errors(latency(columns, figures, &["p50", "p95", "p99"]), figures).table(&cells.arrivals)
}

fn whole(number: f64) -> String {
    number.to_string()
}

fn loads<'a, R: 'a>(columns: Columns<'a, R>, cell: fn(&R) -> &LoadCell) -> Columns<'a, R> {
    columns
        .figure("Connections", whole, move |row| Some(cell(row).load.connections.into()))
        .figure("Active", whole, move |row| Some(cell(row).load.active.into()))
        .figure("Calls on each", whole, move |row| Some(cell(row).load.in_flight.into()))
}

/// The server's processor time with its interval, and its two parts.
fn server_time<'a, R: 'a>(columns: Columns<'a, R>, of: Of<R>) -> Columns<'a, R> {
    columns
        .field("Server time", move |row| {
            Field::sure(of(row).server.map(Used::ns), time, of(row).server_interval)
        })
        .figure("User", time, move |row| Some(of(row).server?.user_ns))
        .figure("Kernel", time, move |row| Some(of(row).server?.system_ns))
}

fn calls<'a, R: 'a>(columns: Columns<'a, R>, of: Of<R>) -> Columns<'a, R> {
    columns.field("Calls", move |row| Field::rate(Some(of(row).rate_per_s), of(row).rate_interval))
}

fn errors<'a, R: 'a>(columns: Columns<'a, R>, of: Of<R>) -> Columns<'a, R> {
    columns.figure("Errors", count, move |row| Some(of(row).errors as f64))
}

fn latency<'a, R: 'a>(mut columns: Columns<'a, R>, of: Of<R>, names: &[&'static str]) -> Columns<'a, R> {
    for &name in names {
        columns = columns.figure(name, time, move |row| of(row).latency.named(name));
    }
    columns
}
