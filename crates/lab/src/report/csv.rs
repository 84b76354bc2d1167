//! The table of a study as CSV (RFC 4180): one line for each window, plain numbers, units in the columns' names.

use std::rc::Rc;

use crate::analyse::channels::{Cell, Channels};
use crate::analyse::{Analysis, Kind, analyse};
use crate::plan::Strategy;
use crate::record::LoadResult;
use crate::results::{LabResults, Outcome, PointResult, ProcessUsage, Usage};

/// One column: its name, and its cell for a window.
struct Column {
    name: String,
    cell: Box<dyn Fn(&PointResult) -> String>,
}

/// The whole study as CSV.
pub fn csv(results: &LabResults) -> String {
    let mut columns = columns(analyse(results));
    if results.is_channels() {
        columns.extend(of_channels(Channels::of(results)));
    }
    let mut text = line(columns.iter().map(|column| column.name.clone()));
    for window in &results.points {
        text += &line(columns.iter().map(|column| (column.cell)(window)));
    }
    text
}

fn columns(analysis: Analysis) -> Vec<Column> {
    let mut columns = asked();
    columns.extend([
        measured("connections_established", |it| it.connections.established.map(|n| n.to_string())),
        measured("duration_ns", |it| Some(it.duration_ns.to_string())),
        measured("operations", |it| Some(it.messages.to_string())),
        measured("calls", |it| Some(it.calls.to_string())),
        measured("errors", |it| Some(it.error_count().to_string())),
        measured("rate_per_s", |it| Some(format!("{:.3}", it.rate_per_s))),
        measured("payload_bytes_per_s", |it| {
            Some(format!("{:.0}", it.rate_per_s * it.settings.size_bytes as f64))
        }),
        column("share_of_socket", move |window| share_of_socket(&analysis, window)),
        measured("latency_min_ns", |it| Some(it.latency_ns?.min.to_string())),
        measured("latency_mean_ns", |it| Some(format!("{:.1}", it.latency_ns?.mean))),
        measured("latency_p50_ns", |it| Some(it.latency_ns?.p50.to_string())),
        measured("latency_p90_ns", |it| Some(it.latency_ns?.p90.to_string())),
        measured("latency_p99_ns", |it| Some(it.latency_ns?.p99.to_string())),
        measured("latency_p99_9_ns", |it| Some(it.latency_ns?.p99_9.to_string())),
        measured("latency_p99_99_ns", |it| Some(it.latency_ns?.p99_99.to_string())),
        measured("latency_max_ns", |it| Some(it.latency_ns?.max.to_string())),
        measured("client_cpu_user_ns_per_operation", |it| {
            Some(format!("{:.1}", it.client_cpu_per_call?.user_ns))
        }),
        measured("client_cpu_system_ns_per_operation", |it| {
            Some(format!("{:.1}", it.client_cpu_per_call?.system_ns))
        }),
    ]);
    columns.extend(used());
    columns.extend([
        measured("started", |it| Some(it.started.clone())),
        column("valid", |window| Some(window.measured().is_some_and(LoadResult::is_valid).to_string())),
        column("failure", |window| match &window.outcome {
            Outcome::Failed(reason) => Some(reason.clone()),
            Outcome::Measured(_) => None,
        }),
    ]);
    columns
}

/// What a channels study has besides: what was counted and watched apart stands with every window of its point.
fn of_channels(channels: Channels) -> Vec<Column> {
    let channels = Rc::new(channels);
    let of_cell = |name: &str, figure: fn(&Cell) -> Option<String>| {
        let channels = Rc::clone(&channels);
        column(name, move |window| figure(channels.cell(window)?))
    };
    vec![
        column("strategy", |window| window.strategy.map(Strategy::name)),
        column("round_trip_ns", |window| Some(window.point.round_trip.as_nanos().to_string())),
        measured("lanes_at_the_end", |it| Some(it.lanes.last()?.lanes.to_string())),
        of_cell("system_calls_client_per_operation", |cell| {
            Some(format!("{:.4}", cell.system_calls?.client_per_operation))
        }),
        of_cell("system_calls_server_per_operation", |cell| {
            Some(format!("{:.4}", cell.system_calls?.server_per_operation))
        }),
        of_cell("wire_idle_share", |cell| Some(format!("{:.4}", cell.wire.as_ref()?.all.share))),
        of_cell("wire_gaps", |cell| Some(cell.wire.as_ref()?.all.gaps.to_string())),
        of_cell("wire_gap_p50_ns", |cell| Some(cell.wire.as_ref()?.all.p50_ns.to_string())),
        of_cell("wire_gap_p99_ns", |cell| Some(cell.wire.as_ref()?.all.p99_ns.to_string())),
        of_cell("wire_gap_max_ns", |cell| Some(cell.wire.as_ref()?.all.max_ns.to_string())),
    ]
}

/// What was asked.
fn asked() -> Vec<Column> {
    vec![
        column("work", |window| Some(window.point.work.to_string())),
        column("transport", |window| Some(window.point.transport.to_string())),
        column("size_bytes", |window| Some(window.point.size_bytes.0.to_string())),
        column("in_flight", |window| Some(window.point.in_flight.to_string())),
        column("client", |window| Some(window.pair.as_ref()?.client.to_string())),
        column("server", |window| Some(window.pair.as_ref()?.server.to_string())),
        column("round", |window| Some(window.round.to_string())),
        column("connections_asked", |window| Some(window.point.connections.to_string())),
    ]
}

/// What both processes used: totals of the window.
fn used() -> Vec<Column> {
    type Side = (&'static str, fn(&Usage) -> &ProcessUsage);
    type Figure = (&'static str, fn(&ProcessUsage) -> u64);
    const SIDES: [Side; 2] = [("client", |usage| &usage.client), ("server", |usage| &usage.server)];
    const FIGURES: [Figure; 4] = [
        ("user_ns", |used| used.user_ns),
        ("system_ns", |used| used.system_ns),
        ("voluntary_switches", |used| used.voluntary_switches),
        ("involuntary_switches", |used| used.involuntary_switches),
    ];
    let window = column("usage_window_ns", |window| Some(window.usage?.window_ns.to_string()));
    let figures = SIDES.into_iter().flat_map(|(side, of_side)| {
        FIGURES.map(|(figure, of_figure)| {
            column(&format!("usage_{side}_{figure}"), move |window| {
                Some(of_figure(of_side(&window.usage?)).to_string())
            })
        })
    });
    std::iter::once(window).chain(figures).collect()
}

/// A column that is empty where its cell is `None`.
fn column(name: &str, cell: impl Fn(&PointResult) -> Option<String> + 'static) -> Column {
    Column { name: name.to_owned(), cell: Box::new(move |window| cell(window).unwrap_or_default()) }
}

/// A column that is empty for windows that failed.
fn measured(name: &str, cell: fn(&LoadResult) -> Option<String>) -> Column {
    column(name, move |window| cell(window.measured()?))
}

/// The window's rate, divided by what the bare socket did with the same bytes.
fn share_of_socket(analysis: &Analysis, window: &PointResult) -> Option<String> {
    let point = &window.point;
    let limit = analysis.limit_of(Kind { work: point.work, in_flight: point.in_flight }, point.transport)?;
    let most = limit.at(point.size_bytes)?.rate_per_s;
    (most > 0.0).then(|| Some(format!("{:.5}", window.measured()?.rate_per_s / most)))?
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",") + "\r\n"
}

/// RFC 4180 §2: what holds a comma, a quote or a line break stands in quotes, quotes doubled.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_is_quoted() {
        assert_eq!(quoted("unary"), "unary");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"no\"\n"), "\"say \"\"no\"\"\n\"");
    }
}
