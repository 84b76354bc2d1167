//! Tables of all figures of our own pair, and of its spikes.

use thalweg_measure::figures::{count, percent, throughput, time};
use thalweg_measure::page::section::{Choice, When};
use thalweg_measure::page::table::{Columns, Table, TableCell};

use super::anchor::anchor;
use crate::load::gathered::MergedCell;
use crate::load::{Kind, Work};
use crate::record::{LoadResult, Spike};
use crate::studies::sizes::analysis::SizesAnalysis;
use crate::studies::sizes::lines::SizesLines;

/// Returns the most extreme wait of each line of calls, relative to its cell's typical wait, in descending order.
pub(super) fn spikes(lines: &SizesLines<'_>) -> Table {
    type Row<'a> = (&'a MergedCell<'a>, Spike);
    let typical_ns = |cell: &MergedCell<'_>| cell.typical_ns().unwrap_or_default();
    let ratio = move |&(cell, spike): &Row<'_>| spike.took_ns as f64 / typical_ns(cell).max(1.0);
    let of_line = lines.calls().filter_map(|line| {
        let all = line.cells.iter().filter_map(|cell| Some((cell, *cell.spike()?)));
        all.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    });
    let mut spikes: Vec<Row<'_>> = of_line.collect();
    spikes.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    Columns::default()
        .field("Work", |(cell, _): &Row<'_>| linked(cell))
        .figure("Wait", time, |(_, spike)| Some(spike.took_ns as f64))
        .field("Size", |(cell, _)| size(cell))
        .words("Transport", |(cell, _)| cell.point.transport.to_string())
        .figure("Typical there", time, move |(cell, _)| Some(typical_ns(cell)))
        .figure("Wait / typical", |ratio| format!("{} ×", count(ratio)), move |row| Some(ratio(row)))
        .figure("After", time, |(_, spike)| Some(spike.at_ns as f64))
        .table(spikes)
}

/// Names of the row filters.
const TRANSPORT: &str = "figures-transport";
const KIND: &str = "figures-kind";

/// Returns the row filters of [`table`].
pub(super) fn filters(lines: &SizesLines<'_>) -> Vec<Choice> {
    let options = |names: Vec<String>| {
        let named = names.into_iter().map(|name| (name.clone(), name));
        std::iter::once((String::new(), "all".to_owned())).chain(named).collect::<Vec<_>>()
    };
    let transports = lines.transports().iter().map(ToString::to_string).collect();
    let kinds = lines.kinds().into_iter().map(Kind::label).collect();
    vec![
        Choice::list(TRANSPORT, "Transport", options(transports)),
        Choice::list(KIND, "Work", options(kinds)),
    ]
}

/// Returns a table with a row for each cell of our own pair and of the bare sockets.
pub(super) fn table(study: &SizesAnalysis<'_>) -> Table {
    let styles = study.own.iter().map(|cell| {
        let when = When::from([
            (TRANSPORT, vec![cell.point.transport.to_string()]),
            (KIND, vec![cell.kind().label()]),
        ]);
        (matches!(cell.point.work, Work::Socket(_)).then_some("reference"), when)
    });
    Table { row_styles: styles.collect(), ..columns(&study.lines).table(&study.own) }
}

type Row<'a> = &'a MergedCell<'a>;

fn columns<'a>(lines: &'a SizesLines<'a>) -> Columns<'a, Row<'a>> {
    let measured = |of: fn(&LoadResult) -> Option<f64>| move |cell: &Row<'_>| of(cell.merged()?);
    let known = |of: fn(&LoadResult) -> TableCell| {
        move |cell: &Row<'_>| cell.merged().map_or_else(|| TableCell::figure(None, count), of)
    };
    let mut columns = Columns::<Row<'_>>::default()
        .field("Work", |cell| linked(cell))
        .words("Transport", |cell| cell.point.transport.to_string())
        .field("Size", |cell| size(cell))
        .field("Rate", |cell| TableCell::rate(cell.rate(), cell.rate_interval()))
        .figure("Throughput", throughput, |cell| Some(cell.bytes_per_s()).filter(|_| cell.rate().is_some()))
        .figure("Of socket", percent, |cell| lines.share_of_socket(cell))
        .field("Median", |cell| {
            TableCell::with_interval(cell.latency_named("p50"), time, cell.p50_interval())
        });
    for (header, name) in [
        ("p90", "p90"),
        ("p95", "p95"),
        ("p99", "p99"),
        ("p99.9", "p99.9"),
        ("p99.99", "p99.99"),
        ("Max", "max"),
        ("Mean", "mean"),
        ("Min", "min"),
    ] {
        columns = columns.figure(header, time, move |cell| cell.latency_named(name));
    }
    columns
        .figure("Pace", time, measured(|it| Some(it.pace_ns?.mean)))
        .figure("Largest gap", time, measured(|it| Some(it.pace_ns?.gap_max as f64)))
        .figure("CPU", time, measured(|it| it.client_cpu_per_call.map(|cpu| cpu.user_ns + cpu.system_ns)))
        .figure("Operations", count, measured(|it| Some(it.messages as f64)))
        .figure("Calls", count, measured(|it| Some(it.calls as f64)))
        .field("Errors", known(errors))
        .field("Connections", known(connections))
        .figure("Measured for", time, measured(|it| Some(it.duration_ns as f64)))
        .field("Notes", |cell| notes(cell))
}

/// Returns a kind's name, linked to its cell's windows.
fn linked(cell: &MergedCell<'_>) -> TableCell {
    let link = anchor(cell.kind(), cell.point.transport, cell.size());
    TableCell { link: Some(link), ..TableCell::words(cell.kind().label()) }
}

fn size(cell: &MergedCell<'_>) -> TableCell {
    TableCell::figure(Some(cell.size().0 as f64), |_| cell.size().to_string())
}

fn errors(measured: &LoadResult) -> TableCell {
    let errors = measured.error_count();
    let shown = |_| match errors {
        0 => "0".to_owned(),
        _ => measured.errors.iter().map(|(code, n)| format!("{n} {code}")).collect::<Vec<_>>().join(", "),
    };
    TableCell::figure(Some(errors as f64), shown)
}

fn connections(measured: &LoadResult) -> TableCell {
    let connections = measured.connections;
    TableCell::figure(connections.established.map(f64::from), |established| {
        if connections.established == Some(connections.asked) {
            established.to_string()
        } else {
            format!("{established} of {}", connections.asked)
        }
    })
}

/// Returns the notes, and the number of windows not in the figures.
fn notes(cell: &MergedCell<'_>) -> TableCell {
    let Some(measured) = cell.merged() else {
        return TableCell::words(format!("no valid window: {}", cell.invalid_reasons())).class("failed");
    };
    let mut notes: Vec<String> = measured.notes.iter().map(|note| note.text.clone()).collect();
    let (all, valid) = (cell.all.len(), cell.valid().count());
    if valid < all {
        notes.push(format!("{} of {all} windows are not valid: {}", all - valid, cell.invalid_reasons()));
    }
    TableCell::words(notes.join("; "))
}
