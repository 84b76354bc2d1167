//! The table of all figures of our own pair, and that of the spikes.

use thalweg_measure::figures::{count, percent, throughput, time};
use thalweg_measure::page::section::{Choice, When};
use thalweg_measure::page::table::{Columns, Field, Table};
use thalweg_measure::size::ByteSize;

use super::anchor::anchor;
use crate::load::gathered::{Windows, gathered};
use crate::load::{Kind, LabResults, Transport, Work};
use crate::record::{LoadResult, Spike};
use crate::studies::sizes::lines::{Analysis, Cell, Line};

/// Of each line of calls the wait that lies farthest from what is typical beside it, farthest first.
pub(super) fn spikes(analysis: &Analysis) -> Table {
    type Row<'a> = (&'a Line, &'a Cell, Spike);
    let typical_ns = |cell: &Cell| cell.typical_ns().unwrap_or_default();
    let ratio = move |&(_, cell, spike): &Row<'_>| spike.took_ns as f64 / typical_ns(cell).max(1.0);
    let mut spikes: Vec<Row<'_>> = analysis
        .calls()
        .filter_map(|line| {
            let all = line.cells.iter().filter_map(|cell| Some((line, cell, *cell.spikes.first()?)));
            all.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
        })
        .collect();
    spikes.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    Columns::default()
        .field("Work", |(line, cell, _): &Row<'_>| linked(line.kind, line.transport, cell.size))
        .figure("Wait", time, |(.., spike)| Some(spike.took_ns as f64))
        .field("Size", |(_, cell, _)| size_field(cell.size))
        .words("Transport", |(line, ..)| line.transport.to_string())
        .figure("Typical there", time, move |(_, cell, _)| Some(typical_ns(cell)))
        .figure("Wait / typical", |ratio| format!("{} ×", count(ratio)), move |row| Some(ratio(row)))
        .figure("After", time, |(.., spike)| Some(spike.at_ns as f64))
        .table(spikes)
}

/// Names of the choices of rows.
const TRANSPORT: &str = "figures-transport";
const KIND: &str = "figures-kind";

/// Choices of the rows of [`table`].
pub(super) fn filters(analysis: &Analysis) -> Vec<Choice> {
    let options = |names: Vec<String>| {
        let named = names.into_iter().map(|name| (name.clone(), name));
        std::iter::once((String::new(), "all".to_owned())).chain(named).collect::<Vec<_>>()
    };
    let transports = analysis.transports().iter().map(ToString::to_string).collect();
    let kinds = analysis.kinds().into_iter().map(Kind::label).collect();
    vec![
        Choice::list(TRANSPORT, "Transport", options(transports)),
        Choice::list(KIND, "Work", options(kinds)),
    ]
}

/// A cell: its windows, what they came to together, and what the analysis made of them.
struct Row<'a> {
    windows: &'a Windows<'a>,
    measured: Option<LoadResult>,
    cell: Option<&'a Cell>,
}

pub(super) fn table(results: &LabResults, analysis: &Analysis) -> Table {
    let ours = results.reference();
    let gathered = gathered(&results.points);
    let own: Vec<&Windows<'_>> =
        gathered.iter().filter(|windows| windows.pair.is_none_or(|pair| *pair == ours)).collect();
    let rows = own.iter().map(|&windows| {
        let point = windows.point;
        let line = analysis.line(Kind::of(point), point.transport);
        Row { windows, measured: windows.merged(), cell: line.and_then(|line| line.at(point.size_bytes)) }
    });
    let styles = own.iter().map(|windows| {
        let point = windows.point;
        let when = When::from([
            (TRANSPORT, vec![point.transport.to_string()]),
            (KIND, vec![Kind::of(point).label()]),
        ]);
        (matches!(point.work, Work::Socket(_)).then_some("reference"), when)
    });
    Table { row_styles: styles.collect(), ..columns().table(rows) }
}

fn columns<'a>() -> Columns<'a, Row<'a>> {
    let measured = |of: fn(&LoadResult) -> Option<f64>| move |row: &Row<'_>| of(row.measured.as_ref()?);
    let rate = measured(|it| Some(it.rate_per_s));
    let mut columns = Columns::<Row<'_>>::default()
        .field("Work", |row| {
            let point = row.windows.point;
            linked(Kind::of(point), point.transport, point.size_bytes)
        })
        .words("Transport", |row| row.windows.point.transport.to_string())
        .field("Size", |row| size_field(row.windows.point.size_bytes))
        .field("Rate", move |row| Field::rate(rate(row), row.cell.and_then(|cell| cell.rate_interval)))
        .figure("Throughput", throughput, move |row| Some(rate(row)? * row.windows.point.size_bytes.0 as f64))
        .figure("Of socket", percent, |row| {
            row.measured.as_ref()?;
            row.cell?.share_of_socket
        })
        .field("Median", |row| {
            let median = row.measured.as_ref().and_then(|it| it.latency_ns?.named("p50"));
            Field::sure(median, time, row.cell.and_then(|cell| cell.p50_interval))
        });
    for (head, name) in [
        ("p90", "p90"),
        ("p95", "p95"),
        ("p99", "p99"),
        ("p99.9", "p99.9"),
        ("p99.99", "p99.99"),
        ("Max", "max"),
        ("Mean", "mean"),
        ("Min", "min"),
    ] {
        columns = columns.figure(head, time, move |row| row.measured.as_ref()?.latency_ns?.named(name));
    }
    columns
        .figure("Pace", time, measured(|it| Some(it.pace_ns?.mean)))
        .figure("Largest gap", time, measured(|it| Some(it.pace_ns?.gap_max as f64)))
        .figure("CPU", time, measured(|it| it.client_cpu_per_call.map(|cpu| cpu.user_ns + cpu.system_ns)))
        .figure("Operations", count, measured(|it| Some(it.messages as f64)))
        .figure("Calls", count, measured(|it| Some(it.calls as f64)))
        .field("Errors", |row| row.measured.as_ref().map_or_else(|| Field::figure(None, count), errors))
        .field("Connections", |row| {
            row.measured.as_ref().map_or_else(|| Field::figure(None, count), connections)
        })
        .figure("Measured for", time, measured(|it| Some(it.duration_ns as f64)))
        .field("Notes", notes)
}

/// A kind's name that leads to the windows of its cell.
fn linked(kind: Kind, transport: Transport, size: ByteSize) -> Field {
    Field { link: Some(anchor(kind, transport, size)), ..Field::words(kind.label()) }
}

fn size_field(size: ByteSize) -> Field {
    Field::figure(Some(size.0 as f64), |_| size.to_string())
}

fn errors(measured: &LoadResult) -> Field {
    let errors = measured.error_count();
    let shown = |_| match errors {
        0 => "0".to_owned(),
        _ => measured.errors.iter().map(|(code, n)| format!("{n} {code}")).collect::<Vec<_>>().join(", "),
    };
    Field::figure(Some(errors as f64), shown)
}

fn connections(measured: &LoadResult) -> Field {
    let connections = measured.connections;
    Field::figure(connections.established.map(f64::from), |established| {
        if connections.established == Some(connections.asked) {
            established.to_string()
        } else {
            format!("{established} of {}", connections.asked)
        }
    })
}

/// What was noted, and how many windows are not in the figures.
fn notes(row: &Row<'_>) -> Field {
    let windows = row.windows;
    let Some(measured) = &row.measured else {
        return Field::words(format!("no valid window: {}", windows.why_not())).class("failed");
    };
    let mut notes: Vec<String> = measured.notes.iter().map(|note| note.text.clone()).collect();
    let (all, valid) = (windows.all.len(), windows.valid().count());
    if valid < all {
        notes.push(format!("{} of {all} windows are not valid: {}", all - valid, windows.why_not()));
    }
    Field::words(notes.join("; "))
}
